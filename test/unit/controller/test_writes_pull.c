/* SPDX-License-Identifier: Apache-2.0 */
/* More Nodes need a label at the same time than the client has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "base/mem.h"
#include "controller/writes.h"

enum { NODES = 2000, ROOM = 32, LAST = NODES - 1 };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct work_queue *queue;
        struct writes *writes;
        struct metrics *metrics;
        bool away;     /* a load balancer without backends answers */
        bool unwanted; /* the requesters want nothing any more */
        bool hangs;    /* the server answers only requests for the last Node */
        unsigned turns; /* of the loop */
        bool written[NODES];
        unsigned n_written, looks, made, sent, most_unsent, refused, last, disorder;
};

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        unsigned i = (unsigned)atoi(strrchr(r->path, '/') + 2); /* ".../n123" */
        char body[96];

        w->sent++;
        w->refused += w->away;
        if (w->away) {
                fake_reply(c, 404, NULL, "404 page not found\n");
                return;
        }
        if (w->hangs && i != LAST)
                return;
        w->disorder += i + 2 * ROOM < w->last;
        w->last = i > w->last ? i : w->last;
        assert_false(w->written[i]);
        w->written[i] = true;
        w->n_written++;
        snprintf(body, sizeof body, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n%u\"}}", i);
        fake_reply(c, 200, NULL, body);
}

static void on_key(void *u, const char *key) {
        struct world *w = u;
        w->looks++;
        if (w->unwanted || w->written[atoi(key + 3)]) {
                writes_forget(w->writes, key);
                return;
        }
        w->made += writes_try(w->writes, &(struct writes_request){ .requester = key,
                                                                   .verb = KUBE_MERGE_PATCH,
                                                                   .res = &kube_nodes,
                                                                   .name = key + 2,
                                                                   .body = STR("{}") });
        assert_null(writes_error(w->writes, key));
        if (w->made - w->sent > w->most_unsent)
                w->most_unsent = w->made - w->sent;
}

static bool is_urgent(const char *requester) {
        return *requester == 'u';
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        /* With this rate, the client has no room most of the time. */
        w->client = fake_client_new(&w->loop, w->server, 2000, 100);
        w->metrics = metrics_new();
        w->queue = work_queue_new(&w->loop, 10, 1000, on_key, w);
        w->writes = writes_new(&(struct writes_options){
                .client = w->client,
                .queue = w->queue,
                .manager = "test",
                .is_urgent = is_urgent,
                .total = metric_add(w->metrics, METRIC_COUNTER, "t", "t",
                                    LABELS("resource", "verb", "result")),
        });
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        writes_free(w->writes);
        work_queue_free(w->queue);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        metrics_free(w->metrics);
        free(w);
        return 0;
}

static void want_all(struct world *w) {
        char key[32];
        for (unsigned i = 0; i < NODES; i++) {
                snprintf(key, sizeof key, "n/n%u", i);
                work_queue_add(w->queue, key);
        }
}

/* failure: thousands of writes are due -> each is rendered only when it can be sent */
static void bodies_are_rendered_when_they_can_be_sent_and_in_order(void **state) {
        struct world *w = *state;
        want_all(w);
        RUN_UNTIL(&w->loop, w->n_written == NODES);
        run_for(&w->loop, 50);
        assert_int_equal(w->sent, NODES);
        assert_in_range(w->most_unsent, 1, ROOM);
        assert_int_equal(w->disorder, 0);
        /* A key has at most three turns: without room, with room, and after the answer. */
        assert_in_range(w->looks, NODES, 3 * NODES);
}

static void writes_that_are_no_longer_wanted_make_room(void **state) {
        struct world *w = *state;
        want_all(w);
        RUN_UNTIL(&w->loop, w->n_written >= NODES / 10);
        w->unwanted = true;
        RUN_UNTIL(&w->loop, writes_in_flight(w->writes) == 0 && w->looks >= 2 * NODES - 100);
        w->unwanted = false;
        want_all(w);
        RUN_UNTIL(&w->loop, w->n_written == NODES);
}

/* failure: the API server is absent while many writes wait -> few of them are sent until it returns
 * [api-server] */
static void an_absent_server_gets_few_requests(void **state) {
        struct world *w = *state;
        w->away = true;
        want_all(w);
        run_for(&w->loop, 1500);
        /* The requests that may be in flight, and again after 100, 200, 400 and 800 ms, less 25 %. */
        assert_in_range(w->refused, 1, 5 * ROOM);
        w->away = false;
        RUN_UNTIL(&w->loop, w->n_written == NODES);
}

static void on_turn(uv_prepare_t *h) {
        struct world *w = h->data;
        w->turns++;
}

/* Writes of one class hang, and one of the other class is answered. */
static void one_class_hangs(struct world *w, char hanging, char other) {
        uv_prepare_t turn = { .data = w };
        w->hangs = true;
        for (unsigned i = 0; i < 200; i++) {
                _cleanup_(freep) char *key = xasprintf("%c/n%u", hanging, i);
                work_queue_add(w->queue, key);
        }
        RUN_UNTIL(&w->loop, w->sent >= ROOM - WRITES_RESERVED);
        run_for(&w->loop, 100);
        assert_int_equal(w->sent, ROOM - WRITES_RESERVED);
        uv_prepare_init(&w->loop, &turn);
        uv_prepare_start(&turn, on_turn);
        run_for(&w->loop, 300);
        uv_prepare_stop(&turn);
        uv_close((uv_handle_t *)&turn, NULL);
        assert_in_range(w->turns, 0, 100);
        _cleanup_(freep) char *key = xasprintf("%c/n%u", other, LAST);
        work_queue_add(w->queue, key);
        RUN_UNTIL(&w->loop, w->written[LAST]);
        assert_int_equal(w->sent, ROOM - WRITES_RESERVED + 1);
}

/* failure: many writes hang in an admission webhook -> urgent writes are sent, and the others wait idly
 * [api-server] */
static void writes_that_hang_do_not_delay_urgent_writes(void **state) {
        one_class_hangs(*state, 'n', 'u');
}

/* failure: many urgent writes hang in an admission webhook -> other writes are sent, and the urgent ones wait
 * idly [api-server] */
static void urgent_writes_that_hang_do_not_delay_others(void **state) {
        one_class_hangs(*state, 'u', 'n');
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(bodies_are_rendered_when_they_can_be_sent_and_in_order),
                T(writes_that_are_no_longer_wanted_make_room),
                T(an_absent_server_gets_few_requests),
                T(writes_that_hang_do_not_delay_urgent_writes),
                T(urgent_writes_that_hang_do_not_delay_others),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
