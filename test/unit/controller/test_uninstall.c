/* SPDX-License-Identifier: Apache-2.0 */
/* What `compute-domain-controller uninstall` deletes, in which order, and what it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "api/names.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/uninstall.h"

#define SCALE "/apis/apps/v1/namespaces/ns/deployments/the-controller/scale"
#define SET "/apis/apps/v1/namespaces/ns/daemonsets/compute-domain-daemon"
#define SLICE "/apis/resource.k8s.io/v1/resourceslices/" CD_SLICE_SHARED
#define NODES "/api/v1/nodes"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"
#define POD(name, version, annotations)                                                                      \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" name         \
        "\",\"resourceVersion\":\"" version "\",\"annotations\":{" annotations                               \
        "}},\"spec\":{\"nodeName\":\"node-of-" name "\"}}"
#define REPORT(assignment, ready, held)                                                                      \
        "\"imex.resource.nvidia.com/report\":\"{\\\"claimUID\\\":\\\"bbbbbbbb-0000-4000-8000-000000000001"   \
        "\\\",\\\"bootID\\\":\\\"cccccccc-0000-4000-8000-000000000001\\\",\\\"fabricUID\\\":\\\"\\\","       \
        "\\\"assignment\\\":\\\"" assignment "\\\",\\\"ready\\\":" ready                                     \
        ",\\\"left\\\":\\\"\\\",\\\"seen\\\":3,\\\"recount\\\":0,\\\"served\\\":false,\\\"waitsFor\\\":"     \
        "\\\"" held "\\\"}\""
#define ASSIGNMENT "dddddddd-0000-4000-8000-000000000001.1/" DOMAIN "/0/3"
/* Daemons: without a report; IMEX starts; without an assignment; IMEX is READY; and also a claim is prepared.
 */
#define NEW POD("new", "1", "")
#define FORMING POD("forming", "1", REPORT(ASSIGNMENT, "false", ""))
#define FREE POD("free", "1", REPORT("", "false", ""))
#define STANDING(version) POD("standing", version, REPORT(ASSIGNMENT, "true", ""))
#define KEPT(version) POD("standing", version, REPORT(ASSIGNMENT, "true", "what-keeps-it"))

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct uninstall *uninstall;
        const char *controllers, *daemons; /* items of lists */
        const char *ended_controllers;     /* a list that includes Pods that have ended */
        struct fake_conn *controller_watch, *daemon_watch;
        bool nothing_exists, refuses_scale, refuses_delete; /* answers of the API server */
        unsigned away;                                      /* requests that get no answer */
        bool scaled, deleted, done, failed;
        unsigned slice_code; /* the answer to the deletion of the slice of shared claims; 0: 200 */
        bool slice_deleted;
        unsigned n_nodes;    /* with the label of shared claims */
        unsigned nodes_code; /* the answer to the list; 0: 200 */
        unsigned label_code; /* the answer to the first removal of a label; 0: 200 */
        bool labels_hang;        /* removals of labels get no answer */
        unsigned n_unlabelled, n_refused, n_hung;
        struct err e;
};

static void on_pods(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool daemons =
                streq(fake_query(r, "labelSelector"), "app.kubernetes.io/component=compute-domain-daemon");
        bool with_ended = !streq(fake_query(r, "fieldSelector"), "status.phase!=Succeeded,status.phase!=Failed");
        if (!daemons)
                assert_string_equal(fake_query(r, "labelSelector"), "app=the-controller");
        if (fake_query(r, "watch")) {
                fake_stream(c);
                *(daemons ? &w->daemon_watch : &w->controller_watch) = c;
                return;
        }
        _cleanup_(freep) char *list = xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}",
                                                daemons      ? w->daemons
                                                : with_ended ? w->ended_controllers
                                                             : w->controllers);
        fake_list(c, r, "Pod", list);
}

static void on_scale(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        assert_string_equal(r->method, "PATCH");
        assert_string_equal(r->body, "{\"spec\":{\"replicas\":0}}");
        if (w->refuses_scale) {
                fake_refuse(c, 403, "not you");
        } else if (w->nothing_exists) {
                fake_missing(c, "apps", "deployments", "the-controller");
        } else {
                w->scaled = true;
                fake_reply(c, 200, NULL, "{\"kind\":\"Scale\",\"metadata\":{\"name\":\"the-controller\"}}");
        }
}

static void on_delete(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        assert_string_equal(r->method, "DELETE");
        assert_true(fake_has(r->body, "\"propagationPolicy\":\"Background\""));
        if (w->refuses_delete) {
                fake_refuse(c, 403, "not you");
        } else if (w->nothing_exists) {
                fake_missing(c, "apps", "daemonsets", "compute-domain-daemon");
        } else {
                w->deleted = true;
                fake_reply(c, 200, NULL,
                           "{\"apiVersion\":\"v1\",\"kind\":\"Status\",\"status\":\"Success\"}");
        }
}

static void on_slice(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        assert_string_equal(r->method, "DELETE");
        assert_true(w->scaled || w->nothing_exists);
        assert_false(w->deleted);
        w->slice_deleted = true;
        if (w->slice_code == 404)
                fake_missing(c, "resource.k8s.io", "resourceslices", CD_SLICE_SHARED);
        else if (w->slice_code)
                fake_refuse(c, (int)w->slice_code, "not you");
        else
                fake_reply(c, 200, NULL,
                           "{\"apiVersion\":\"v1\",\"kind\":\"Status\",\"status\":\"Success\"}");
}

static void list_nodes(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 << 10);
        assert_string_equal(fake_query(r, "labelSelector"), "resource.nvidia.com/shared-channel");
        if (w->nodes_code) {
                fake_refuse(c, (int)w->nodes_code, "not you");
                return;
        }
        buf_addf(&b, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
        for (unsigned i = 0; i < w->n_nodes; i++)
                buf_addf(&b, "%s{\"kind\":\"Node\",\"metadata\":{\"name\":\"n%u\",\"uid\":\"n%u\"}}",
                         i ? "," : "", i, i);
        buf_addf(&b, "]}");
        fake_list(c, r, "Node", buf_str(&b));
}

/* The list of the Nodes with the label, and the removal of the label. */
static void on_nodes(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        assert_true(w->slice_deleted);
        assert_false(w->deleted);
        if (streq(r->method, "GET")) {
                list_nodes(w, c, r);
                return;
        }
        assert_string_equal(r->method, "PATCH");
        assert_string_equal(r->body,
                            "{\"metadata\":{\"labels\":{\"resource.nvidia.com/shared-channel\":null}}}");
        if (w->labels_hang) {
                w->n_hung++;
                return;
        }
        const char *name = r->path + strlen(NODES "/");
        if (w->label_code && !w->n_refused++) {
                if (w->label_code == 404)
                        fake_missing(c, "", "nodes", "n0");
                else
                        fake_refuse(c, (int)w->label_code, "not this one");
        } else {
                _cleanup_(freep) char *answer =
                        xasprintf("{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"PartialObjectMetadata\","
                                  "\"metadata\":{\"name\":\"%.*s\"}}",
                                  (int)strcspn(name, "?"), name);
                w->n_unlabelled++;
                fake_reply(c, 200, NULL, answer);
        }
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (w->away) {
                w->away--;
                fake_close(c);
        } else if (strncmp(r->path, SCALE, strlen(SCALE)) == 0) {
                on_scale(w, c, r);
        } else if (strncmp(r->path, SLICE, strlen(SLICE)) == 0) {
                on_slice(w, c, r);
        } else if (strncmp(r->path, NODES, strlen(NODES)) == 0) {
                on_nodes(w, c, r);
        } else if (strncmp(r->path, SET, strlen(SET)) == 0) {
                on_delete(w, c, r);
        } else {
                assert_true(fake_has(r->path, "/api/v1/namespaces/ns/pods"));
                on_pods(w, c, r);
        }
}

static void on_done(void *u, const struct err *e) {
        struct world *w = u;
        assert_false(w->done);
        w->done = true;
        w->failed = e != NULL;
        if (e)
                w->e = *e;
        uninstall_free(TAKE(w->uninstall));
}

static void begin(struct world *w, unsigned timeout_ms) {
        w->uninstall = uninstall_start(&(struct uninstall_options){ .client = w->client,
                                                                    .ns = "ns",
                                                                    .deployment = "the-controller",
                                                                    .selector = "app=the-controller",
                                                                    .timeout_ms = timeout_ms,
                                                                    .done = on_done,
                                                                    .u = w });
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->controllers = w->ended_controllers = w->daemons = "";
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        uninstall_free(w->uninstall);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w);
        return 0;
}

static void pod_is_deleted(struct fake_conn *watch, const char *pod) {
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", pod);
        fake_chunk(watch, event);
}

static void the_controller_is_stopped_before_the_daemonset_is_deleted(void **state) {
        struct world *w = *state;
        w->controllers = POD("c1", "1", "") "," POD("c2", "1", "");
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->controller_watch);
        assert_true(w->scaled);
        pod_is_deleted(w->controller_watch, POD("c1", "11", ""));
        run_for(&w->loop, 50);
        assert_false(w->deleted);
        pod_is_deleted(w->controller_watch, POD("c2", "12", ""));
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->deleted);
        assert_false(w->failed);
}

/* failure: an evicted Pod of the controller still exists -> helm uninstall does not wait for it */
static void a_pod_of_the_controller_that_has_ended_is_not_awaited(void **state) {
        struct world *w = *state;
        w->ended_controllers = POD("evicted", "1", "");
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->deleted);
        assert_false(w->failed);
}

/* failure: the chart is uninstalled -> it waits for idle daemons only */
static void uninstall_waits_for_idle_daemons(void **state) {
        struct world *w = *state;
        w->daemons = NEW "," KEPT("1") "," FORMING "," FREE;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->daemon_watch);
        pod_is_deleted(w->daemon_watch, NEW);
        pod_is_deleted(w->daemon_watch, FREE);
        run_for(&w->loop, 50);
        assert_false(w->done);
        pod_is_deleted(w->daemon_watch, FORMING);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
}

/* The daemon reports whether a claim keeps it only after SIGTERM. */
static void uninstall_waits_for_a_ready_daemon_until_it_reports_what_keeps_it(void **state) {
        struct world *w = *state;
        w->daemons = STANDING("1");
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->daemon_watch);
        run_for(&w->loop, 50);
        assert_false(w->done);
        fake_chunk(w->daemon_watch, "{\"type\":\"MODIFIED\",\"object\":" KEPT("11") "}\n");
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
}

/* Runs until uninstall is done, and returns what it logs. */
static char *logged(struct world *w) {
        FILE *to = tmpfile();
        int before = dup(STDERR_FILENO);
        char text[8192];
        dup2(fileno(to), STDERR_FILENO);
        for (unsigned i = 0, ms = RUN_FIRST_MS; i < 10000 && !w->done; i++)
                run_once(&w->loop, &ms);
        dup2(before, STDERR_FILENO);
        close(before);
        rewind(to);
        text[fread(text, 1, sizeof text - 1, to)] = '\0';
        fclose(to);
        assert_true(w->done);
        return xstrdup(text);
}

/* failure: the chart is uninstalled under daemons in use -> the log names their nodes and ComputeDomains */
static void the_log_names_nodes_in_use_with_their_computedomain(void **state) {
        struct world *w = *state;
        w->daemons = KEPT("1");
        begin(w, 60000);
        _cleanup_(freep) char *log = logged(w);
        assert_true(fake_has(log, "node-of-standing"));
        assert_true(fake_has(log, DOMAIN));
        assert_true(fake_has(log, "what-keeps-it"));
        assert_true(fake_has(log, "daemonsInUse=1"));
        assert_true(fake_has(log, "otherDaemons=0"));
}

static void without_controller_and_daemonset_it_succeeds(void **state) {
        struct world *w = *state;
        w->nothing_exists = true;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
}

static void daemons_that_stay_are_logged_at_the_time_out(void **state) {
        struct world *w = *state;
        w->daemons = FREE;
        begin(w, 300);
        _cleanup_(freep) char *log = logged(w);
        assert_false(w->failed);
        assert_true(fake_has(log, "node-of-free"));
        assert_true(fake_has(log, "otherDaemons=1"));
}

static void a_controller_that_does_not_stop_is_an_error_and_the_daemonset_stays(void **state) {
        struct world *w = *state;
        w->controllers = POD("c1", "1", "");
        begin(w, 300);
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->failed);
        assert_true(fake_has(w->e.msg, "Pods of the Deployment the-controller have not ended"));
        assert_false(w->deleted);
}

static void a_refusal_is_an_error_that_names_the_object(void **state) {
        struct world *w = *state;
        w->refuses_scale = true;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->failed);
        assert_true(fake_has(w->e.msg, "Deployment the-controller: not you"));
        w->refuses_scale = w->done = false;
        w->refuses_delete = true;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->failed);
        assert_true(fake_has(w->e.msg, "DaemonSet compute-domain-daemon: not you"));
}

/* failure: the chart is uninstalled after shared claims -> their ResourceSlice, which no kubelet deletes, is
 * deleted */
static void the_slice_of_shared_claims_is_deleted_before_the_daemonset(void **state) {
        static const unsigned codes[] = { 0, 404, 403, 409 };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                w->slice_code = codes[i];
                w->slice_deleted = w->deleted = w->done = false;
                begin(w, 60000);
                RUN_UNTIL(&w->loop, w->done);
                assert_false(w->failed);
                assert_true(w->slice_deleted && w->deleted);
        }
}

/* failure: the chart is uninstalled after shared claims -> no Node keeps the label that their ResourceSlice
 * selects */
static void the_label_of_shared_claims_is_removed_from_every_node(void **state) {
        struct world *w = *state;
        w->n_nodes = 50;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
        assert_true(w->deleted);
        assert_int_equal(w->n_unlabelled, 50);
}

/* failure: the Nodes cannot be listed, or one cannot be changed -> the rest of the uninstallation continues
 */
static void a_label_that_cannot_be_removed_does_not_delay_the_rest(void **state) {
        static const unsigned codes[][2] = { { 403, 0 }, { 400, 0 }, { 0, 403 }, { 0, 404 }, { 0, 422 } };
        struct world *w = *state;
        w->n_nodes = 3;
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                w->nodes_code = codes[i][0];
                w->label_code = codes[i][1];
                w->n_unlabelled = w->n_refused = 0;
                w->slice_deleted = w->deleted = w->done = false;
                begin(w, 60000);
                RUN_UNTIL(&w->loop, w->done);
                assert_false(w->failed);
                assert_true(w->deleted);
                assert_int_equal(w->n_unlabelled, w->nodes_code ? 0 : 2);
        }
}

/* failure: each change of a Node hangs -> the rest of the uninstallation continues within its time limit
 * [api-server] */
static void labels_whose_removal_hangs_delay_the_rest_for_a_moment(void **state) {
        struct world *w = *state;
        w->n_nodes = 100;
        w->labels_hang = true;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
        assert_true(w->deleted);
        assert_in_range(w->n_hung, 2, 40);
}

static void requests_are_retried_while_the_server_is_away(void **state) {
        struct world *w = *state;
        w->away = 2;
        begin(w, 60000);
        RUN_UNTIL(&w->loop, w->done);
        assert_false(w->failed);
        assert_true(w->deleted);
}

static void a_server_that_stays_away_is_an_error(void **state) {
        struct world *w = *state;
        w->away = 1000000;
        begin(w, 300);
        RUN_UNTIL(&w->loop, w->done);
        assert_true(w->failed);
        assert_int_equal(w->e.kind, ERR_RETRY);
        assert_false(w->deleted);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(the_controller_is_stopped_before_the_daemonset_is_deleted),
                T(a_pod_of_the_controller_that_has_ended_is_not_awaited),
                T(uninstall_waits_for_idle_daemons),
                T(uninstall_waits_for_a_ready_daemon_until_it_reports_what_keeps_it),
                T(the_log_names_nodes_in_use_with_their_computedomain),
                T(without_controller_and_daemonset_it_succeeds),
                T(daemons_that_stay_are_logged_at_the_time_out),
                T(a_controller_that_does_not_stop_is_an_error_and_the_daemonset_stays),
                T(a_refusal_is_an_error_that_names_the_object),
                T(the_slice_of_shared_claims_is_deleted_before_the_daemonset),
                T(the_label_of_shared_claims_is_removed_from_every_node),
                T(a_label_that_cannot_be_removed_does_not_delay_the_rest),
                T(labels_whose_removal_hangs_delay_the_rest_for_a_moment),
                T(requests_are_retried_while_the_server_is_away),
                T(a_server_that_stays_away_is_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
