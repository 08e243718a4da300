/* SPDX-License-Identifier: Apache-2.0 */
/* A controller that leads where agents run IMEX: who gets an agent, which places it gives on a fabric, and
 * what it asks before it takes one away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"
#include "leading.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define BOOT "cccccccc-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

struct world {
        struct leading l;
        const char *domains, *claims, *templates; /* lists' items */
        const char *node_labels, *agent;          /* members; NULL: no agent's Pod */
        const char *node_spec;                    /* members */
        const char *agent_meta;                   /* members of the Pod's metadata, each with a comma */
        bool has_set;                             /* the DaemonSet is there, as it is to be */
        bool fabrics_forbidden, fabrics_unknown;  /* 403, or a kind that the server does not have */
        bool cliques_unknown;
        unsigned n_good;                /* writes of the ComputeDomain "good" */
        unsigned n_user_templates;      /* creations of a workload's claim template */
        const char *agent_status;       /* members of the Pod's status, each with a comma */
        unsigned n_agents, n_crashing;  /* on n1 and on; of these the first, by the present template */
        char event[2048];               /* the last one */
        bool hold_fabric, hold_deletes;           /* these are not answered */
        struct fake_conn *claims_watch, *held;    /* the last of those */
        bool elsewhere;                           /* it serves another fabric than its node's devices state */
        const char *seats;                        /* "domains" of the fabric's object; NULL: there is none */
        const char *epoch;
        const char *channels;          /* of the fabric's object */
        char fabric[8192], node[1024]; /* bodies of the last writes */
        unsigned n_claim_lists, n_domain_lists, n_agent_lists, n_sets, n_templates, n_set_deletes;
        unsigned n_pod_deletes, n_lease_lists;
};

static char *fabric_text(const char *channels, const char *domains, const char *epoch, unsigned version) {
        return xasprintf("{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainFabric\","
                         "\"metadata\":{\"name\":\"" CLIQUE "\",\"uid\":\"" OBJECT
                         "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                         "\"tableOf\":\"" OBJECT "\",\"members\":[\"n1\"],\"nodes\":1,"
                         "\"channels\":[%s],\"domains\":[%s],\"epoch\":%s}",
                         version, channels, domains, epoch);
}

#define ELSEWHERE "3f7c1b2a-1111-2222-3333-444455556666.3"
#define OTHER_OBJECT "00000000-0000-4000-8000-000000000003"
#define ANOTHER_FABRIC                                                                                       \
        ",{\"metadata\":{\"name\":\"" ELSEWHERE "\",\"uid\":\"" OTHER_OBJECT                                 \
        "\",\"resourceVersion\":\"6\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"                      \
        "\"tableOf\":\"" OTHER_OBJECT "\",\"members\":[],\"nodes\":0,\"domains\":[],\"epoch\":1}"

#define CRASHES                                                                                              \
        ",\"containerStatuses\":[{\"name\":\"compute-domain-agent\",\"restartCount\":200,\"state\":{"        \
        "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":{\"exitCode\":1}}}]"

static char *items_of(void *u, const char *path, const char **ret_kind) {
        struct world *w = u;
        if (fake_has(path, "/nodes")) {
                *ret_kind = "Node";
                _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
                for (unsigned i = 1; i <= w->n_agents; i++)
                        buf_addf(
                                &b,
                                "%s{\"metadata\":{\"name\":\"n%u\",\"uid\":\"n%u\",\"resourceVersion\":\"1\","
                                "\"labels\":{%s}},\"spec\":{%s},\"status\":{\"nodeInfo\":{\"bootID\":\"" BOOT
                                "\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                                i > 1 ? "," : "", i, i, w->node_labels, w->node_spec);
                return xstrdup(buf_str(&b));
        }
        if (fake_has(path, "/pods")) {
                *ret_kind = "Pod";
                w->n_agent_lists += fake_has(path, CD_AGENT_OBJECT);
                if (!w->agent || !fake_has(path, CD_AGENT_OBJECT))
                        return xstrdup("");
                char hash[17];
                objects_agents_hash(&w->l.c.settings, hash);
                _cleanup_(freep) char *crashing = xasprintf("\"" CD_ANNOTATION_TEMPLATE "\":\"%s\"", hash);
                _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
                for (unsigned i = 1; i <= w->n_agents; i++)
                        buf_addf(&b,
                                 "%s{\"metadata\":{\"name\":\"agent-%u\",\"namespace\":\"driver\",\"uid\":"
                                 "\"p%u\","
                                 "\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",%s"
                                 "\"labels\":{\"" CD_LABEL_COMPONENT "\":\"" CD_AGENT_OBJECT
                                 "\",\"" CD_LABEL_CLIQUE "\":\"%s\"},\"annotations\":{%s}},"
                                 "\"spec\":{\"nodeName\":\"n%u\"},\"status\":{\"phase\":\"Running\","
                                 "\"podIPs\":[{\"ip\":\"10.0.0.1\"}]%s}}",
                                 i > 1 ? "," : "", i, i, w->agent_meta, w->elsewhere ? ELSEWHERE : CLIQUE,
                                 i <= w->n_crashing ? crashing : w->agent, i,
                                 i <= w->n_crashing ? CRASHES : w->agent_status);
                return xstrdup(buf_str(&b));
        }
        if (fake_has(path, "/resourceslices")) {
                *ret_kind = "ResourceSlice";
                return xstrdup(
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"resourceVersion\":\"1\"},\"spec\":{"
                        "\"driver\":\"" CD_DRIVER
                        "\",\"nodeName\":\"n1\",\"devices\":[{\"name\":\"channel-0\",\"attributes\":{"
                        "\"cliqueID\":{\"string\":\"" CLIQUE "\"}}}]}}");
        }
        if (fake_has(path, "/resourceclaimtemplates")) {
                *ret_kind = "ResourceClaimTemplate";
                return xstrdup(fake_has(path, CD_AGENT_OBJECT) ? "" : w->templates);
        }
        if (fake_has(path, "/resourceclaims")) {
                *ret_kind = "ResourceClaim";
                w->n_claim_lists++;
                return xstrdup(w->claims);
        }
        if (fake_has(path, "/v1beta1/computedomainfabrics")) {
                *ret_kind = "ComputeDomainFabric";
                _cleanup_(freep) char *own =
                        w->seats ? fabric_text(w->channels, w->seats, w->epoch, 5) : xstrdup("");
                return xasprintf("%s%s", own, w->elsewhere ? ANOTHER_FABRIC : "");
        }
        if (fake_has(path, "/computedomaincliques")) {
                *ret_kind = "ComputeDomainClique";
                return xstrdup("");
        }
        if (fake_has(path, "/daemonsets")) {
                char hash[17];
                *ret_kind = "DaemonSet";
                objects_agents_hash(&w->l.c.settings, hash);
                return xasprintf(
                        !w->has_set
                                ? ""
                                : "{\"metadata\":{\"name\":\"" CD_AGENT_OBJECT "\",\"namespace\":\"driver\","
                                  "\"uid\":\"d\",\"resourceVersion\":\"1\",\"generation\":1,\"annotations\":{"
                                  "\"" CD_ANNOTATION_TEMPLATE "\":\"%s\"}}}",
                        hash);
        }
        if (fake_has(path, "/namespaces/kube-node-lease/leases")) {
                *ret_kind = "Lease";
                return xasprintf("{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"renewTime\":"
                                 "\"2026-02-01T00:00:%02u.000000Z\"}}",
                                 w->n_lease_lists++ % 60);
        }
        if (fake_has(path, "/computedomains")) {
                *ret_kind = "ComputeDomain";
                w->n_domain_lists++;
                return xstrdup(w->domains);
        }
        return NULL;
}

/* The object is what the patch makes of it. */
static void on_fabric(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        static unsigned version = 10;
        snprintf(w->fabric, sizeof w->fabric, "%s", r->body);
        if (w->hold_fabric)
                return;
        const char *at = strstr(r->body, "\"domains\":["), *end = strstr(r->body, "],\"epoch\":");
        _cleanup_(freep) char *domains = NULL, *text = NULL;
        int epoch = 0;
        if (at && end) {
                at += strlen("\"domains\":[");
                domains = xasprintf("%.*s", (int)(end - at), at);
                epoch = atoi(end + strlen("],\"epoch\":"));
        }
        _cleanup_(freep) char *number = xasprintf("%d", epoch);
        text = fabric_text(strstr(r->body, "\"channels\":[]") ? "" : w->channels, domains ? domains : "",
                           number, ++version);
        fake_reply(c, streq(r->method, "POST") ? 201 : 200, NULL, text);
}

static void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        if (fake_has(r->path, "/v1beta1/computedomainfabrics")) {
                on_fabric(w, c, r);
                return;
        }
        if (fake_has(r->path, "/events"))
                snprintf(w->event, sizeof w->event, "%s", r->body);
        w->n_good += fake_has(r->path, "/computedomains/good");
        w->n_user_templates += fake_has(r->path, "/namespaces/team-a/resourceclaimtemplates");
        if (fake_has(r->path, "/nodes/n1"))
                snprintf(w->node, sizeof w->node, "%s", r->body);
        if (fake_has(r->path, "/daemonsets/" CD_AGENT_OBJECT))
                *(streq(r->method, "DELETE") ? &w->n_set_deletes : &w->n_sets) += 1;
        if (fake_has(r->path, "/resourceclaimtemplates/" CD_AGENT_OBJECT))
                w->n_templates++;
        w->n_pod_deletes += fake_has(r->path, "/pods/agent-") && streq(r->method, "DELETE");
        if (w->hold_deletes && streq(r->method, "DELETE")) {
                w->held = c;
                return;
        }
        fake_refuse(c, 403, "not in this test");
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/resourceclaims") && fake_query(r, "watch"))
                w->claims_watch = c;
        if (w->fabrics_forbidden && fake_has(r->path, "/computedomainfabrics"))
                fake_refuse(c, 403, "computedomainfabrics.resource.nvidia.com is forbidden");
        else if ((w->fabrics_unknown && fake_has(r->path, "/computedomainfabrics")) ||
                 (w->cliques_unknown && fake_has(r->path, "/computedomaincliques")))
                fake_reply(c, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
        else if (streq(r->method, "GET"))
                leading_read(c, r, items_of, u);
        else
                on_write(u, c, r);
}

#define A_DOMAIN(mode)                                                                                       \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN                       \
        "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER                                       \
        "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"" mode                                            \
        "\"}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t\"}}},"                          \
        "\"status\":{\"status\":\"Ready\"}}"
#define A_CLAIM                                                                                              \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":\"1\","    \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\"},\"status\":{\"allocation\":{\"devices\":{"          \
        "\"results\":[{"                                                                                     \
        "\"request\":\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],"   \
        "\"config\":[{\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"" CD_DRIVER          \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN "\"}}}]}}}}"
#define SEES_OBJECT "\"" IMEX_ANNOTATION_SEEN "\":\"0\",\"" IMEX_ANNOTATION_FABRIC "\":\"" OBJECT "\""
#define SITS(index, epoch)                                                                                   \
        SEES_OBJECT ",\"" IMEX_ANNOTATION_SEAT "\":\"" CLIQUE "/" DOMAIN "/" index "/" epoch                 \
                    "\",\"" IMEX_ANNOTATION_SEAT_INFIX "\":\"0123456789\""
#define A_SEAT                                                                                               \
        "{\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"name\":\"train\",\"uid\":"        \
        "\"" DOMAIN                                                                                          \
        "\"},\"infix\":\"0123456789\",\"slots\":18,\"port\":28001,\"seats\":[{\"node\":\"n1\",\"index\":3,"  \
        "\"epoch\":7,\"ip\":\"10.0.0.1\",\"bootID\":\"" BOOT "\"}],\"leaving\":[]}"
#define LABELLED "\"" CD_LABEL_AGENT "\":\"true\""

static void set_isolation(struct world *w, const char *isolation, bool agents) {
        leading_set_mode(&w->l, "", isolation, agents);
        w->node_labels = agents ? LABELLED : "";
        w->l.config.plugin_selector = isolation ? "app=plugin" : "";
}

static void set_mode(struct world *w, bool agents) {
        set_isolation(w, NULL, agents);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->domains = w->claims = w->templates = w->node_labels = w->node_spec = w->agent_meta = "";
        w->agent_status = "";
        w->n_agents = 1;
        w->seats = w->channels = "";
        w->epoch = "0";
        leading_init(&w->l, on_request, w);
        set_mode(w, true);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        leading_done(&w->l);
        free(w);
        return 0;
}

static void each_node_of_a_fabric_gets_an_agent(void **state) {
        struct world *w = *state;
        w->seats = NULL;
        w->node_labels = "";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->node && *w->fabric && w->n_sets && w->n_templates);
        assert_non_null(strstr(w->node, "\"" CD_LABEL_AGENT "\":\"true\""));
        assert_non_null(strstr(w->fabric, "\"members\":[\"n1\"]"));
        assert_null(strstr(w->fabric, "\"domains\"")); /* nobody has had a place */
}

static void a_claim_gives_its_node_a_place_with_its_address(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SEES_OBJECT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
        assert_non_null(strstr(w->fabric,
                               "\"seats\":[{\"node\":\"n1\",\"index\":0,\"epoch\":1,\"ip\":\"10.0.0.1\","
                               "\"bootID\":\"" BOOT "\"}],\"leaving\":[]"));
        assert_non_null(strstr(w->fabric, "\"epoch\":1,"));
        assert_non_null(strstr(w->fabric, "\"resourceVersion\":\"5\""));
}

static void an_agent_that_has_not_said_anything_gets_no_place(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = "";
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"seats\":[{"));
}

static void a_place_goes_when_the_server_itself_shows_no_claim(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->agent = SITS("3", "7");
        w->seats = A_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"leaving\":[{"));
        assert_true(w->n_claim_lists >= 2); /* once for the cache, once to be sure */
        assert_non_null(
                strstr(w->fabric, "\"seats\":[],\"leaving\":[{\"node\":\"n1\",\"index\":3,\"epoch\":7}]"));
}

static void a_place_goes_when_the_server_itself_shows_no_agent(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->seats = A_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->fabric);
        RUN_UNTIL(&w->l.loop, !strstr(w->fabric, "\"node\":\"n1\""));
        assert_true(w->n_agent_lists >= 2);
}

static void an_agent_that_ends_is_given_no_other_place_for_one_that_it_left(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SEES_OBJECT ",\"" IMEX_ANNOTATION_LEFT "\":\"7\"";
        w->agent_meta = "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\",";
        w->seats = A_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"domains\":["));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"node\":\"n1\""));
}

static void an_agent_that_ends_keeps_its_place_though_the_fabrics_object_was_lost(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SITS("3", "7");
        w->agent_meta = "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\",";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"index\":3"));
        assert_non_null(strstr(w->fabric, "\"seats\":[{"));
}

/* The DaemonSet's controller is about to delete the agent's Pod. */
static void an_agent_whose_node_has_lost_its_label_gets_no_place(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SEES_OBJECT;
        w->node_labels = "";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_AGENT "\":\"true\""));
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"seats\":[{"));
}

/* Anybody with the token of its node may have written that. */
static void an_agent_says_nothing_of_a_fabric_that_its_node_does_not_state(void **state) {
        struct world *w = *state;
        w->elsewhere = true;
        w->agent = "\"" IMEX_ANNOTATION_SEEN "\":\"12\",\"" IMEX_ANNOTATION_FABRIC "\":\"" OBJECT
                   "\",\"" IMEX_ANNOTATION_SEAT "\":\"" ELSEWHERE "/" DOMAIN
                   "/9/12\",\"" IMEX_ANNOTATION_SEAT_INFIX "\":\"0123456789\"";
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, DOMAIN));
        assert_null(strstr(w->fabric, "\"epoch\":12"));
        assert_null(strstr(w->fabric, "TableLost"));
}

#define OUTDATED ",\"" CD_ANNOTATION_TEMPLATE "\":\"0123456789abcdef\""

static void an_idle_agent_with_an_old_template_is_replaced_unless_its_fabric_is_being_written(void **state) {
        struct world *w = *state;
        w->has_set = w->hold_deletes = true;
        w->agent = SEES_OBJECT OUTDATED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        controller_stop(&w->l.c);
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->hold_fabric = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
        run_for(&w->l.loop, 1300);
        assert_int_equal(w->n_pod_deletes, 1);
}

static void an_agent_that_is_being_replaced_gets_no_place_until_that_is_refused(void **state) {
        struct world *w = *state;
        w->has_set = w->hold_deletes = true;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->agent = SEES_OBJECT OUTDATED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        fake_chunk(w->claims_watch, "{\"type\":\"ADDED\",\"object\":" A_CLAIM "}\n");
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"seats\":[{"));
        w->hold_deletes = false;
        fake_refuse(w->held, 403, "not in this test");
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
}

static void a_domain_that_is_gone_is_asked_for_before_its_places_go(void **state) {
        struct world *w = *state;
        w->agent = SITS("3", "7");
        w->seats = A_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"leaving\":[{"));
        assert_true(w->n_domain_lists >= 2);
        assert_non_null(strstr(w->fabric, "\"ordered\":\"deleted\""));
}

static void a6_what_an_agent_runs_is_entered_with_its_index_and_names(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SITS("5", "9");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
        assert_non_null(strstr(w->fabric, "\"infix\":\"0123456789\""));
        assert_non_null(strstr(w->fabric, "{\"node\":\"n1\",\"index\":5,\"epoch\":9,"));
        assert_non_null(strstr(w->fabric, "\"epoch\":9,\"channels\""));
}

static void a6_no_place_is_given_while_an_agent_sees_another_object(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = "\"" IMEX_ANNOTATION_SEEN "\":\"4\",\"" IMEX_ANNOTATION_FABRIC "\":\"another\"";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, FABRIC_TABLE_LOST));
        assert_non_null(strstr(w->fabric, "Still to report: n1"));
        assert_null(strstr(w->fabric, "\"seats\":[{"));
}

#define A_LEAVING_SEAT                                                                                       \
        "{\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"name\":\"train\",\"uid\":"        \
        "\"" DOMAIN                                                                                          \
        "\"},\"infix\":\"0123456789\",\"slots\":18,\"port\":28001,\"seats\":[],\"leaving\":[{\"node\":"      \
        "\"n1\",\"index\":3,\"epoch\":7}]}"

/* The object of the fabric that it was in was put back after it had gone: nobody would ever say that it has
 * left a place there. */
static void a_node_whose_agent_serves_another_fabric_has_left_this_one(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->elsewhere = true;
        w->agent = "\"" IMEX_ANNOTATION_SEEN "\":\"1\",\"" IMEX_ANNOTATION_FABRIC "\":\"" OTHER_OBJECT "\"";
        w->seats = A_LEAVING_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[],\"leaving\":[]"));
        assert_null(strstr(w->fabric, FABRIC_TABLE_LOST));
}

/* It may still run what it has here. */
static void an_agent_that_does_not_see_the_other_fabrics_object_has_left_nothing(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->elsewhere = true;
        w->agent = "\"" IMEX_ANNOTATION_SEEN "\":\"1\",\"" IMEX_ANNOTATION_FABRIC "\":\"\"";
        w->seats = A_LEAVING_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"leaving\":[]"));
}

#define DAEMON_TEMPLATE                                                                                      \
        "{\"metadata\":{\"name\":\"computedomain-daemon-" DOMAIN                                             \
        "\",\"namespace\":\"driver\",\"uid\":\"r\",\"resourceVersion\":\"1\",\"finalizers\":["               \
        "\"" CD_FINALIZER "\"],\"labels\":{\"" CD_LABEL "\":\"" DOMAIN "\",\"" CD_LABEL_TARGET               \
        "\":\"" CD_TARGET_DAEMON "\"}},\"spec\":{\"spec\":{}}}"

static void an_idle_agent_yields_the_node_to_a_domain_of_daemon_pods(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->templates = DAEMON_TEMPLATE;
        w->claims = A_CLAIM;
        w->agent = SEES_OBJECT;
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_AGENT "\":null"));
        assert_null(strstr(w->fabric, "\"seats\":[{"));
}

static void an_agent_that_is_in_a_domain_keeps_the_node(void **state) {
        struct world *w = *state;
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->templates = DAEMON_TEMPLATE;
        w->claims = A_CLAIM;
        w->agent = SEES_OBJECT ",\"" IMEX_ANNOTATION_SEAT "\":\"" CLIQUE
                               "/bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60/0/1\"";
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->node);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->node, CD_LABEL_AGENT));
}

static void switched_off_an_idle_agent_goes_and_one_in_use_stays(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->agent = SEES_OBJECT;
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_AGENT "\":null"));
        assert_non_null(strstr(w->node, "\"resourceVersion\":\"1\""));
        assert_int_equal(w->n_sets, 0);
        controller_stop(&w->l.c);
        w->node[0] = '\0';
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->agent = SITS("3", "7");
        w->seats = A_SEAT;
        w->epoch = "7";
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, CD_LABEL_AGENT));
        assert_null(strstr(w->fabric, "\"leaving\":[{"));
}

/* ---- the domain that stands in a fabric for all ComputeDomains ---- */

#define OWN_CLAIM                                                                                            \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":\"1\","    \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\"},\"status\":{\"allocation\":{\"devices\":{"          \
        "\"results\":[{"                                                                                     \
        "\"request\":\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"n1\",\"device\":\"channel-4\"}],"   \
        "\"config\":[{\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"" CD_DRIVER          \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\",\"isolation\":\"Channel\"}}}]}}}}"

/* The agent's annotations, and the fabric's "domains", of a node with a place in that domain. */
static void stands(struct world *w, const char *mode_isolation, bool agents) {
        static char agent[600], seats[600], uid[37];
        set_isolation(w, mode_isolation, agents);
        fabric_standing_uid(CLIQUE, uid);
        snprintf(agent, sizeof agent,
                 SEES_OBJECT ",\"" IMEX_ANNOTATION_SEAT "\":\"" CLIQUE
                             "/%s/3/7\",\"" IMEX_ANNOTATION_SEAT_INFIX "\":\"0123456789\"",
                 uid);
        snprintf(seats, sizeof seats,
                 "{\"owner\":{\"kind\":\"" CD_FABRIC_KIND "\",\"name\":\"" CLIQUE "\",\"uid\":\"%s\"},"
                 "\"infix\":\"0123456789\",\"slots\":18,\"port\":28001,\"seats\":[{\"node\":\"n1\",\"index\":"
                 "3,"
                 "\"epoch\":7,\"ip\":\"10.0.0.1\",\"bootID\":\"" BOOT "\"}],\"leaving\":[]}",
                 uid);
        w->node_labels = LABELLED;
        w->agent = agent;
        w->seats = seats;
        w->epoch = "7";
}

static void a2_a_node_joins_the_domain_of_its_fabric_before_anybody_wants_it(void **state) {
        struct world *w = *state;
        char uid[37];
        fabric_standing_uid(CLIQUE, uid);
        set_isolation(w, "channel", true);
        w->agent = SEES_OBJECT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
        _cleanup_(freep) char *owner = xasprintf(
                "\"owner\":{\"kind\":\"" CD_FABRIC_KIND "\",\"name\":\"" CLIQUE "\",\"uid\":\"%s\"}", uid);
        assert_non_null(strstr(w->fabric, owner));
        assert_non_null(strstr(w->fabric, "\"slots\":18,"));
        assert_non_null(strstr(w->fabric,
                               "\"seats\":[{\"node\":\"n1\",\"index\":0,\"epoch\":1,\"ip\":\"10.0.0.1\","));
        assert_non_null(strstr(w->fabric, "\"domainCount\":0,")); /* of ComputeDomains */
        /* It is nobody's but the fabric's: no ComputeDomain of its name is looked for. */
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_domain_lists, 1);
}

static void a10_a_cordoned_node_leaves_the_domain_of_its_fabric(void **state) {
        struct world *w = *state;
        stands(w, "channel", true);
        w->node_spec = "\"unschedulable\":true";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"leaving\":[{"));
        assert_non_null(
                strstr(w->fabric, "\"seats\":[],\"leaving\":[{\"node\":\"n1\",\"index\":3,\"epoch\":7}]"));
        assert_null(strstr(w->node, CD_LABEL_AGENT)); /* its agent stays, and holds nothing */
}

static void a10_a_cordoned_node_with_a_claim_stays_in_the_domain(void **state) {
        struct world *w = *state;
        stands(w, "channel", true);
        w->node_spec = "\"unschedulable\":true";
        w->domains = A_DOMAIN(MODE_DRIVER_CHANNEL);
        w->claims = OWN_CLAIM;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->fabric, "\"leaving\":[{"));
        assert_null(strstr(w->node, CD_LABEL_AGENT));
}

/* Whoever uses it ends it: the API alone orders nothing. */
static void after_a_change_of_the_mode_a_node_leaves_without_an_order(void **state) {
        struct world *w = *state;
        stands(w, NULL, false);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"leaving\":[{"));
        assert_null(strstr(w->fabric, "ordered"));
        assert_null(strstr(w->node, CD_LABEL_AGENT));
}

/* ---- channels that were given under isolation=channel ---- */

#define A_CHANNEL                                                                                            \
        "{\"id\":4,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN "\"}}"
#define A_RELEASED_CHANNEL                                                                                   \
        "{\"id\":4,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN         \
        "\"},\"releasing\":\"2026-01-02T00:00:00Z\"}"

static void after_isolation_by_channel_the_entry_of_a_deleted_domain_goes(void **state) {
        struct world *w = *state;
        w->channels = A_RELEASED_CHANNEL;
        w->agent = SEES_OBJECT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[]"));
        assert_true(w->n_claim_lists >= 2);
        assert_true(w->n_lease_lists >= 2);
}

static void after_isolation_by_channel_an_entry_stays_while_a_claim_is_there(void **state) {
        struct world *w = *state;
        w->channels = A_CHANNEL;
        w->agent = SEES_OBJECT;
        w->claims = OWN_CLAIM;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"releasing\":"));
        w->channels = A_RELEASED_CHANNEL;
        controller_stop(&w->l.c);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_claim_lists >= 3 && w->n_lease_lists >= 2);
        run_for(&w->l.loop, 300);
        assert_null(strstr(w->fabric, "\"channels\":[]"));
}

/* Its claims are none that give a channel of the ComputeDomain's own. */
static void a_node_keeps_the_daemon_of_a_domain_of_before_until_that_is_deleted(void **state) {
        struct world *w = *state;
        set_isolation(w, "channel", true);
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->templates = DAEMON_TEMPLATE;
        w->claims = A_CLAIM;
        w->node_labels = "\"" CD_LABEL "\":\"" DOMAIN "\"";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->node); /* it is to have an agent, too, which waits for the daemon's Pod */
        run_for(&w->l.loop, 500);
        assert_null(strstr(w->node, "\"" CD_LABEL "\""));
}

static void a6_what_agents_run_is_entered_though_the_fabrics_object_was_deleted(void **state) {
        struct world *w = *state;
        stands(w, "channel", true);
        w->seats = "";
        w->epoch = "0";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"seats\":[{"));
        assert_non_null(strstr(w->fabric, "\"kind\":\"" CD_FABRIC_KIND "\""));
        assert_non_null(strstr(w->fabric, "{\"node\":\"n1\",\"index\":3,\"epoch\":7,"));
        assert_non_null(strstr(w->fabric, "\"infix\":\"0123456789\""));
}

static void without_agents_nothing_of_them_is_looked_for(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        leading_start(&w->l);
        run_for(&w->l.loop, 300);
        assert_null(w->l.c.agents);
        assert_null(w->l.c.fabrics);
}

/* ---- agents that crash ---- */

#define OLD_HASH "\"" CD_ANNOTATION_TEMPLATE "\":\"0123456789abcdef\""
static void
an_agent_that_crashes_from_its_start_is_replaced_also_where_it_is_listed_and_claimed(void **state) {
        struct world *w = *state;
        w->has_set = true;
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->seats = A_SEAT;
        w->epoch = "7";
        w->agent = OLD_HASH;
        w->agent_status = CRASHES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
}

static void an_agent_that_runs_and_never_reports_is_replaced_where_no_claim_is(void **state) {
        struct world *w = *state;
        w->has_set = true;
        w->agent = OLD_HASH;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes);
        controller_stop(&w->l.c);
        w->domains = A_DOMAIN(MODE_DRIVER_AGENTS);
        w->claims = A_CLAIM;
        w->n_pod_deletes = 0;
        leading_start(&w->l);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
}

static void an_agent_that_crashes_goes_when_agents_are_switched_off(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->has_set = true;
        w->node_labels = LABELLED;
        w->agent = OLD_HASH;
        w->agent_status = CRASHES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_AGENT "\":null"));
}

/* Of eight agents two are replaced at once. */
static void a_template_that_crashes_reaches_a_quarter_of_the_agents(void **state) {
        struct world *w = *state;
        w->has_set = true;
        w->agent = SEES_OBJECT "," OLD_HASH;
        w->n_agents = 8;
        w->hold_deletes = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 2);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 2);
        controller_stop(&w->l.c);
        w->n_crashing = 2; /* that is what they have become */
        w->n_pod_deletes = 0;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->event);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 0);
        assert_non_null(strstr(w->event, "AgentsCrash"));
        assert_non_null(strstr(w->event, "on: n1, n2. "));
        controller_stop(&w->l.c);
        w->n_crashing = 1; /* there is room for one more */
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_pod_deletes == 1);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_pod_deletes, 1);
}

/* ---- caches that the mode does not need ---- */

#define NEW_DOMAIN(name, uid, annotations, status)                                                           \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"team-a\",\"uid\":\"" uid                       \
        "\",\"resourceVersion\":\"1\",\"annotations\":{" annotations                                         \
        "}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"" name "-t\"}}}" status "}"
#define OTHER "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define HOSTILE_ANNOTATION "\"" CD_ANNOTATION_MODE "\":\"" MODE_DRIVER_AGENTS "\""
#define GOOD_ALONE NEW_DOMAIN("good", DOMAIN, "", "")
#define FORMED ",\"status\":{\"status\":\"Ready\"}"

static void start_with_hosts(struct world *w) {
        leading_set_mode(&w->l, "HostManagedIMEX=true", NULL, false);
        w->node_labels = "";
        w->domains = GOOD_ALONE;
}

static void an_annotation_that_nothing_confirms_starts_no_watch(void **state) {
        struct world *w = *state;
        start_with_hosts(w);
        w->domains = GOOD_ALONE "," NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_user_templates == 2);
        assert_null(w->l.c.agents);
}

static void where_hosts_run_imex_no_annotation_stops_another_domain(void **state) {
        struct world *w = *state;
        start_with_hosts(w);
        w->fabrics_forbidden = true;
        w->domains = NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, FORMED) "," GOOD_ALONE;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_user_templates);
        assert_non_null(w->l.c.agents); /* that one may have agents, and waits */
        assert_false(records_agents_synced(&w->l.c));
}

static void where_hosts_run_imex_a_label_that_agents_left_stops_nothing_and_goes_later(void **state) {
        struct world *w = *state;
        start_with_hosts(w);
        w->fabrics_forbidden = true;
        w->node_labels = LABELLED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_user_templates);
        assert_null(strstr(w->node, CD_LABEL_AGENT));
        w->fabrics_forbidden = false;
        RUN_UNTIL(&w->l.loop, strstr(w->node, "\"" CD_LABEL_AGENT "\":null"));
}

static void without_the_kind_of_fabrics_no_annotation_stops_another_domain(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->fabrics_unknown = true;
        w->domains = NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, FORMED) "," GOOD_ALONE;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_user_templates);
}

#define GOOD_TEMPLATE                                                                                        \
        "{\"metadata\":{\"name\":\"good-t\",\"namespace\":\"team-a\",\"uid\":\"t\",\"resourceVersion\":"    \
        "\"1\",\"labels\":{\"" CD_LABEL "\":\"" DOMAIN "\",\"" CD_LABEL_TARGET "\":\"" CD_TARGET_WORKLOAD       \
        "\"}},\"spec\":{}}"

/* Its claim template was made; the writes of finalizer, annotation and daemon template failed. */
static void without_the_kind_of_fabrics_a_domain_whose_first_writes_failed_is_formed(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->fabrics_unknown = true;
        w->domains = NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, FORMED) "," GOOD_ALONE;
        w->templates = GOOD_TEMPLATE;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_good);
}

/* A tenant has written on its domain of daemons that agents formed it. */
static void without_the_kind_of_fabrics_a_domain_of_daemons_is_kept_up(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->fabrics_unknown = true;
        w->domains = NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, FORMED) ","
                     NEW_DOMAIN("good", DOMAIN, HOSTILE_ANNOTATION, FORMED);
        w->templates = DAEMON_TEMPLATE;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_good);
}

/* Its daemon template, which shows that daemons ran, is deleted first. */
static void without_the_kind_of_fabrics_a_domain_of_daemons_ends(void **state) {
        struct world *w = *state;
        set_mode(w, false);
        w->fabrics_unknown = true;
        w->domains = NEW_DOMAIN("bad", OTHER, HOSTILE_ANNOTATION, FORMED) ","
                     "{\"metadata\":{\"name\":\"good\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                     "\",\"resourceVersion\":\"1\",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\","
                     "\"finalizers\":[\"" CD_FINALIZER "\"],\"annotations\":{\"" CD_ANNOTATION_MODE
                     "\":\"" MODE_DRIVER_MANAGED "\"}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{"
                     "\"name\":\"good-t\"}}}" FORMED "}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_good);
}

static void where_hosts_run_imex_a_finalizer_of_another_mode_stops_no_other_domain(void **state) {
        struct world *w = *state;
        start_with_hosts(w);
        w->cliques_unknown = true;
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED) "," NEW_DOMAIN("good", OTHER, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_user_templates);
        assert_non_null(w->l.c.namespaces);
        assert_null(records_stale(&w->l.c));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(each_node_of_a_fabric_gets_an_agent),
                TEST(a_claim_gives_its_node_a_place_with_its_address),
                TEST(an_agent_that_has_not_said_anything_gets_no_place),
                TEST(a_place_goes_when_the_server_itself_shows_no_claim),
                TEST(a_place_goes_when_the_server_itself_shows_no_agent),
                TEST(an_agent_that_ends_is_given_no_other_place_for_one_that_it_left),
                TEST(an_agent_that_ends_keeps_its_place_though_the_fabrics_object_was_lost),
                TEST(an_idle_agent_with_an_old_template_is_replaced_unless_its_fabric_is_being_written),
                TEST(an_agent_that_is_being_replaced_gets_no_place_until_that_is_refused),
                TEST(a_domain_that_is_gone_is_asked_for_before_its_places_go),
                TEST(a6_what_an_agent_runs_is_entered_with_its_index_and_names),
                TEST(a6_no_place_is_given_while_an_agent_sees_another_object),
                TEST(a_node_whose_agent_serves_another_fabric_has_left_this_one),
                TEST(an_agent_that_does_not_see_the_other_fabrics_object_has_left_nothing),
                TEST(an_idle_agent_yields_the_node_to_a_domain_of_daemon_pods),
                TEST(an_agent_that_is_in_a_domain_keeps_the_node),
                TEST(switched_off_an_idle_agent_goes_and_one_in_use_stays),
                TEST(a2_a_node_joins_the_domain_of_its_fabric_before_anybody_wants_it),
                TEST(a10_a_cordoned_node_leaves_the_domain_of_its_fabric),
                TEST(a10_a_cordoned_node_with_a_claim_stays_in_the_domain),
                TEST(after_a_change_of_the_mode_a_node_leaves_without_an_order),
                TEST(a_node_keeps_the_daemon_of_a_domain_of_before_until_that_is_deleted),
                TEST(after_isolation_by_channel_the_entry_of_a_deleted_domain_goes),
                TEST(after_isolation_by_channel_an_entry_stays_while_a_claim_is_there),
                TEST(a6_what_agents_run_is_entered_though_the_fabrics_object_was_deleted),
                TEST(without_agents_nothing_of_them_is_looked_for),
                TEST(an_agent_that_crashes_from_its_start_is_replaced_also_where_it_is_listed_and_claimed),
                TEST(an_agent_that_runs_and_never_reports_is_replaced_where_no_claim_is),
                TEST(an_agent_that_crashes_goes_when_agents_are_switched_off),
                TEST(a_template_that_crashes_reaches_a_quarter_of_the_agents),
                TEST(an_agent_whose_node_has_lost_its_label_gets_no_place),
                TEST(an_agent_says_nothing_of_a_fabric_that_its_node_does_not_state),
                TEST(an_annotation_that_nothing_confirms_starts_no_watch),
                TEST(where_hosts_run_imex_no_annotation_stops_another_domain),
                TEST(where_hosts_run_imex_a_label_that_agents_left_stops_nothing_and_goes_later),
                TEST(without_the_kind_of_fabrics_no_annotation_stops_another_domain),
                TEST(without_the_kind_of_fabrics_a_domain_whose_first_writes_failed_is_formed),
                TEST(without_the_kind_of_fabrics_a_domain_of_daemons_is_kept_up),
                TEST(without_the_kind_of_fabrics_a_domain_of_daemons_ends),
                TEST(where_hosts_run_imex_a_finalizer_of_another_mode_stops_no_other_domain),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
