/* SPDX-License-Identifier: Apache-2.0 */
/* The controller watches only the metadata of Nodes. It reads a Node again when the rest may have changed. */
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
#include "controller/node_reads.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define BOOT_1 "bbbbbbbb-8f4e-4f0e-9f0a-000000000001"
#define BOOT_2 "bbbbbbbb-8f4e-4f0e-9f0a-000000000002"
#define TAINTS(manager, time)                                                                                \
        "{\"manager\":\"" manager "\",\"time\":\"2026-01-01T00:00:" time                                     \
        "Z\",\"fieldsV1\":{\"f:spec\":{\"f:taints\":{}}}}"

enum { MANY = 300 };

struct world {
        struct leading l;
        unsigned n_nodes;                       /* n0, n1, ... */
        unsigned version;                       /* of n0 */
        const char *writers;                    /* managedFields of n0 */
        const char *spec, *ready, *boot_id;     /* of n0 */
        bool assigned;                          /* the fabric object lists an assignment on n0 */
        const char *daemon_ready, *daemon_boot; /* of the Pod on n0; NULL: there is none */
        unsigned started;                       /* when its container has started */
        struct fake_conn *nodes, *pods;         /* watches */
        char accept[512];                       /* of the watch of Nodes */
        unsigned gets, lists, refusals;
        bool holds; /* GETs wait in `held` */
        struct fake_conn *held;
};

static char *metadata(const struct world *w, unsigned i, unsigned version) {
        return xasprintf(
                "\"metadata\":{\"name\":\"n%u\",\"uid\":\"u%u\",\"resourceVersion\":\"%u\",\"annotations\":{"
                "\"" CD_ANNOTATION_CLIQUE "\":\"" CLIQUE "\"},\"managedFields\":[%s]}",
                i, i, version, i ? "" : w->writers);
}

static char *whole(const struct world *w, unsigned i, unsigned version) {
        _cleanup_(freep) char *meta = metadata(w, i, version);
        return xasprintf(
                "{\"kind\":\"Node\",\"apiVersion\":\"v1\",%s,\"spec\":{%s},\"status\":{\"nodeInfo\":{"
                "\"bootID\":\"%s\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
                meta, i ? "" : w->spec, i ? BOOT_1 : w->boot_id, i ? "True" : w->ready);
}

static char *nodes_list(const struct world *w) {
        struct buf b = BUF_INIT(1 << 20);
        for (unsigned i = 0; i < w->n_nodes; i++) {
                _cleanup_(freep) char *node = whole(w, i, w->version);
                buf_addf(&b, "%s%s", i ? "," : "", node);
        }
        return buf_steal(&b);
}

static char *pod(const struct world *w, unsigned version) {
        return xasprintf(
                "{\"metadata\":{\"namespace\":\"driver\",\"name\":\"d\",\"uid\":\"p\",\"resourceVersion\":\"%"
                "u\","
                "\"labels\":{\"" CD_LABEL_CLIQUE "\":\"" CLIQUE
                "\"},\"annotations\":{\"" IMEX_ANNOTATION_REPORT "\":\"{\\\"claimUID\\\":\\\"" DOMAIN
                "\\\",\\\"bootID\\\":\\\"%s\\\"}\"}},"
                "\"spec\":{\"nodeName\":\"n0\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{"
                "\"type\":\"Ready\",\"status\":\"%s\"}],\"containerStatuses\":[{\"state\":{\"running\":{"
                "\"startedAt\":\"2026-01-01T00:00:%02uZ\"}}}]}}",
                version, w->daemon_boot, w->daemon_ready, w->started);
}

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/nodes")) {
                w->lists++;
                return nodes_list(w);
        }
        if (fake_has(path, "/pods") && fake_has(path, "component%3D"))
                return w->daemon_ready ? pod(w, 1) : NULL;
        if (fake_has(path, "/computedomainfabrics") && w->assigned)
                return xstrdup(
                        "{\"metadata\":{\"name\":\"" CLIQUE "\",\"uid\":\"f\",\"resourceVersion\":\"1\"},"
                        "\"tableOf\":\"f\",\"nodes\":1,\"domains\":[{\"owner\":{\"kind\":\"ComputeDomain\","
                        "\"namespace\":\"user\",\"name\":\"d\",\"uid\":\"" DOMAIN
                        "\"},\"infix\":\"0000000001\",\"slots\":18,\"port\":50000,\"assignments\":[{"
                        "\"node\":\"n0\",\"index\":0,\"epoch\":1}]}]}");
        return NULL;
}

static void answer_get(struct world *w, struct fake_conn *c, unsigned i) {
        _cleanup_(freep) char *node = whole(w, i, w->version);
        fake_reply(c, 200, NULL, node);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        unsigned i;
        if (!streq(r->method, "GET")) {
                fake_refuse(c, 403, "not in this test");
        } else if (sscanf(r->path, "/api/v1/nodes/n%u", &i) == 1) {
                w->gets++;
                if (w->refusals && w->refusals--)
                        fake_refuse(c, 403, "not you");
                else if (w->holds)
                        w->held = c;
                else
                        answer_get(w, c, i);
        } else {
                leading_read(c, r, items_of, w);
                if (fake_has(r->path, "/nodes") && fake_query(r, "watch")) {
                        w->nodes = c;
                        snprintf(w->accept, sizeof w->accept, "%s", r->head);
                }
                if (fake_has(r->path, "/pods") && fake_has(r->path, "component%3D") && fake_query(r, "watch"))
                        w->pods = c;
        }
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->n_nodes = 2;
        w->version = 5;
        w->writers = w->spec = "";
        w->ready = "True";
        w->boot_id = w->daemon_boot = BOOT_1;
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "", NULL);
        *state = w;
        return 0;
}

static void start(struct world *w) {
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->nodes && w->pods);
        assert_true(fake_has(w->accept, "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
        assert_int_equal(w->gets, 0);
        w->lists = 0;
}

static const struct node *n0(struct world *w) {
        return records_node(&w->l.c, "n0");
}

static void send_metadata(struct world *w, unsigned i, unsigned version) {
        _cleanup_(freep) char *meta = metadata(w, i, version),
                              *event = xasprintf(
                                      "{\"type\":\"MODIFIED\",\"object\":{\"kind\":"
                                      "\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",%s}}\n",
                                      meta);
        fake_chunk(w->nodes, event);
}

/* The Node has changed. Waits until the watch has delivered its metadata and all reads are answered. */
static void change(struct world *w) {
        char rv[16];
        snprintf(rv, sizeof rv, "%u", ++w->version);
        send_metadata(w, 0, w->version);
        RUN_UNTIL(&w->l.loop, n0(w) && streq(n0(w)->o.meta.rv, rv) && !node_reads_count(w->l.c.node_reads));
}

static void send_pod(struct world *w) {
        static unsigned version = 20;
        _cleanup_(freep) char *text = pod(w, ++version),
                              *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", text);
        fake_chunk(w->pods, event);
        run_for(&w->l.loop, 20);
}

static void a_heartbeat_of_a_kubelet_costs_no_read(void **state) {
        struct world *w = *state;
        w->writers = TAINTS("kubelet", "01");
        start(w);
        change(w);
        change(w);
        assert_true(node_ready(n0(w)) && n0(w)->partial);
        assert_string_equal(node_boot_id(n0(w)), BOOT_1);
        assert_int_equal(w->gets + w->lists, 0);
}

/* The controller manager taints a Node that is not Ready. It removes the taint after the kubelet has reported
 * Ready. */
static void a_node_that_becomes_not_ready_is_read_until_it_is_ready(void **state) {
        struct world *w = *state;
        start(w);
        w->ready = "Unknown";
        w->writers = TAINTS("kube-controller-manager", "01");
        change(w);
        assert_int_equal(w->gets, 1);
        assert_false(node_ready(n0(w)));
        change(w);
        assert_int_equal(w->gets, 2);
        w->ready = "True";
        change(w);
        assert_int_equal(w->gets, 3);
        assert_true(node_ready(n0(w)));
        w->writers = "";
        change(w);
        assert_int_equal(w->gets, 4); /* the taint was removed */
        change(w);
        assert_int_equal(w->gets, 4);
}

/* failure: a powered-off node has the out-of-service taint -> it counts as absent [powered-off] */
static void the_out_of_service_taint_is_seen_on_any_node(void **state) {
        struct world *w = *state;
        w->writers = TAINTS("kubelet", "01");
        start(w);
        w->spec = "\"taints\":[{\"key\":\"" NODE_TAINT_OUT_OF_SERVICE "\"}]";
        w->writers = TAINTS("kubectl-taint", "01");
        change(w);
        assert_true(node_out_of_service(n0(w)));
        w->spec = "";
        change(w); /* in the same second, by the same client */
        assert_false(node_out_of_service(n0(w)));
        assert_int_equal(w->gets, 2);
}

static void a_cordon_is_seen(void **state) {
        struct world *w = *state;
        start(w);
        w->spec = "\"unschedulable\":true";
        w->writers = "{\"manager\":\"kubectl-cordon\",\"time\":\"2026-01-01T00:00:01Z\",\"fieldsV1\":{"
                     "\"f:spec\":{\"f:unschedulable\":{}}}}";
        change(w);
        assert_true(n0(w)->unschedulable);
        w->spec = w->writers = "";
        change(w);
        assert_false(n0(w)->unschedulable);
        change(w);
        assert_int_equal(w->gets, 2);
}

static void a_read_that_a_newer_change_overtakes_is_repeated(void **state) {
        struct world *w = *state;
        start(w);
        w->holds = true;
        w->ready = "Unknown";
        w->writers = TAINTS("kube-controller-manager", "01");
        send_metadata(w, 0, ++w->version);
        RUN_UNTIL(&w->l.loop, w->held);
        unsigned old = w->version;
        send_metadata(w, 0, ++w->version);
        run_for(&w->l.loop, 20);
        assert_int_equal(w->gets, 1);
        assert_true(node_ready(n0(w)));
        w->holds = false;
        _cleanup_(freep) char *node = whole(w, 0, old);
        fake_reply(w->held, 200, NULL, node);
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_int_equal(w->gets, 2);
        assert_false(node_ready(n0(w)));
}

/* failure: a Node cannot be read -> the controller keeps what it knew of it, and reads again [api-server] */
static void a_read_that_fails_changes_nothing_and_is_retried(void **state) {
        struct world *w = *state;
        start(w);
        w->refusals = 1;
        w->ready = "Unknown";
        w->writers = TAINTS("kube-controller-manager", "01");
        send_metadata(w, 0, ++w->version);
        RUN_UNTIL(&w->l.loop, w->gets);
        run_for(&w->l.loop, 20);
        assert_true(node_ready(n0(w)));
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_int_equal(w->gets, 2);
        assert_false(node_ready(n0(w)));
}

static void a_new_node_is_read_and_not_ready_until_then(void **state) {
        struct world *w = *state;
        w->n_nodes = 0;
        start(w);
        w->holds = true;
        send_metadata(w, 0, ++w->version);
        RUN_UNTIL(&w->l.loop, w->held);
        assert_false(node_ready(n0(w)));
        answer_get(w, w->held, 0);
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_true(node_ready(n0(w)));
}

static void a_deleted_node_is_not_read_again(void **state) {
        struct world *w = *state;
        start(w);
        w->refusals = 1;
        w->writers = TAINTS("kube-controller-manager", "01");
        send_metadata(w, 0, ++w->version);
        RUN_UNTIL(&w->l.loop, w->gets);
        _cleanup_(freep) char *meta = metadata(w, 0, ++w->version),
                              *event = xasprintf("{\"type\":\"DELETED\",\"object\":{\"kind\":"
                                                 "\"PartialObjectMetadata\",%s}}\n",
                                                 meta);
        fake_chunk(w->nodes, event);
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_int_equal(w->gets, 1);
        assert_null(n0(w));
}

/* The same client taints the Node twice in a second, so managedFields does not show the second change. */
static void a_change_that_metadata_does_not_show_is_seen_within_38_minutes(void **state) {
        struct world *w = *state;
        w->writers = TAINTS("kubectl-taint", "01");
        start(w);
        w->spec = "\"taints\":[{\"key\":\"" NODE_TAINT_OUT_OF_SERVICE "\"}]";
        change(w);
        assert_false(node_out_of_service(n0(w)));
        for (unsigned s = 0; s < 38 * 60; s += 60) {
                fake_chunk(w->nodes, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"PartialObjectMetadata\","
                                     "\"metadata\":{\"resourceVersion\":\"10\"}}}\n");
                run_for(&w->l.loop, 60000);
        }
        assert_true(node_out_of_service(n0(w)));
        assert_int_equal(w->gets, 0);
        assert_in_range(w->lists, 1, 2);
}

/* A whole zone becomes unreachable. The requests also use up the rate limit of the writes. */
static void many_changed_nodes_are_read_by_a_list(void **state) {
        struct world *w = *state;
        w->n_nodes = MANY;
        start(w);
        for (unsigned i = 1; i < MANY; i++) {
                _cleanup_(freep) char *event = xasprintf(
                        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"metadata\":{"
                        "\"name\":"
                        "\"n%u\",\"uid\":\"u%u\",\"resourceVersion\":\"6\",\"managedFields\":[" TAINTS(
                                "kube-controller-manager", "01") "]}}}\n",
                        i, i);
                fake_chunk(w->nodes, event);
        }
        w->version = 7;
        RUN_UNTIL(&w->l.loop, w->lists);
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_int_equal(w->lists, 1);
        assert_in_range(w->gets, 1, 16);
        assert_false(records_node(&w->l.c, "n299")->partial);
}

/* failure: a node reboots so fast that its Node stays Ready -> the controller sees the new boot ID
 * [rebooted] */
static void a_reboot_is_seen_by_the_restart_of_the_daemon(void **state) {
        struct world *w = *state;
        w->assigned = true;
        w->daemon_ready = "True";
        start(w);
        change(w);
        assert_int_equal(w->gets, 0);
        w->boot_id = BOOT_2;
        change(w); /* the kubelet reports the boot, and the daemon's Pod is still Ready */
        assert_int_equal(w->gets, 0);
        w->started++;
        send_pod(w);
        RUN_UNTIL(&w->l.loop, !node_reads_count(w->l.c.node_reads));
        assert_int_equal(w->gets, 1);
        assert_string_equal(node_boot_id(n0(w)), BOOT_2);
}

static void a_reboot_is_seen_while_the_daemon_is_not_ready(void **state) {
        struct world *w = *state;
        w->assigned = true;
        w->daemon_ready = "False";
        start(w);
        w->boot_id = BOOT_2;
        change(w);
        assert_int_equal(w->gets, 1);
        assert_string_equal(node_boot_id(n0(w)), BOOT_2);
}

static void a_reboot_is_seen_by_the_report_of_the_daemon(void **state) {
        struct world *w = *state;
        w->daemon_ready = "True";
        start(w);
        w->boot_id = w->daemon_boot = BOOT_2;
        send_pod(w); /* before the kubelet reports the boot */
        assert_int_equal(w->gets, 0);
        change(w);
        assert_int_equal(w->gets, 1);
        assert_string_equal(node_boot_id(n0(w)), BOOT_2);
        change(w);
        assert_int_equal(w->gets, 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(a_heartbeat_of_a_kubelet_costs_no_read),
                T(a_node_that_becomes_not_ready_is_read_until_it_is_ready),
                T(the_out_of_service_taint_is_seen_on_any_node),
                T(a_cordon_is_seen),
                T(a_read_that_a_newer_change_overtakes_is_repeated),
                T(a_read_that_fails_changes_nothing_and_is_retried),
                T(a_new_node_is_read_and_not_ready_until_then),
                T(a_deleted_node_is_not_read_again),
                T(a_change_that_metadata_does_not_show_is_seen_within_38_minutes),
                T(many_changed_nodes_are_read_by_a_list),
                T(a_reboot_is_seen_by_the_restart_of_the_daemon),
                T(a_reboot_is_seen_while_the_daemon_is_not_ready),
                T(a_reboot_is_seen_by_the_report_of_the_daemon),
        };
        return cmocka_run_group_tests_name("node_reads", tests, NULL, NULL);
}
