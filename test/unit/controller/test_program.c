/* SPDX-License-Identifier: Apache-2.0 */
/* The program with an API server whose answers the test decides: its start, failures that must not stop it,
 * and what it prints. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "world/fake_server.h"
#include "api/names.h"
#include "base/file.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/str.h"

enum { N_CRDS = 3 };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct process *controller; /* NULL: it has exited */
        struct buf output;
        int exit_status;
        char dir[32];
        bool unserved; /* resource.k8s.io is not served */
        bool crds_exist, webhook_is_down; /* of CustomResourceDefinitions */
        const char *crd_meta;             /* members of their metadata, each preceded by a comma */
        bool taken;                       /* somebody else leads */
        bool refuses_writes;              /* of ComputeDomains */
        bool refuses_node, node_claimed;  /* refuses the Node's label; the node has a claim */
        bool keeps_domain;                /* the ComputeDomain keeps what is written */
        char at[40];                      /* address of the program's metrics */
        struct http_client *scraper;
        char *scraped;
        const char *domain; /* the ComputeDomain after each write of it; NULL: as it was written */
        struct fake_conn *domains, *nodes, *claims; /* watches */
        struct buf status;                          /* the last written status */
        unsigned rv, asked, leases, looked, applied, domain_lists, node_watches, domain_writes;
        unsigned node_writes, refused_statuses, lost_statuses, statuses, events;
        bool event_too_early;            /* an Event arrived before the status */
        struct buf set;                  /* the last applied DaemonSet */
        unsigned set_writes, generation; /* generation: of the DaemonSet; 0: it does not exist */
};

static const struct {
        const char *plural, *kind;
} kinds[] = {
        { "/nodes", "Node" },
        { "/pods", "Pod" },
        { "/daemonsets", "DaemonSet" },
        { "/resourceclaimtemplates", "ResourceClaimTemplate" },
        { "/resourceclaims", "ResourceClaim" },
        { "/resourceslices", "ResourceSlice" },
        { "/computedomaincliques", "ComputeDomainClique" },
        { "/v1beta1/computedomainfabrics", "ComputeDomainFabric" },
        { "/computedomains", "ComputeDomain" },
        { "/leases", "Lease" },
};

#define DOMAIN                                                                                               \
        "{\"metadata\":{\"namespace\":\"u\",\"name\":\"d\",\"uid\":\"aaaaaaaa-0000-4000-8000-000000000001\"" \
        ",\"resourceVersion\":\"3\"},\"spec\":{\"numNodes\":0,\"channel\":{\"resourceClaimTemplate\":"       \
        "{\"name\":\"t\"}}}}"
#define DOMAIN_IS(rv, status)                                                                                \
        "{\"kind\":\"ComputeDomain\",\"metadata\":{\"namespace\":\"u\",\"name\":\"d\",\"uid\":"              \
        "\"aaaaaaaa-0000-4000-8000-000000000001\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"numNodes\":0," \
        "\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t\"}}},\"status\":{\"status\":\"" status         \
        "\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"x\",\"reason\":\"x\",\"message\":\"x\","        \
        "\"lastTransitionTime\":\"2020-01-01T00:00:00Z\"}]}}"
#define NODES                                                                                                \
        "{\"metadata\":{\"name\":\"gpu\",\"uid\":\"n1\",\"resourceVersion\":\"1\",\"labels\":{"              \
        "\"nvidia.com/gpu.present\":\"true\"}}},{\"metadata\":{\"name\":\"plain\",\"uid\":\"n2\","           \
        "\"resourceVersion\":\"1\"}}"
/* A claim for a channel of the ComputeDomain on the node "gpu", which offers it and is in no partition. */
#define CLAIM                                                                                                \
        "{\"metadata\":{\"namespace\":\"u\",\"name\":\"c\",\"uid\":\"c1\",\"resourceVersion\":\"2\"},"       \
        "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":"               \
        "\"compute-domain.nvidia.com\",\"pool\":\"gpu\",\"device\":\"channel-0\"}],\"config\":[{\"source\":" \
        "\"FromClaim\",\"requests\":[\"r\"],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","           \
        "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":"                           \
        "\"ComputeDomainChannelConfig\",\"domainID\":\"aaaaaaaa-0000-4000-8000-000000000001\"}}}]}},"        \
        "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p1\"}]}}"
#define SLICE                                                                                                \
        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s1\",\"resourceVersion\":\"2\"},\"spec\":{\"driver\":"      \
        "\"compute-domain.nvidia.com\",\"nodeName\":\"gpu\",\"devices\":[{\"name\":\"channel-0\"}]}}"
#define LEASE                                                                                                \
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"nvidia-compute-domain-controller\","                 \
        "\"resourceVersion\":\"4\"},\"spec\":{\"holderIdentity\":\"another\",\"leaseDurationSeconds\":3600}" \
        "}"

static void reply_list(struct world *w, struct fake_conn *c, const struct fake_request *r, const char *kind) {
        const char *items = "";
        if (streq(kind, "ComputeDomain")) {
                w->domain_lists++;
                items = DOMAIN;
        } else if (streq(kind, "Node")) {
                items = NODES;
        } else if (streq(kind, "Lease") && w->taken) {
                items = LEASE;
        } else if (streq(kind, "ResourceClaim") && w->node_claimed) {
                items = CLAIM;
        } else if (streq(kind, "ResourceSlice") && w->node_claimed) {
                items = SLICE;
        }
        _cleanup_(freep) char *set = xasprintf("{\"metadata\":{\"generation\":%u,\"uid\":\"s1\","
                                               "\"resourceVersion\":\"5\",%s",
                                               w->generation, buf_str(&w->set));
        if (streq(kind, "DaemonSet") && w->generation)
                items = set;
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", items);
        fake_list(c, r, kind, list);
}

static void on_crd(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *name = strrchr(r->path, '/') + 1;
        size_t n = strcspn(name, "?");
        bool looks = streq(r->method, "GET");
        _cleanup_(freep) char *plain = xstrndup(name, n);
        _cleanup_(freep) char *crd =
                xasprintf("{\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"%s\"%s}}", plain,
                          str_or(w->crd_meta, ""));
        w->looked += looks;
        w->applied += !looks;
        if (looks && !w->crds_exist)
                fake_missing(c, "apiextensions.k8s.io", "customresourcedefinitions", plain);
        else if (!looks && w->webhook_is_down)
                fake_refuse(c, 503, "failed calling webhook \"crds.example.com\"");
        else
                fake_reply(c, 200, NULL, crd);
}

static bool keep_domain(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *status = strstr(r->body, "\"status\":{");
        bool about_status = fake_has(r->path, "/status");
        if (about_status && w->refused_statuses) {
                w->refused_statuses--;
                fake_refuse(c, 422, "no status today");
                return true;
        }
        if (about_status) {
                w->statuses++;
                buf_clear(&w->status);
                buf_addf(&w->status, ",%.*s", (int)(strlen(status) - 1), status);
        }
        _cleanup_(freep) char *now = xasprintf(
                "{\"kind\":\"ComputeDomain\",\"metadata\":{\"namespace\":\"u\",\"name\":\"d\",\"uid\":"
                "\"aaaaaaaa-0000-4000-8000-000000000001\",\"resourceVersion\":\"%u\","
                "\"finalizers\":[\"resource.nvidia.com/computeDomain\"],\"annotations\":{"
                "\"" CD_ANNOTATION_MODE "\":\"driverManaged\"}},\"spec\":{\"numNodes\":0,\"channel\":"
                "{\"resourceClaimTemplate\":{\"name\":\"t\"}}}%s}",
                20 + w->rv++, buf_str(&w->status));
        if (about_status && w->lost_statuses) {
                _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", now);
                w->lost_statuses--;
                fake_chunk(w->domains, event);
                fake_refuse(c, 504, "the answer of etcd came too late");
                return true;
        }
        fake_reply(c, 200, NULL, now);
        return true;
}

/* Answers the writes that the test refuses or keeps. Returns false for others, which succeed. */
static bool answered_by_the_test(struct world *w, struct fake_conn *c, const struct fake_request *r,
                                 const char *kind) {
        bool domain = streq(kind, "ComputeDomain"), node = streq(kind, "Node");
        w->leases += streq(kind, "Lease");
        w->domain_writes += domain;
        w->node_writes += node;
        if (domain && w->refuses_writes)
                fake_refuse(c, 422, "no writes today");
        else if (node && w->refuses_node)
                fake_refuse(c, 422, "a webhook refuses it");
        else
                return domain && w->keeps_domain && keep_domain(w, c, r);
        return true;
}

static void on_event(struct world *w, struct fake_conn *c) {
        w->events++;
        w->event_too_early = w->event_too_early || !w->statuses;
        fake_reply(c, 201, NULL, "{\"kind\":\"Event\",\"metadata\":{\"name\":\"e\"}}");
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *kind = NULL;
        if (fake_has(r->path, "/events")) {
                on_event(w, c);
                return;
        }
        if (fake_has(r->path, "/customresourcedefinitions/")) {
                on_crd(w, c, r);
                return;
        }
        if (w->unserved && fake_has(r->path, "/apis/resource.k8s.io/")) {
                w->asked++;
                fake_reply(c, 404, NULL, "404 page not found\n");
                return;
        }
        for (size_t i = 0; !kind && i < ARRAY_LEN(kinds); i++)
                if (fake_has(r->path, kinds[i].plural))
                        kind = kinds[i].kind;
        if (!streq(r->method, "GET")) {
                const char *meta = "\"metadata\":{", *at = strstr(r->body, meta);
                size_t n = at ? (size_t)(at - r->body) + strlen(meta) : 0;
                if (streq(kind, "DaemonSet")) {
                        w->set_writes++;
                        buf_clear(&w->set);
                        buf_adds(&w->set, r->body + n);
                }
                _cleanup_(freep) char *same =
                        xasprintf("%.*s\"resourceVersion\":\"11\",\"generation\":%u,%s", (int)n, r->body,
                                  w->generation ? w->generation : 1, r->body + n);
                if (!answered_by_the_test(w, c, r, kind))
                        fake_reply(c, 200, NULL,
                                   streq(kind, "ComputeDomain") && w->domain ? w->domain : same);
        } else if (kind && fake_query(r, "watch")) {
                w->node_watches += streq(kind, "Node");
                if (streq(kind, "ComputeDomain"))
                        w->domains = c;
                if (streq(kind, "ResourceClaim"))
                        w->claims = c;
                fake_stream(c);
        } else if (kind) {
                reply_list(w, c, r, kind);
        } else {
                fake_reply(c, 404, NULL, "404 page not found\n");
        }
}

static const char *program;

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->output = (struct buf)BUF_INIT(4 << 20);
        w->status = (struct buf)BUF_INIT(1 << 16);
        w->set = (struct buf)BUF_INIT(1 << 16);
        w->crds_exist = true;
        snprintf(w->dir, sizeof w->dir, "/tmp/controller-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        /* An address that no other process on the machine uses. */
        snprintf(w->at, sizeof w->at, "127.%d.%d.2:8080", getpid() >> 8 & 255, getpid() & 255);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *config = file_join(w->dir, "config");
        struct err e;
        process_free(w->controller);
        http_client_free(w->scraper);
        free(w->scraped);
        fake_server_free(w->server);
        uv_run(&w->loop, UV_RUN_DEFAULT); /* until the child has exited */
        loop_end(&w->loop);
        assert_int_equal(file_remove(config, &e), 0);
        assert_int_equal(rmdir(w->dir), 0);
        buf_done(&w->output);
        buf_done(&w->status);
        buf_done(&w->set);
        free(w);
        return 0;
}

static void on_output(void *u, const char *p, size_t n) {
        struct world *w = u;
        buf_add(&w->output, p, n);
}

static bool printed(struct world *w, const char *text) {
        return strstr(buf_str(&w->output), text) != NULL;
}

/* A test that waits for something else then fails with a time-out. */
static void on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct world *w = u;
        size_t n = w->output.n < 900 ? w->output.n : 900;
        w->controller = NULL;
        w->exit_status = exit_status;
        if (exit_status != 0)
                print_error("the controller exited with an error: ...%s",
                            buf_str(&w->output) + w->output.n - n);
}

static void start(struct world *w) {
        _cleanup_(freep) char *path = file_join(w->dir, "config");
        _cleanup_(freep) char *flag = xasprintf("--kubeconfig=%s", path);
        _cleanup_(freep) char *endpoint = xasprintf("--http-endpoint=%s", w->at);
        _cleanup_(freep) char *config =
                xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts:\n- name: x\n"
                          "  context: {cluster: c, user: u}\nclusters:\n- name: c\n"
                          "  cluster: {server: 'http://127.0.0.1:%d'}\nusers:\n- name: u\n  user: {}\n",
                          fake_server_port(w->server));
        struct err e;
        if (file_replace_volatile(path, config, strlen(config), 0600, &e) < 0)
                fail_msg("%s", e.msg);
        const struct process_options o = {
                .argv = (const char *const[]){ program, flag, endpoint, "--pod-name=p", "--namespace=ns",
                                               "--leader-election-enabled",
                                               "--leader-election-lease-lock-namespace=ns", "--image-name=i",
                                               "--log-verbosity-cd-daemon=2", NULL },
                .output = on_output,
                .ended = on_ended,
                .u = w,
        };
        if (process_start(&w->loop, &o, &w->controller, &e) < 0)
                fail_msg("%s", e.msg);
}

/* ---- CustomResourceDefinitions ---- */

/* failure: a webhook refuses the CustomResourceDefinitions -> the controller continues, and retries */
static void a_webhook_that_refuses_the_schema_blocks_nothing_else(void **state) {
        struct world *w = *state;
        w->webhook_is_down = true;
        start(w);
        RUN_UNTIL(&w->loop, w->leases && w->domain_writes && w->node_watches);
        RUN_UNTIL(&w->loop, w->applied > N_CRDS); /* it retries */
}

/* failure: the CustomResourceDefinitions are old -> the leader updates them [upgrade] */
static void the_leader_updates_the_schema(void **state) {
        struct world *w = *state;
        start(w);
        RUN_UNTIL(&w->loop, w->leases && w->applied == N_CRDS);
}

#define SCHEMA_NUMBER(n) ",\"annotations\":{\"resource.nvidia.com/schema\":\"" n "\"}"

/* failure: an older version leads again after a rollback -> it keeps the newer CustomResourceDefinitions
 * [upgrade] */
static void the_leader_keeps_a_newer_schema(void **state) {
        struct world *w = *state;
        w->crd_meta = SCHEMA_NUMBER("1000");
        start(w);
        RUN_UNTIL(&w->loop, w->leases && w->domain_writes && w->looked >= 2 * N_CRDS);
        RUN_UNTIL(&w->loop, printed(w, "its schema is newer than this version's"));
        run_for(&w->loop, 300);
        assert_int_equal(w->applied, 0);
}

static void the_leader_applies_a_schema_with_its_own_number(void **state) {
        struct world *w = *state;
        w->crd_meta = SCHEMA_NUMBER("1");
        start(w);
        RUN_UNTIL(&w->loop, w->leases && w->applied == N_CRDS);
}

/* failure: replicas have two versions -> a standby does not change CustomResourceDefinitions [upgrade] */
static void a_standby_changes_no_schema(void **state) {
        struct world *w = *state;
        w->taken = true;
        start(w);
        RUN_UNTIL(&w->loop, w->looked == N_CRDS && w->domain_lists && w->node_watches);
        run_for(&w->loop, 300);
        assert_int_equal(w->applied, 0);
        assert_int_equal(w->looked, N_CRDS);
}

/* failure: the CustomResourceDefinitions are missing -> a standby creates them, too [upgrade] */
static void a_standby_creates_a_missing_schema(void **state) {
        struct world *w = *state;
        w->taken = true;
        w->crds_exist = false;
        start(w);
        RUN_UNTIL(&w->loop, w->applied == N_CRDS);
        assert_int_equal(w->looked, N_CRDS);
}

/* ---- resource.k8s.io ---- */

/* failure: the API server does not serve resource.k8s.io yet -> the controller waits for it [api-server] */
static void the_controller_waits_for_the_resource_api(void **state) {
        struct world *w = *state;
        w->unserved = true;
        start(w);
        RUN_UNTIL(&w->loop, printed(w, "serves no known version of an API group: retrying"));
        assert_true(printed(w, "group=\"resource.k8s.io\" versions=\"v1, v1beta2, v1beta1\""));
        w->unserved = false;
        RUN_UNTIL(&w->loop, w->domain_writes);
}

/* ---- SIGUSR2 ---- */

static void ask_for_state(struct world *w) {
        size_t before = w->output.n;
        process_signal(w->controller, SIGUSR2);
        RUN_UNTIL(&w->loop, strstr(buf_str(&w->output) + before, "\"end of state\""));
        assert_non_null(w->controller);
}

/* failure: SIGUSR2 is sent to a leader -> it prints its state and continues [programs] */
static void sigusr2_prints_the_state_of_a_leader_that_continues(void **state) {
        struct world *w = *state;
        start(w);
        RUN_UNTIL(&w->loop, w->domain_writes && w->node_watches);
        ask_for_state(w);
        assert_true(printed(w, "\"state\" ending=false resource.k8s.io=\"v1\""));
        assert_true(printed(w, "name=\"nvidia-compute-domain-controller\" identity=\"p_"));
        assert_true(printed(w, "leads=true holder=\"p_"));
        assert_true(printed(w, "\"controller\" started=true leads=true synced=true"));
        assert_true(printed(w, " domains=1 "));
        assert_true(printed(w, " writes_remembered="));
        assert_true(printed(w, "\"cache\" resource=\"computedomains\" namespace=\"\" objects=1 synced=true"));
        assert_true(printed(w, "\"cache\" resource=\"computedomaincliques\" namespace=\"ns\" objects=0"));
        assert_true(printed(w, "\"domain\" namespace=\"u\" name=\"d\""));
        process_signal(w->controller, SIGTERM);
        RUN_UNTIL(&w->loop, !w->controller);
        assert_int_equal(w->exit_status, 0);
}

/* failure: writes fail -> SIGUSR2 prints which, and why [programs] */
static void sigusr2_prints_why_writes_fail(void **state) {
        struct world *w = *state;
        w->refuses_writes = true;
        start(w);
        RUN_UNTIL(&w->loop, w->domain_writes >= 2);
        ask_for_state(w);
        assert_true(printed(
                w, "\"write\" object=\"domain/aaaaaaaa-0000-4000-8000-000000000001|computedomains/u/d/"));
        assert_true(printed(w, "no writes today"));
}

/* failure: SIGUSR2 is sent to a standby -> it prints the leader that it waits for [programs] */
static void sigusr2_prints_the_leader_that_a_standby_waits_for(void **state) {
        struct world *w = *state;
        w->taken = true;
        start(w);
        RUN_UNTIL(&w->loop, w->domain_lists && w->node_watches);
        RUN_UNTIL(&w->loop, printed(w, "leader observed"));
        ask_for_state(w);
        assert_true(printed(w, "leads=false holder=\"another\""));
        assert_true(printed(w, "\"controller\" started=true leads=false synced=true"));
}

/* The controller has not started, because the API server has not answered yet. */
/* failure: SIGUSR2 is sent before the API server has answered -> the controller prints its state [programs]
 * */
static void sigusr2_is_answered_before_the_start(void **state) {
        struct world *w = *state;
        w->unserved = true;
        start(w);
        RUN_UNTIL(&w->loop, w->asked);
        ask_for_state(w);
        assert_true(printed(w, "\"lease\" election=true candidate=false"));
        assert_true(printed(w, "\"controller\" started=false"));
}

/* ---- nodes that cannot be labelled ---- */

static bool status_has(const struct world *w, const char *text) {
        return strstr(buf_str(&w->status), text) != NULL;
}

#define NODE_REFUSED "\"reason\":\"WriteFailed\",\"message\":\"patch Node gpu: a webhook refuses it\""
static void start_with_a_node_that_is_refused(struct world *w) {
        w->keeps_domain = w->node_claimed = w->refuses_node = true;
        start(w);
        RUN_UNTIL(&w->loop, status_has(w, NODE_REFUSED));
}

/* failure: a webhook refuses a Node's label -> the ComputeDomain names the node until it succeeds */
static void a_node_that_cannot_be_labelled_is_named_until_it_is(void **state) {
        struct world *w = *state;
        start_with_a_node_that_is_refused(w);
        w->refuses_node = false;
        RUN_UNTIL(&w->loop, !status_has(w, "WriteFailed"));
}

/* failure: the claim of a node that cannot be labelled is deleted -> the node is named no longer */
static void a_node_that_cannot_be_labelled_is_not_named_without_a_claim(void **state) {
        struct world *w = *state;
        start_with_a_node_that_is_refused(w);
        fake_chunk(w->claims, "{\"type\":\"DELETED\",\"object\":" CLAIM "}\n");
        RUN_UNTIL(&w->loop, !status_has(w, "WriteFailed"));
        assert_true(w->refuses_node);
}

/* ---- a new leader ---- */

static void begin_again(struct world *w, unsigned generation) {
        process_signal(w->controller, SIGTERM);
        RUN_UNTIL(&w->loop, !w->controller);
        w->generation = generation;
        w->domain_writes = w->set_writes = 0;
        start(w);
        RUN_UNTIL(&w->loop, w->domain_writes);
        run_for(&w->loop, 100);
}

/* failure: another controller becomes leader -> it applies only DaemonSets that have changed */
static void a_new_leader_does_not_apply_an_unchanged_daemonset(void **state) {
        struct world *w = *state;
        w->keeps_domain = true;
        start(w);
        RUN_UNTIL(&w->loop, w->set_writes && w->statuses);
        begin_again(w, 1);
        assert_int_equal(w->set_writes, 0);
        begin_again(w, 2); /* another client changed it while no controller was running */
        assert_int_equal(w->set_writes, 1);
}

/* ---- Events ---- */

/* failure: the API server refuses a status -> its Event is sent only after the status is written */
static void an_event_is_sent_after_its_status_is_written(void **state) {
        enum { REFUSALS = 4 };
        struct world *w = *state;
        w->keeps_domain = w->node_claimed = true;
        w->refused_statuses = REFUSALS; /* in the pauses between retries an Event could be sent */
        start(w);
        RUN_UNTIL(&w->loop, w->events);
        assert_int_equal(w->refused_statuses, 0);
        assert_false(w->event_too_early);
}

/* failure: the answer to a status write is lost -> its Event is sent when the cache shows the status */
static void an_event_is_sent_although_the_answer_to_its_status_was_lost(void **state) {
        struct world *w = *state;
        w->keeps_domain = w->node_claimed = true;
        w->lost_statuses = 1;
        start(w);
        RUN_UNTIL(&w->loop, w->events);
        assert_int_equal(w->lost_statuses, 0);
        assert_int_equal(w->statuses, 1);
}

/* ---- metrics ---- */

static void on_scraped(void *u, const struct http_response *r) {
        struct world *w = u;
        free(w->scraped);
        w->scraped = r->status == 200 ? xstrndup(r->body, r->body_len) : xstrdup("");
}

static bool has_line(const struct world *w, const char *line) {
        _cleanup_(freep) char *whole = xasprintf("\n%s\n", line);
        return strstr(w->scraped, whole);
}

static void scrape(struct world *w) {
        free(TAKE(w->scraped));
        http_start(w->scraper, &(struct http_request){ .method = "GET",
                                                       .path = "/metrics",
                                                       .timeout_ms = 30000,
                                                       .done = on_scraped,
                                                       .u = w });
        RUN_UNTIL(&w->loop, w->scraped);
}

static void scrape_until(struct world *w, const char *line, bool is) {
        uint64_t end = uv_hrtime() + 60 * UINT64_C(1000000000);
        for (scrape(w); has_line(w, line) != is; scrape(w))
                if (uv_hrtime() > end)
                        fail_msg("%s '%s' in:\n%s", is ? "no" : "still", line, w->scraped);
}

#define OF_THE_DOMAIN "{domain_namespace=\"u\",domain=\"d\""
static void the_leader_has_metrics_of_each_domain_until_it_is_deleted(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *url = xasprintf("http://%s", w->at);
        struct err e;
        w->domain = DOMAIN_IS("12", "Ready");
        start(w);
        RUN_UNTIL(&w->loop, w->domain_writes && w->domains);
        assert_int_equal(
                http_client_new(&w->loop, &(struct http_client_options){ .base_url = url }, &w->scraper, &e),
                0);
        scrape_until(w, "nvidia_dra_compute_domain_nodes" OF_THE_DOMAIN ",state=\"ready\"} 0", true);
        scrape_until(w, "nvidia_dra_compute_domain_ready" OF_THE_DOMAIN "} 1", true);
        assert_true(has_line(w, "nvidia_dra_compute_domain_not_ready_seconds" OF_THE_DOMAIN "} 0"));
        assert_true(has_line(w, "nvidia_dra_compute_domain_peers_missing" OF_THE_DOMAIN "} 0"));
        assert_true(has_line(w, "nvidia_dra_compute_domain_without_series 0"));
        assert_true(has_line(w, "nvidia_dra_compute_domain_info{status=\"Ready\"} 1"));
        /* One node has a GPU, and no plugin has published a ResourceSlice for it. */
        assert_true(has_line(w, "nvidia_dra_compute_domain_gpu_nodes{plugin=\"missing\"} 1"));
        assert_true(has_line(w, "nvidia_dra_compute_domain_gpu_nodes{plugin=\"present\"} 0"));
        assert_true(has_line(
                w, "nvidia_dra_kube_requests_total{verb=\"watch\",resource=\"nodes\",code=\"200\"} 1"));
        w->domain = DOMAIN_IS("13", "NotReady");
        fake_chunk(w->domains, "{\"type\":\"MODIFIED\",\"object\":" DOMAIN_IS("13", "NotReady") "}\n");
        scrape_until(w, "nvidia_dra_compute_domain_ready" OF_THE_DOMAIN "} 0", true);
        assert_false(has_line(w, "nvidia_dra_compute_domain_not_ready_seconds" OF_THE_DOMAIN "} 0"));
        fake_chunk(w->domains, "{\"type\":\"DELETED\",\"object\":" DOMAIN_IS("14", "NotReady") "}\n");
        scrape_until(w, "nvidia_dra_compute_domain_info{status=\"NotReady\"} 0", true);
        assert_null(strstr(w->scraped, "domain=\"d\""));
}

static void a_standby_has_no_metrics_of_domains(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *url = xasprintf("http://%s", w->at);
        struct err e;
        w->taken = true;
        start(w);
        RUN_UNTIL(&w->loop, w->domain_lists && w->domains);
        assert_int_equal(
                http_client_new(&w->loop, &(struct http_client_options){ .base_url = url }, &w->scraper, &e),
                0);
        scrape(w);
        assert_true(has_line(w, "nvidia_dra_compute_domain_controller_leader 0"));
        assert_null(strstr(w->scraped, "domain=\"d\""));
        assert_null(strstr(w->scraped, "nvidia_dra_compute_domain_gpu_nodes"));
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_webhook_that_refuses_the_schema_blocks_nothing_else, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_leader_updates_the_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(the_leader_keeps_a_newer_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(the_leader_applies_a_schema_with_its_own_number, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_standby_changes_no_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(a_standby_creates_a_missing_schema, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_cannot_be_labelled_is_named_until_it_is, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_node_that_cannot_be_labelled_is_not_named_without_a_claim,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_new_leader_does_not_apply_an_unchanged_daemonset, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_event_is_sent_after_its_status_is_written, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_event_is_sent_although_the_answer_to_its_status_was_lost,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(the_leader_has_metrics_of_each_domain_until_it_is_deleted,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_standby_has_no_metrics_of_domains, setup, teardown),
                cmocka_unit_test_setup_teardown(the_controller_waits_for_the_resource_api, setup, teardown),
                cmocka_unit_test_setup_teardown(sigusr2_prints_the_state_of_a_leader_that_continues, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(sigusr2_prints_why_writes_fail, setup, teardown),
                cmocka_unit_test_setup_teardown(sigusr2_prints_the_leader_that_a_standby_waits_for, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(sigusr2_is_answered_before_the_start, setup, teardown),
        };
        program = argc > 1 ? argv[1] : "compute-domain-controller";
        return cmocka_run_group_tests(tests, NULL, NULL);
}
