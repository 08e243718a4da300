/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller, and pods on nodes whose IMEX has failed. */
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
#include "controller/evictions.h"

#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

#define PLUGINS "labelSelector=app%3Dplugin"

enum { AFTER_MIN = 10, AFTER_MS = AFTER_MIN * 60000, BODY = 4096 };

struct world {
        struct leading l;
        const char *states[3]; /* of IMEX on the nodes n0 to n2; NULL: not reported */
        const char *node;      /* of the pod */
        const char *more;      /* in the metadata of the pod */
        const char *consumer;  /* the resource that the claim is reserved for, its name is "worker" */
        const char *group;     /* of the pod; NULL: none */
        const char *ns;        /* of the claim */
        const char
                *shared; /* names of the shared claims in the order of the list; NULL: the claim is of n1 */
        bool hidden;     /* the API server serves no list and no watch of the plugins */
        int refuses;     /* the status with which the API server refuses evictions; 0: none */
        struct fake_conn *plugins;
        unsigned version, n_evicted, n_refused, n_reads, n_lists;
        char eviction[BODY], path[BODY], event[BODY];
};

static void add_plugin(const struct world *w, struct buf *b, int i) {
        buf_addf(
                b,
                "{\"metadata\":{\"name\":\"plugin-%d\",\"namespace\":\"driver\",\"uid\":\"plugin-%d\","
                "\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{",
                i, i, 11 + w->version);
        if (w->states[i])
                buf_addf(b,
                         "\"" IMEX_ANNOTATION_HOST_STATE "\":\"%s\",\"" IMEX_ANNOTATION_HOST_REASON
                         "\":\"it has crashed\"",
                         w->states[i]);
        if (w->shared && i == 1)
                buf_adds(b, ",\"" IMEX_ANNOTATION_HOST_CHANNELS
                            "\":\"{\\\"x\\\":{\\\"uid\\\":\\\"\\\",\\\"asks\\\":[\\\"" DOMAIN "\\\"]}}\"");
        buf_addf(b,
                 "}},\"spec\":{\"nodeName\":\"n%d\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{"
                 "\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}",
                 i);
}

#define POD_GROUP "podgroups\",\"apiGroup\":\"scheduling.k8s.io"

#define CLAIM                                                                                                \
        "{%s\"metadata\":{\"name\":\"%c\",\"namespace\":\"%s\",\"uid\":\"claim-%c\",\"resourceVersion\":"    \
        "\"2\"},"                                                                                            \
        "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"" CD_DRIVER   \
        "\",\"pool\":\"%s\",\"device\":\"%s\"}],\"config\":[{\"source\":\"FromClaim\",\"opaque\":{"          \
        "\"driver\":\"" CD_DRIVER "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                      \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\"%s}}}]}},\"reservedFor\":[{\"resource\":\"%s\",\"name\":\"%s\",\"uid\":\"w\"}]}}"

/* The worker's claim is c. */
static void add_claim(const struct world *w, const char *members, char name, struct buf *b) {
        buf_addf(b, CLAIM, members, name, w->ns, name, w->shared ? CD_POOL_SHARED : "n1",
                 w->shared ? CD_DEVICE_SHARED : "channel-0", w->shared ? ",\"isolation\":\"Channel\"" : "",
                 w->consumer, name == 'c' ? "worker" : "others");
}

static char *items_of(void *u, const char *path) {
        const struct world *w = u;
        _cleanup_(buf_done) struct buf b = BUF_INIT(16384);
        for (int i = 0; i < 3 && fake_has(path, "/nodes"); i++)
                buf_addf(&b,
                         "%s{\"metadata\":{\"name\":\"n%d\",\"uid\":\"n%d\",\"resourceVersion\":\"1\"},"
                         "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                         i ? "," : "", i, i);
        for (int i = 0; i < 3 && fake_has(path, "/pods") && fake_has(path, PLUGINS); i++) {
                buf_adds(&b, i ? "," : "");
                add_plugin(w, &b, i);
        }
        if (fake_has(path, "/resourceclaims"))
                for (const char *name = w->shared ? w->shared : "c"; *name; name++) {
                        buf_adds(&b, b.n ? "," : "");
                        add_claim(w, "", *name, &b);
                }
        if (fake_has(path, "/computedomains"))
                buf_adds(&b, "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                             "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER
                             "\"]},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t\"}}}}");
        return b.n ? xstrdup(buf_str(&b)) : NULL;
}

static void on_read(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *claim = strstr(r->path, "/resourceclaims/");
        if (claim) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(BODY);
                add_claim(w, "\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",",
                          claim[strlen("/resourceclaims/")], &b);
                w->n_reads++;
                fake_reply(c, 200, NULL, buf_str(&b));
        } else if (fake_has(r->path, "spec.nodeName")) {
                _cleanup_(freep) char *list = xasprintf(
                        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"}"
                        ","
                        "\"items\":[{\"metadata\":{\"name\":\"alone\",\"uid\":\"a\"},\"spec\":{}},"
                        "{\"metadata\":{\"name\":\"worker\",\"uid\":\"w\"},\"spec\":{\"schedulingGroup\":{"
                        "\"podGroupName\":\"%s\"}}}]}",
                        w->group);
                assert_non_null(strstr(r->path, "/namespaces/team-a/pods"));
                assert_non_null(strstr(r->path, "spec.nodeName%3Dn1"));
                w->n_lists++;
                fake_reply(c, 200, NULL, list);
        } else if (fake_has(r->path, "/pods/worker")) {
                _cleanup_(freep) char *pod = xasprintf(
                        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"worker\","
                        "\"namespace\":\"team-a\",\"uid\":\"w\"%s},\"spec\":{\"nodeName\":\"%s\","
                        "\"resourceClaims\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"}}",
                        w->more, w->node);
                fake_reply(c, 200, NULL, pod);
        } else if (w->hidden && fake_has(r->path, "/pods") && fake_has(r->path, PLUGINS)) {
                fake_refuse(c, 429, "too many requests");
        } else {
                if (fake_query(r, "watch") && fake_has(r->path, "/pods") && fake_has(r->path, PLUGINS))
                        w->plugins = c;
                leading_read(c, r, items_of, w);
        }
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->method, "GET")) {
                on_read(w, c, r);
        } else if (!fake_has(r->path, "/eviction")) {
                if (fake_has(r->path, "/events") && fake_has(r->body, "Evict"))
                        snprintf(w->event, sizeof w->event, "%s", r->body);
                fake_refuse(c, 403, "not in this test");
        } else if (w->refuses) {
                w->n_refused++;
                fake_refuse(c, w->refuses, "it would violate the pod's disruption budget");
        } else {
                w->n_evicted++;
                w->more = ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"";
                snprintf(w->eviction, sizeof w->eviction, "%s", r->body);
                snprintf(w->path, sizeof w->path, "%s", r->path);
                fake_reply(c, 201, NULL,
                           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\",\"code\":201}");
        }
}

/* The plugin of the node reports this state from now on. */
static void report(struct world *w, int node, const char *state) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(BODY);
        w->states[node] = state;
        w->version++;
        buf_adds(&b, "{\"type\":\"MODIFIED\",\"object\":");
        add_plugin(w, &b, node);
        buf_adds(&b, "}\n");
        assert_true(fake_is_open(w->plugins));
        fake_chunk(w->plugins, buf_str(&b));
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        *w = (struct world){
                .states = { "UP", "DOWN", "UP" }, .node = "n1", .more = "", .consumer = "pods", .ns = "team-a"
        };
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "");
        w->l.config.evict_after_min = AFTER_MIN;
        *state = w;
        return 0;
}

/* Long enough for evictions. A watch without bookmarks becomes stale sometimes, and that time does not count.
 */
static void pass(struct world *w) {
        run_for(&w->l.loop, 2 * AFTER_MS);
}

/* failure: IMEX of a node stays down, with imex.evictAfterMinutes -> its pods with a channel are evicted */
static void a_pod_on_a_node_with_failed_IMEX_is_evicted(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        run_for(&w->l.loop, AFTER_MS - 20000);
        assert_int_equal(w->n_reads + w->n_evicted, 0);
        RUN_UNTIL(&w->l.loop, w->n_evicted && *w->event);
        assert_string_equal(w->path, "/api/v1/namespaces/team-a/pods/worker/eviction");
        assert_string_equal(w->eviction,
                            "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":"
                            "\"worker\",\"namespace\":\"team-a\"},\"deleteOptions\":{\"preconditions\":{"
                            "\"uid\":\"w\"}}}");
        assert_non_null(strstr(w->event, "EvictedForIMEX"));
        assert_non_null(strstr(w->event, "node n1 has not been READY for 10 minutes (DOWN: it has crashed)"));
        pass(w);
        assert_int_equal(w->n_evicted, 1); /* it is being deleted */
}

/* failure: a PodDisruptionBudget protects a pod whose IMEX has failed -> an Event names it, and the
 * controller tries again */
static void a_refused_eviction_is_reported_and_tried_again(void **state) {
        struct world *w = *state;
        w->refuses = 429;
        leading_start(&w->l);
        pass(w);
        assert_non_null(strstr(w->event, "EvictionRefused"));
        assert_non_null(strstr(w->event, "disruption budget"));
        unsigned n = w->n_refused;
        run_for(&w->l.loop, 5 * EVICTIONS_AGAIN_S * 1000);
        assert_in_range(w->n_refused - n, 2, 5);
        w->refuses = 0;
        RUN_UNTIL(&w->l.loop, w->n_evicted);
}

/* failure: a webhook or RBAC refuses to evict a pod whose IMEX has failed -> an Event has the answer */
static void each_refusal_is_reported(void **state) {
        static const int codes[] = { 403, 500 };
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                struct world *w;
                setup((void **)&w);
                w->refuses = codes[i];
                leading_start(&w->l);
                pass(w);
                assert_true(w->n_refused);
                assert_non_null(strstr(w->event, "EvictionRefused"));
                assert_non_null(strstr(w->event, "it would violate"));
                assert_non_null(strstr(w->event, "change the webhook, policy or right that refuses it"));
                assert_non_null(strstr(w->event, "\"uid\":\"w\""));
                leading_teardown((void **)&w);
        }
        (void)state;
}

/* failure: IMEX fails for a while only -> no pod is evicted */
static void a_failure_that_ends_evicts_nothing(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        for (int i = 0; i < 3; i++) {
                run_for(&w->l.loop, AFTER_MS - 30000);
                report(w, 1, i == 1 ? NULL : "UP");
                run_for(&w->l.loop, 20000);
                report(w, 1, "DOWN");
                assert_int_equal(w->n_evicted, 0);
        }
        pass(w);
        assert_int_equal(w->n_evicted, 1);
}

/* failure: the plugins' reports cannot be read for a while -> no pod is evicted because of an old one */
static void an_old_report_evicts_nothing(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        run_for(&w->l.loop, AFTER_MS - 20000);
        w->hidden = true;
        fake_end(w->plugins);
        pass(w);
        assert_int_equal(w->n_evicted, 0);
        w->hidden = false;
        RUN_UNTIL(&w->l.loop, w->n_evicted);
}

/* failure: IMEX of a node stays down -> a pod whose claim is reserved for its PodGroup is evicted, too */
static void a_pod_of_a_group_is_evicted(void **state) {
        struct world *w = *state;
        w->consumer = POD_GROUP;
        w->group = "worker";
        leading_start(&w->l);
        pass(w);
        assert_int_equal(w->n_evicted, 1);
        assert_in_range(w->n_lists, 1, 20);
        assert_string_equal(w->path, "/api/v1/namespaces/team-a/pods/worker/eviction");
}

/* failure: a ComputeDomain has several shared claims -> the pods of each are evicted */
static void each_shared_claim_of_a_domain_counts(void **state) {
        static const char *const orders[] = { "cd", "dc" };
        for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
                struct world *w;
                setup((void **)&w);
                leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
                w->shared = orders[i];
                w->consumer = POD_GROUP;
                w->group = "worker";
                leading_start(&w->l);
                pass(w);
                assert_int_equal(w->n_evicted, 1);
                leading_teardown((void **)&w);
        }
        (void)state;
}

static void pods_that_must_stay_are_not_evicted(void **state) {
        enum { OFF, SILENT, DEGRADED, MOST_FAIL, MOVED, OF_DAEMON_SET, GROUP, OTHER_NAMESPACE, ROWS };
        for (int row = 0; row < ROWS; row++) {
                struct world *w;
                setup((void **)&w);
                w->l.config.evict_after_min = row == OFF ? 0 : AFTER_MIN;
                w->states[1] = row == SILENT ? NULL : row == DEGRADED ? "DEGRADED" : "DOWN";
                w->states[2] = row == MOST_FAIL ? "DOWN" : "UP";
                if (row == MOVED)
                        w->node = "n2";
                if (row == OF_DAEMON_SET)
                        w->more = ",\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"name\":\"d\"}]";
                if (row == GROUP) {
                        w->consumer = POD_GROUP;
                        w->group = "other";
                }
                if (row == OTHER_NAMESPACE)
                        w->ns = "team-b";
                leading_start(&w->l);
                pass(w);
                if (w->n_evicted)
                        fail_msg("row %d", row);
                assert_int_equal(w->n_reads > 0, row == MOVED || row == OF_DAEMON_SET || row == GROUP);
                leading_teardown((void **)&w);
        }
        (void)state;
}

static void a_standby_evicts_nothing(void **state) {
        struct world *w = *state;
        leading_stand_by(&w->l);
        pass(w);
        assert_int_equal(w->n_reads + w->n_evicted, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, leading_teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_pod_on_a_node_with_failed_IMEX_is_evicted),
                T(a_refused_eviction_is_reported_and_tried_again),
                cmocka_unit_test(each_refusal_is_reported),
                T(a_failure_that_ends_evicts_nothing),
                T(an_old_report_evicts_nothing),
                T(a_pod_of_a_group_is_evicted),
                T(each_shared_claim_of_a_domain_counts),
                cmocka_unit_test(pods_that_must_stay_are_not_evicted),
                T(a_standby_evicts_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
