/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that an admission webhook delays. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "api/resources.h"
#include "base/loop.h"
#include "base/mem.h"
#include "controller/writes.h"

enum { POLL_MS = 2000, NEVER_MS = INT32_MAX };

/* One requester wants to write one Node. Besides, a Node is read every two seconds, like the Lease. */
struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct work_queue *queue;
        struct writes *writes;
        struct metrics *metrics;
        struct loop_timer read, delay;
        struct kube_call *reading;
        struct fake_conn *waiting;
        unsigned delay_ms;
        const char *refusal; /* NULL: the write succeeds */
        bool away;           /* reads get no answer, either */
        bool written;
        unsigned n_writes, n_read;
};

static void answer_write(void *u) {
        struct world *w = u;
        if (w->refusal) {
                fake_refuse(w->waiting, 500, w->refusal);
                return;
        }
        w->written = true;
        fake_reply(w->waiting, 200, NULL,
                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"9\"}}");
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (strcmp(r->method, "GET") != 0) {
                w->n_writes++;
                w->waiting = c;
                if (w->delay_ms != NEVER_MS)
                        loop_timer_start(&w->delay, w->delay_ms);
        } else if (!w->away) {
                fake_reply(c, 200, NULL, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"m\"}}");
        }
}

static void on_read(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        w->reading = NULL;
        w->n_read += !e;
        loop_timer_start(&w->read, POLL_MS);
}

static void read_node(void *u) {
        struct world *w = u;
        w->reading = kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                   .res = &kube_nodes,
                                                                   .name = "m",
                                                                   .timeout_ms = 5000,
                                                                   .attempts = 1,
                                                                   .done = on_read,
                                                                   .u = w });
}

static void on_key(void *u, const char *key) {
        struct world *w = u;
        writes_begin(w->writes, key);
        if (!w->written)
                writes_try(w->writes, &(struct writes_request){ .requester = key,
                                                                .verb = KUBE_MERGE_PATCH,
                                                                .res = &kube_nodes,
                                                                .name = "n",
                                                                .body = STR("{}") });
        writes_end(w->writes, key);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 10000, 1000);
        w->metrics = metrics_new();
        w->queue = work_queue_new(&w->loop, 10, 1000, on_key, w);
        w->writes = writes_new(&(struct writes_options){
                .client = w->client,
                .queue = w->queue,
                .manager = "test",
                .total = metric_add(w->metrics, METRIC_COUNTER, "t", "t",
                                    LABELS("resource", "verb", "result")),
        });
        loop_timer_init(&w->read, &w->loop, read_node, w);
        loop_timer_init(&w->delay, &w->loop, answer_write, w);
        read_node(w);
        work_queue_add(w->queue, "n/n");
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        loop_timer_done(&w->read);
        loop_timer_done(&w->delay);
        writes_free(w->writes);
        work_queue_free(w->queue);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        metrics_free(w->metrics);
        free(w);
        return 0;
}

/* Two webhooks that are ignored after their time-out: the API server stores the object after 50 s. */
/* failure: webhooks delay the answer to a write for 50 s -> the controller waits for it [api-server] */
static void a_write_waits_as_long_as_the_api_server(void **state) {
        struct world *w = *state;
        w->delay_ms = 50000;
        run_for(&w->loop, 49000);
        assert_false(w->written);
        run_for(&w->loop, 2000);
        assert_true(w->written);
        assert_int_equal(w->n_writes, 1);
        assert_false(writes_failing(w->writes));
}

/* failure: a required webhook does not answer for 30 s -> the error names it [api-server] */
static void the_error_of_a_slow_webhook_is_reported(void **state) {
        struct world *w = *state;
        w->delay_ms = 30100;
        w->refusal = "failed calling webhook sick.example.org: context deadline exceeded";
        RUN_UNTIL(&w->loop, writes_error(w->writes, "n/n"));
        assert_non_null(strstr(writes_error(w->writes, "n/n"), "sick.example.org"));
}

/* failure: a write never gets an answer, and other requests do -> the error names the likely cause
 * [api-server] */
static void a_write_that_hangs_is_reported(void **state) {
        struct world *w = *state;
        w->delay_ms = NEVER_MS;
        RUN_UNTIL(&w->loop, writes_error(w->writes, "n/n"));
        assert_non_null(strstr(writes_error(w->writes, "n/n"), "an admission webhook may hang"));
        assert_in_range(w->n_writes, 3, 4);
        assert_true(w->n_read > 60);
        w->delay_ms = 1000;
        RUN_UNTIL(&w->loop, w->written);
        run_for(&w->loop, 1);
        assert_null(writes_error(w->writes, "n/n"));
}

/* failure: the API server answers no request -> this is not the fault of one write [api-server] */
static void a_silent_server_is_no_failure_of_a_write(void **state) {
        struct world *w = *state;
        w->delay_ms = NEVER_MS;
        w->away = true;
        run_for(&w->loop, 280000);
        assert_true(w->n_writes >= 3);
        assert_false(writes_failing(w->writes));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_write_waits_as_long_as_the_api_server),
                T(the_error_of_a_slow_webhook_is_reported),
                T(a_write_that_hangs_is_reported),
                T(a_silent_server_is_no_failure_of_a_write),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
