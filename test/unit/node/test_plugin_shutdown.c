/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that is asked to end, against a scripted server: it stays for the pods that use it, but only if
 * its Node no longer matches its selector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "base/mem.h"
#include "node/plugin_shutdown.h"

#define SELECTOR                                                                                             \
        "{\"nodeSelector\":{\"dra\":\"true\"},\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"       \
        "\"gpu\",\"operator\":\"In\",\"values\":[\"yes\"]}]}]}"
#define STAYS_LABELS "{\"dra\":\"true\",\"gpu\":\"yes\"}"
#define LEFT_LABELS "{\"dra\":\"paused-for-driver-upgrade\",\"gpu\":\"yes\"}"

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct event_recorder *events;
        struct arena *arena;
        struct node_selector selector;
        struct checkpoint table;
        struct plugin_shutdown *leaving;
        const char *labels; /* of the Node; NULL: the list is refused */
        struct fake_conn *watch;
        struct buf event;
        bool stays, ends;
};

static char *node(const char *labels, int version) {
        return xasprintf("{\"metadata\":{\"name\":\"n1\",\"uid\":\"u1\",\"resourceVersion\":\"%d\","
                         "\"labels\":%s}}",
                         version, labels);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/events")) {
                buf_adds(&w->event, r->body);
                fake_reply(c, 201, NULL, r->body);
        } else if (!w->labels) {
                fake_refuse(c, 403, "nodes is forbidden");
        } else if (fake_query(r, "watch")) {
                w->watch = c;
                fake_stream(c);
        } else {
                _cleanup_(freep) char *item = node(w->labels, 1);
                _cleanup_(freep) char *list =
                        xasprintf("{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[%s]}", item);
                fake_list(c, r, "PartialObjectMetadata", list);
        }
}

static void on_stays(void *u) {
        ((struct world *)u)->stays = true;
}

static void on_ends(void *u) {
        struct world *w = u;
        w->ends = true;
        plugin_shutdown_free(TAKE(w->leaving));
}

static struct node_device channel = { .name = "channel-0" }, daemon_place = { .name = "daemon-0" };

static void add_claim(struct world *w, const char *uid, struct node_device *device) {
        struct checkpoint_claim *c = checkpoint_put(&w->table, uid, "team", uid, STR("{}"));
        c->devices = device;
        c->n_devices = 1;
        c->state = CHECKPOINT_COMPLETED;
}

static void drop_claim(struct world *w, const char *uid) {
        checkpoint_drop(&w->table, checkpoint_find(&w->table, uid));
        plugin_shutdown_claims(w->leaving);
}

static void begin(struct world *w) {
        w->leaving = plugin_shutdown_new(&(struct plugin_shutdown_options){
                .loop = &w->loop,
                .kube = w->client,
                .events = w->events,
                .node = "n1",
                .driver = "d.example.com",
                .own_device = "daemon-0",
                .table = &w->table,
                .selector = &w->selector,
                .stays = on_stays,
                .ends = on_ends,
                .u = w,
        });
}

static void label(struct world *w, const char *labels) {
        _cleanup_(freep) char *item = node(labels, 6);
        _cleanup_(freep) char *line =
                xasprintf("{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\","
                          "\"apiVersion\":\"meta.k8s.io/v1\",%s}\n",
                          item + 1);
        RUN_UNTIL(&w->loop, w->watch);
        fake_chunk(w->watch, line);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        struct err e;
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        w->events = event_recorder_new(w->client, "test", "n1");
        w->arena = arena_new(1024);
        assert_int_equal(node_selector_parse(SELECTOR, w->arena, &w->selector, &e), 0);
        w->event = BUF_INIT(1 << 16);
        w->labels = LEFT_LABELS;
        add_claim(w, "c-daemon", &daemon_place);
        add_claim(w, "c-pod", &channel);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        plugin_shutdown_free(w->leaving);
        checkpoint_done(&w->table);
        event_recorder_free(w->events);
        kube_client_free(w->client);
        fake_server_free(w->server);
        arena_free(w->arena);
        buf_done(&w->event);
        loop_end(&w->loop);
        free(w);
        return 0;
}

/* failure: the plugin's node label is removed under pods -> it stays until their claims are unprepared, and
 * an Event reports it */
static void a_stopping_plugin_stays_until_the_last_claim_is_unprepared(void **state) {
        struct world *w = *state;
        begin(w);
        RUN_UNTIL(&w->loop, w->stays && w->event.n);
        assert_false(w->ends);
        assert_non_null(strstr(buf_str(&w->event), "PluginWaitsForPods"));
        assert_non_null(strstr(buf_str(&w->event), "team/c-pod"));
        assert_null(strstr(buf_str(&w->event), "c-daemon"));
        drop_claim(w, "c-pod");
        RUN_UNTIL(&w->loop, w->ends);
}

/* failure: a plugin is replaced by an upgrade -> it ends at once */
static void a_replaced_plugin_ends_at_once(void **state) {
        struct world *w = *state;
        w->labels = STAYS_LABELS;
        begin(w);
        RUN_UNTIL(&w->loop, w->ends);
        assert_false(w->stays);
        assert_int_equal(w->event.n, 0);
}

/* failure: the label returns while a plugin stays -> it ends at once */
static void a_stopping_plugin_ends_when_its_node_matches_again(void **state) {
        struct world *w = *state;
        begin(w);
        RUN_UNTIL(&w->loop, w->stays);
        label(w, STAYS_LABELS);
        RUN_UNTIL(&w->loop, w->ends);
}

/* As after a rollback to a chart with an older role: an upgrade must not wait for that. */
/* failure: the role lacks the right to read the Node -> the plugin ends at once */
static void a_stopping_plugin_ends_if_it_may_not_read_its_node(void **state) {
        struct world *w = *state;
        w->labels = NULL;
        begin(w);
        RUN_UNTIL(&w->loop, w->ends);
        assert_false(w->stays);
}

static void the_claim_of_a_daemon_is_not_that_of_a_workload(void **state) {
        struct world *w = *state;
        assert_true(plugin_shutdown_is_used(&w->table, "daemon-0"));
        checkpoint_drop(&w->table, checkpoint_find(&w->table, "c-pod"));
        assert_false(plugin_shutdown_is_used(&w->table, "daemon-0"));
        assert_true(plugin_shutdown_is_used(&w->table, NULL));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_stopping_plugin_stays_until_the_last_claim_is_unprepared),
                T(a_replaced_plugin_ends_at_once),
                T(a_stopping_plugin_ends_when_its_node_matches_again),
                T(a_stopping_plugin_ends_if_it_may_not_read_its_node),
                T(the_claim_of_a_daemon_is_not_that_of_a_workload),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
