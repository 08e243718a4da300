/* SPDX-License-Identifier: Apache-2.0 */
/* What a leading controller reports on a ComputeDomain whose pod waits for a channel device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "leading.h"
#include "api/names.h"
#include "base/clock.h"
#include "rules/shortage.h"

#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define OTHER "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"

enum { CROWD_MAX = 64 };

struct world {
        struct leading l;
        char *crowd[CROWD_MAX]; /* what these ComputeDomains were written last: "status":...; NULL: nothing */
        const char *waits;      /* the unallocated claim; NULL: none */
        bool withheld;          /* the node withholds its channel */
        bool empty;             /* its slice has no device then, as in the default mode */
        bool in_fabric;         /* the Node and the fabric object show its partition and rack */
        bool listed;            /* the ComputeDomain of its rack lists it */
        bool of_rack;           /* the ComputeDomain is that of a rack */
        bool room;              /* another node has a free channel */
        const char *used;       /* the allocated claim; NULL: that of another ComputeDomain */
        bool refuses, drops; /* how the API server answers statuses: those of the crowd with an error, or all
                                without conditions */
        struct fake_conn *watch; /* of claims */
        char status[8192];       /* the last one of the ComputeDomain */
        unsigned n_statuses, version;
        unsigned crowd_versions[CROWD_MAX];
        unsigned n_crowd;        /* other ComputeDomains whose pods wait; "crowd-0" and so on */
        unsigned reported, most; /* reports of these; the most in a second */
        int64_t second;          /* the last second with a report, and their number in it */
        unsigned in_second;
};

#define PARTITION "3f7c1b2a-1111-2222-3333-444455556666.1"
#define RACK "rack-7"
#define RACK_DOMAIN(ns, annotations)                                                                         \
        "{\"metadata\":{\"name\":\"r\",\"namespace\":\"" ns                                                  \
        "\",\"uid\":\"r\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER                         \
        "\"],\"labels\":{\"" CD_LABEL_RACK "\":\"" RACK "\"},\"annotations\":{" annotations                  \
        "}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"imex-channel-r\"}}}}"
#define LISTED "\"" CD_ANNOTATION_RACK_UID "\":\"r\",\"" CD_ANNOTATION_RACK_NODES "\":\"n0,n1\""

#define PARAMETERS(uid)                                                                                      \
        "{\"driver\":\"" CD_DRIVER "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                     \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" uid "\"}}"
#define CLAIM(ns, name, version, owner, uid, status)                                                         \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" ns "\",\"uid\":\"" name                      \
        "\",\"resourceVersion\":\"" version                                                                  \
        "\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"" owner                                   \
        "\",\"name\":\"p\",\"uid\":\"p\"}]},\"spec\":{\"devices\":{\"config\":[{\"opaque\":" PARAMETERS(     \
                uid) "}]}},\"status\":{" status "}}"
#define WAITS(owner) CLAIM("team-a", "waits", "2", owner, DOMAIN, "")
#define ALLOCATED(uid)                                                                                       \
        "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"" CD_DRIVER               \
        "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\","               \
        "\"opaque\":" PARAMETERS(uid) "}]}}"

/* With the status that was written last. */
static char *domain_text(const struct world *w) {
        return xasprintf("{\"apiVersion\":\"" CD_API_VERSION "\",\"kind\":\"" CD_KIND
                         "\",\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                         "\",\"resourceVersion\":\"%u\",\"annotations\":{\"" CD_ANNOTATION_MODE
                         "\":\"" MODE_DRIVER_MANAGED "\"},\"finalizers\":[\"" CD_FINALIZER
                         "\"]%s},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"%s\"}}}%s%s",
                         w->version, w->of_rack ? ",\"labels\":{\"" CD_LABEL_RACK "\":\"" RACK "\"}" : "",
                         w->of_rack ? "imex-channel-train" : "t", *w->status ? "," : "",
                         *w->status ? w->status : "}");
}

/* What a server keeps of a status whose schema has no conditions. */
#define DROPPED "\"status\":{\"status\":\"NotReady\"}}"

/* ---- a crowd of ComputeDomains ---- */

#define CROWD_UID "cccccccc-8f4e-4f0e-9f0a-%012u"

static void add_crowd_domain(const struct world *w, struct buf *b, unsigned i) {
        const char *status = w->crowd[i];
        buf_addf(b,
                 "{\"apiVersion\":\"" CD_API_VERSION "\",\"kind\":\"" CD_KIND
                 "\",\"metadata\":{\"name\":\"crowd-%u\",\"namespace\":\"team-a\",\"uid\":\"" CROWD_UID
                 "\",\"resourceVersion\":\"%u\",\"annotations\":{\"" CD_ANNOTATION_MODE
                 "\":\"" MODE_DRIVER_MANAGED "\"},\"finalizers\":[\"" CD_FINALIZER
                 "\"]},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t-%u\"}}}%s%s",
                 i, i, w->crowd_versions[i] + 1, i, status ? "," : "", status ? status : "}");
}

static void add_crowd_claim(const struct world *w, struct buf *b, unsigned i) {
        buf_addf(b,
                 "{\"metadata\":{\"name\":\"crowd-%u\",\"namespace\":\"team-a\",\"uid\":\"claim-%u\","
                 "\"resourceVersion\":\"1\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                 "\"name\":\"p\",\"uid\":\"p\"}]},\"spec\":{\"devices\":{\"config\":[{\"opaque\":" PARAMETERS(
                         CROWD_UID) "}]}}}",
                 i, i, i);
}

/* Appends the items of the crowd to the list. Takes the list. */
static char *with_crowd(const struct world *w, char *list,
                        void (*add)(const struct world *w, struct buf *b, unsigned i)) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        buf_adds(&b, list);
        free(list);
        for (unsigned i = 0; i < w->n_crowd; i++) {
                buf_adds(&b, b.n ? "," : "");
                add(w, &b, i);
        }
        return xstrdup(buf_str(&b));
}

static void on_crowd(struct world *w, struct fake_conn *c, const struct fake_request *r, unsigned i) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        bool was = w->crowd[i] && strstr(w->crowd[i], "\"ChannelAvailable\"");
        int64_t now = clock_mono_s();
        if (w->refuses) {
                fake_refuse(c, 403, "a policy of the cluster");
                return;
        }
        w->crowd_versions[i] = ++w->version;
        free(w->crowd[i]);
        w->crowd[i] = xstrdup(w->drops ? DROPPED : strstr(r->body, "\"status\":{"));
        add_crowd_domain(w, &b, i);
        fake_reply(c, 200, NULL, buf_str(&b));
        if (was || !strstr(w->crowd[i], "\"ChannelAvailable\""))
                return;
        if (now != w->second)
                w->in_second = 0;
        w->second = now;
        w->reported++;
        if (++w->in_second > w->most)
                w->most = w->in_second;
}

#define NODE(name, annotations)                                                                              \
        "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name "\",\"resourceVersion\":\"1\",\"labels\":{"   \
        "\"nvidia.com/gpu.present\":\"true\"}" annotations "},\"status\":{\"conditions\":[{\"type\":"        \
        "\"Ready\",\"status\":\"True\"}]}}"
#define SLICE(node, devices)                                                                                 \
        "{\"metadata\":{\"name\":\"" node "\",\"uid\":\"s-" node                                             \
        "\",\"resourceVersion\":\"1\"},\"spec\":{\"driver\":\"" CD_DRIVER "\",\"nodeName\":\"" node          \
        "\",\"devices\":[" devices "]}}"

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/nodes"))
                return xasprintf(NODE("n1", "%s") "%s",
                                 w->in_fabric ? ",\"annotations\":{\"" CD_ANNOTATION_CLIQUE "\":\"" PARTITION
                                                "\"}"
                                              : "",
                                 w->room ? "," NODE("n2", "") : "");
        if (fake_has(path, "/computedomainfabrics"))
                return xstrdup(w->in_fabric ? "{\"metadata\":{\"name\":\"" PARTITION
                                              "\",\"uid\":\"f\",\"resourceVersion\":\"1\"},"
                                              "\"rack\":\"" RACK "\"}"
                                            : "");
        if (fake_has(path, "/pods") && fake_has(path, "plugin"))
                return xstrdup("{\"metadata\":{\"name\":\"p\",\"namespace\":\"driver\",\"uid\":\"p\","
                               "\"resourceVersion\":\"1\",\"annotations\":{\"" IMEX_ANNOTATION_WITHHELD
                               "\":\"FabricError: team-b has broken it\"}},\"spec\":{\"nodeName\":\"n1\"}}");
        if (fake_has(path, "/resourceslices"))
                return xasprintf(SLICE("n1", "%s") "%s",
                                 w->empty      ? ""
                                 : w->withheld ? "{\"name\":\"other\"}"
                                               : "{\"name\":\"channel-0\",\"attributes\":{\"cliqueID\":{"
                                                 "\"string\":\"" PARTITION "\"}}}",
                                 w->room ? "," SLICE("n2", "{\"name\":\"channel-0\"}") : "");
        if (fake_has(path, "/resourceclaims"))
                return with_crowd(w,
                                  xasprintf("%s%s%s",
                                            w->withheld ? ""
                                                        : str_or(w->used, CLAIM("team-a", "used", "1", "Pod",
                                                                                OTHER, ALLOCATED(OTHER))),
                                            w->waits && !w->withheld ? "," : "", str_or(w->waits, "")),
                                  add_crowd_claim);
        if (fake_has(path, "/computedomains")) {
                char *list = domain_text(w);
                if (w->listed) {
                        char *was = list;
                        list = xasprintf("%s," RACK_DOMAIN("driver", LISTED), was);
                        free(was);
                }
                return with_crowd(w, list, add_crowd_domain);
        }
        return NULL;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->method, "GET")) {
                if (fake_has(r->path, "/resourceclaims") && fake_query(r, "watch"))
                        w->watch = c;
                leading_read(c, r, items_of, u);
                return;
        }
        const char *crowd = strstr(r->path, "/computedomains/crowd-");
        if (crowd && fake_has(crowd, "/status")) {
                on_crowd(w, c, r, (unsigned)strtoul(crowd + strlen("/computedomains/crowd-"), NULL, 10));
                return;
        }
        if (!fake_has(r->path, "/computedomains/train/status")) {
                fake_refuse(c, 403, "not in this test");
                return;
        }
        const char *status = strstr(r->body, "\"status\":{");
        assert_non_null(status);
        snprintf(w->status, sizeof w->status, "%s", w->drops ? DROPPED : status);
        w->n_statuses++;
        w->version++;
        _cleanup_(freep) char *text = domain_text(w);
        fake_reply(c, 200, NULL, text);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        /* The first status waits for the template, which is never created. */
        snprintf(w->status, sizeof w->status, "%s", DROPPED);
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "", NULL);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        leading_done(&w->l);
        for (unsigned i = 0; i < w->n_crowd; i++)
                free(w->crowd[i]);
        free(w);
        return 0;
}

enum { SOON_MS = 1000 * (SHORTAGE_LOOKS_S + SHORTAGE_WAITS_S + 5), LATER_MS = 600000 };

static bool reports(const struct world *w) {
        return strstr(w->status, "\"ChannelAvailable\"");
}

/* failure: all channels are in use -> the ComputeDomain reports it while a pod waits */
static void the_computedomain_of_a_waiting_pod_reports_that_all_channels_are_in_use(void **state) {
        struct world *w = *state;
        w->waits = WAITS("Pod");
        w->version = 1;
        leading_start(&w->l);
        run_for(&w->l.loop, 1000 * SHORTAGE_WAITS_S);
        assert_true(w->n_statuses > 0);
        assert_false(reports(w));
        run_for(&w->l.loop, SOON_MS);
        assert_true(reports(w));
        assert_non_null(strstr(w->status, "\"All channels are in use: 1 of 1\""));
        unsigned n = w->n_statuses;
        run_for(&w->l.loop, LATER_MS);
        assert_int_equal(w->n_statuses, n);
        fake_chunk(w->watch, "{\"type\":\"DELETED\",\"object\":" WAITS("Pod") "}\n");
        run_for(&w->l.loop, 3000);
        assert_int_equal(w->n_statuses, n + 1);
        assert_false(reports(w));
}

/* The rest of the plugin's report may name objects of others. */
static void only_the_known_reason_of_a_plugin_is_shown(void **state) {
        struct world *w = *state;
        w->waits = WAITS("Pod");
        w->withheld = true;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_non_null(
                strstr(w->status, "No node offers a channel (FabricError): 1 of 1 nodes withholds it"));
        assert_null(strstr(w->status, "team-b"));
}

/* failure: all nodes of a rack withhold their channels -> the ComputeDomain of the rack reports the reason */
static void the_rack_of_a_node_that_withholds_is_that_of_its_partition(void **state) {
        struct world *w = *state;
        w->waits = WAITS("Pod");
        w->withheld = w->empty = w->of_rack = w->in_fabric = w->room = true;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_non_null(strstr(w->status, "No node of rack " RACK
                                          " offers a channel (FabricError): 1 of 1 nodes withholds it"));
}

/* The same without a fabric object, as after an installation in which the node never had a channel. */
static void the_rack_of_a_node_that_withholds_may_be_the_one_that_lists_it(void **state) {
        struct world *w = *state;
        w->waits = WAITS("Pod");
        w->withheld = w->empty = w->of_rack = w->listed = w->room = true;
        w->l.config.racks = true;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_non_null(strstr(w->status, "No node of rack " RACK
                                          " offers a channel (FabricError): 1 of 1 nodes withholds it"));
}

/* failure: a claim of another namespace names the ComputeDomain -> its partition is none of the
 * ComputeDomain's
 */
static void only_claims_of_the_namespace_choose_a_partition(void **state) {
        struct world *w = *state;
        w->waits = WAITS("Pod");
        w->room = true;
        w->used = CLAIM("team-a", "used", "1", "Pod", DOMAIN, ALLOCATED(DOMAIN));
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_non_null(strstr(w->status, "No channel is free on " PARTITION));
        controller_stop(&w->l.c);
        *w->status = '\0';
        w->used = CLAIM("team-b", "used", "1", "Pod", DOMAIN, ALLOCATED(DOMAIN));
        leading_start(&w->l);
        run_for(&w->l.loop, LATER_MS);
        assert_non_null(strstr(w->status, "conditions"));
        assert_false(reports(w));
}

static void without_a_pod_that_waits_nothing_is_reported(void **state) {
        static const char *const claims[] = { NULL, WAITS("PodGroup"),
                                              CLAIM("team-b", "waits", "2", "Pod", DOMAIN, "") };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
                w->waits = claims[i];
                leading_start(&w->l);
                run_for(&w->l.loop, LATER_MS);
                assert_true(w->n_statuses > 0);
                assert_false(reports(w));
                controller_stop(&w->l.c);
        }
}

/* failure: many ComputeDomains wait for the same channels -> their conditions are written in turn, and once
 */
static void many_computedomains_are_not_written_at_once(void **state) {
        struct world *w = *state;
        w->n_crowd = 60;
        leading_start(&w->l);
        run_for(&w->l.loop, 1000 * (SHORTAGE_LOOKS_S + SHORTAGE_WAITS_S) + 90000);
        assert_int_equal(w->reported, w->n_crowd);
        assert_in_range(w->most, 1,
                        20); /* ten decisions in a second; their writes may meet those of the next */
}

/* Calls of the functions in rules/shortage. */
static unsigned settled_late, looks;

const struct cd_condition *__real_shortage_settle(struct shortage_memory *m, const struct shortage_input *in,
                                                  int64_t *ret_recheck_s);
const struct cd_condition *__wrap_shortage_settle(struct shortage_memory *m, const struct shortage_input *in,
                                                  int64_t *ret_recheck_s);
const struct cd_condition *__wrap_shortage_settle(struct shortage_memory *m, const struct shortage_input *in,
                                                  int64_t *ret_recheck_s) {
        settled_late += !in->may_change;
        return __real_shortage_settle(m, in, ret_recheck_s);
}

bool __real_shortage_condition(const struct shortage_facts *f, struct arena *a, struct cd_condition *ret);
bool __wrap_shortage_condition(const struct shortage_facts *f, struct arena *a, struct cd_condition *ret);
bool __wrap_shortage_condition(const struct shortage_facts *f, struct arena *a, struct cd_condition *ret) {
        looks++;
        return __real_shortage_condition(f, a, ret);
}

static void decide_again(struct world *w, unsigned times) {
        for (unsigned k = 0; k < times; k++) {
                for (unsigned i = 0; i < w->n_crowd; i++) {
                        _cleanup_(freep) char *uid = xasprintf(CROWD_UID, i);
                        records_queue_domain(&w->l.c, uid);
                }
                run_for(&w->l.loop, 50);
        }
}

/* failure: a policy refuses the statuses of a few ComputeDomains -> the conditions of others do not wait */
static void a_refused_condition_counts_once(void **state) {
        struct world *w = *state;
        w->n_crowd = 5;
        w->refuses = true;
        settled_late = 0;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        decide_again(w, 40);
        assert_int_equal(settled_late, 0);
}

/* failure: the API server drops conditions -> the controller does not look for their causes */
static void without_conditions_nothing_is_looked_at(void **state) {
        struct world *w = *state;
        w->n_crowd = 5;
        w->drops = true;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_true(w->l.c.no_conditions);
        looks = 0;
        decide_again(w, 40);
        assert_int_equal(looks, 0);
}

/* failure: ComputeDomains with waiting pods are decided again and again -> the nodes are compared only once
 * in some seconds */
static void a_computedomain_is_not_looked_at_again_at_once(void **state) {
        struct world *w = *state;
        w->n_crowd = 5;
        leading_start(&w->l);
        run_for(&w->l.loop, SOON_MS);
        assert_int_equal(w->reported, w->n_crowd);
        looks = 0;
        decide_again(w, 20);
        assert_in_range(looks, 0, w->n_crowd);
        looks = 0;
        decide_again(w, 120); /* six seconds */
        assert_in_range(looks, w->n_crowd, 2 * w->n_crowd);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(the_computedomain_of_a_waiting_pod_reports_that_all_channels_are_in_use),
                T(only_the_known_reason_of_a_plugin_is_shown),
                T(the_rack_of_a_node_that_withholds_is_that_of_its_partition),
                T(the_rack_of_a_node_that_withholds_may_be_the_one_that_lists_it),
                T(only_claims_of_the_namespace_choose_a_partition),
                T(without_a_pod_that_waits_nothing_is_reported),
                T(many_computedomains_are_not_written_at_once),
                T(a_refused_condition_counts_once),
                T(a_computedomain_is_not_looked_at_again_at_once),
                T(without_conditions_nothing_is_looked_at),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
