/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to an API server whose answers the test decides. */
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

enum { GATHER_MS = 40, INTERVAL_MS = 120 };

/* One requester writes `wanted` into one object. The value may change at any time. */
struct world {
        uv_loop_t loop;
        uv_timer_t timer;
        struct fake_server *server;
        struct fake_conn *waiting; /* a write without an answer yet */
        struct kube_client *client;
        struct work_queue *queue;
        struct writes *writes;
        struct metrics *metrics;
        int wanted, written, sent; /* sent: the value in flight; written: the last one answered with 200 */
        unsigned n_requests, most_in_flight, in_flight, refuse;
        int refuse_status;       /* 0: 422 */
        const char *subresource; /* of the wanted write */
        bool status_too;         /* also writes the status, without end */
        unsigned n_changes;      /* calls of writes_options.error_changed */
        bool given_up;           /* the requester wants nothing any more */
        const char *impossible;  /* why the body cannot be rendered; NULL: it can */
        char name[600];          /* of the object; "": "n" */
        unsigned batch_ms, interval_ms;
        bool undone;          /* a webhook undoes each write */
        bool ends;            /* the object was deleted before, and each write ends it */
        bool changing;        /* something else is wanted after each answer */
        bool hold;            /* answers wait for release() */
        uint64_t answered_ns; /* time of the last answer; 0: none yet */
        uint64_t least_ms;    /* the shortest time from an answer to the next request */
        char error[256];
};

static void answer(struct world *w, struct fake_conn *c) {
        char body[200];
        w->in_flight--;
        w->waiting = NULL;
        w->answered_ns = uv_hrtime();
        if (w->refuse) {
                w->refuse--;
                fake_reply(c, w->refuse_status ? w->refuse_status : 422, NULL,
                           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
                           "\"not like "
                           "this\",\"code\":422}");
                return;
        }
        w->written = w->undone ? 0 : w->sent;
        w->wanted += w->changing;
        snprintf(body, sizeof body,
                 "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"%u\",\"generation\":"
                 "7%s}}",
                 w->undone || w->ends ? 1 : w->n_requests,
                 w->ends ? ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" : "");
        fake_reply(c, 200, NULL, body);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        uint64_t since_ms = w->answered_ns ? (uv_hrtime() - w->answered_ns) / 1000000 : UINT64_MAX;
        w->least_ms = since_ms < w->least_ms ? since_ms : w->least_ms;
        w->n_requests++;
        w->in_flight++;
        w->most_in_flight = w->in_flight > w->most_in_flight ? w->in_flight : w->most_in_flight;
        assert_int_equal(sscanf(r->body, "{\"v\":%d}", &w->sent), 1);
        if (w->hold)
                w->waiting = c;
        else
                answer(w, c);
}

static void on_key(void *u, const char *key) {
        struct world *w = u;
        char body[32];
        const char *error = writes_error(w->writes, key);
        snprintf(w->error, sizeof w->error, "%s", error ? error : "");
        writes_begin(w->writes, key);
        if ((w->written == w->wanted && !w->status_too) || w->given_up) {
                writes_end(w->writes, key);
                uv_stop(&w->loop);
                return;
        }
        if (w->impossible) {
                writes_cannot(w->writes,
                              &(struct writes_request){ .requester = key,
                                                        .verb = KUBE_APPLY,
                                                        .res = &kube_nodes,
                                                        .name = *w->name ? w->name : "n" },
                              w->impossible);
                writes_end(w->writes, key);
                uv_stop(&w->loop);
                return;
        }
        int n = snprintf(body, sizeof body, "{\"v\":%d}", w->wanted);
        writes_try(w->writes, &(struct writes_request){ .requester = key,
                                                        .verb = KUBE_APPLY,
                                                        .res = &kube_nodes,
                                                        .name = "n",
                                                        .subresource = w->subresource,
                                                        .body = { body, (size_t)n },
                                                        .batch_ms = w->batch_ms,
                                                        .interval_ms = w->interval_ms });
        if (w->status_too)
                writes_try(w->writes, &(struct writes_request){ .requester = key,
                                                                .verb = KUBE_MERGE_PATCH,
                                                                .res = &kube_nodes,
                                                                .name = "n",
                                                                .subresource = "status",
                                                                .body = { body, (size_t)n } });
        writes_end(w->writes, key);
}

static void on_error_change(void *u, const char *requester) {
        struct world *w = u;
        assert_true(str_starts(requester, "d/"));
        w->n_changes++;
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->least_ms = UINT64_MAX;
        uv_loop_init(&w->loop);
        uv_timer_init(&w->loop, &w->timer);
        w->timer.data = w;
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        w->metrics = metrics_new();
        w->queue = work_queue_new(&w->loop, 10, 1000, on_key, w);
        w->writes = writes_new(&(struct writes_options){
                .client = w->client,
                .queue = w->queue,
                .manager = "test",
                .total = metric_add(w->metrics, METRIC_COUNTER, "t", "t",
                                    LABELS("resource", "verb", "result")),
                .error_changed = on_error_change,
                .u = w,
                .away_ms = 3600000,
                .denied_ms = 3600000,
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
        uv_close((uv_handle_t *)&w->timer, NULL);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&w->loop), 0);
        metrics_free(w->metrics);
        free(w);
        return 0;
}

static void want(struct world *w, int value) {
        w->wanted = value;
        work_queue_add(w->queue, "d/x");
}

static void on_stop(uv_timer_t *t) {
        uv_stop(t->loop);
}

static void pass(struct world *w, unsigned ms) {
        uv_timer_start(&w->timer, on_stop, ms, 0);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        uv_timer_stop(&w->timer);
}

static void until_written(struct world *w) {
        uv_timer_start(&w->timer, on_stop, 10000, 0);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        uv_timer_stop(&w->timer);
        assert_int_equal(w->written, w->wanted);
}

static void until_waiting(struct world *w) {
        while (!w->waiting)
                uv_run(&w->loop, UV_RUN_ONCE);
}

static void at_most_one_write_of_an_object_is_in_flight(void **state) {
        struct world *w = *state;
        w->hold = true;
        want(w, 1);
        until_waiting(w);
        assert_int_equal(writes_in_flight(w->writes), 1);
        assert_true(writes_sending(w->writes, "d/x", &kube_nodes, NULL, "n"));
        assert_false(writes_sending(w->writes, "d/y", &kube_nodes, NULL, "n"));
        for (int i = 2; i < 20; i++) { /* the next write has the last of these changes */
                want(w, i);
                pass(w, 1);
        }
        assert_int_equal(w->n_requests, 1);
        w->hold = false;
        answer(w, w->waiting);
        until_written(w);
        assert_int_equal(w->n_requests, 2);
        assert_int_equal(w->most_in_flight, 1);
        assert_false(writes_sending(w->writes, "d/x", &kube_nodes, NULL, "n"));
        assert_int_equal(writes_generation(w->writes, "d/x", &kube_nodes, NULL, "n"), 7);
}

/* Two writes at the same time would conflict. */
/* failure: an object and its status both change -> the writes follow one another */
static void an_object_and_its_status_are_written_one_after_the_other(void **state) {
        struct world *w = *state;
        w->hold = w->status_too = true;
        want(w, 1);
        for (unsigned i = 1; i <= 4; i++) {
                until_waiting(w);
                pass(w, 5);
                assert_int_equal(w->n_requests, i);
                assert_int_equal(w->in_flight, 1);
                answer(w, w->waiting);
        }
}

/* failure: a status changes many times in a moment -> it is written once */
static void a_burst_is_one_write(void **state) {
        struct world *w = *state;
        uint64_t begin = uv_hrtime();
        w->batch_ms = GATHER_MS;
        for (int i = 1; i < 6; i++) {
                want(w, i);
                pass(w, 2);
        }
        until_written(w);
        /* One write, unless the machine was so slow that the changes were no burst. */
        assert_true(w->n_requests <= 1 + (uv_hrtime() - begin) / 1000000 / GATHER_MS);
}

static void writes_of_one_object_keep_their_interval(void **state) {
        struct world *w = *state;
        w->interval_ms = INTERVAL_MS;
        want(w, 1);
        until_written(w);
        want(w, 2);
        pass(w, INTERVAL_MS / 3);
        want(w, 3);
        until_written(w);
        assert_in_range(w->n_requests, 2, 3);
        assert_true(w->least_ms >= INTERVAL_MS - 2);
}

static void a_failing_write_backs_off_and_reports_why(void **state) {
        struct world *w = *state;
        uint64_t begin = uv_hrtime();
        unsigned most = 2;
        w->refuse = 1000;
        want(w, 1);
        for (int i = 0; i < 100; i++) { /* events do not shorten the back-off */
                work_queue_add(w->queue, "d/x");
                pass(w, 1);
        }
        for (uint64_t ms = (uv_hrtime() - begin) / 1000000; ms > 37;
             ms /= 2) /* the back-off begins with 50 ms, less 25 %, and doubles */
                most++;
        assert_true(w->n_requests <= most);
        w->refuse = 0;
        until_written(w);
        assert_string_equal(w->error, ""); /* no error after the success */
        w->refuse = 1000;
        want(w, 2);
        while (!writes_error(w->writes, "d/x"))
                uv_run(&w->loop, UV_RUN_ONCE);
        assert_string_equal(writes_error(w->writes, "d/x"), "apply Node n: not like this");
        w->refuse = 0;
        writes_forget(w->writes, "d/x");
        assert_null(writes_error(w->writes, "d/x"));
        until_written(w);
}

/* failure: an object is forgotten during its write -> the write is awaited first */
static void a_write_in_flight_is_not_dropped(void **state) {
        struct world *w = *state;
        w->hold = true;
        want(w, 1);
        until_waiting(w);
        writes_forget(w->writes, "d/x");
        assert_int_equal(writes_in_flight(w->writes), 1);
        w->hold = false;
        answer(w, w->waiting);
        until_written(w);
        writes_forget(w->writes, "d/x");
        assert_int_equal(writes_generation(w->writes, "d/x", &kube_nodes, NULL, "n"), 0);
}

static void until_error(struct world *w) {
        while (!writes_error(w->writes, "d/x"))
                uv_run(&w->loop, UV_RUN_ONCE);
}

/* Waits until the API server has refused `n` more writes. */
static void until_refused(struct world *w, unsigned n) {
        unsigned from = w->refuse;
        while (from - w->refuse < n)
                uv_run(&w->loop, UV_RUN_ONCE);
        pass(w, 5); /* until the answers have arrived */
}

/* failure: a failing write is not needed any more -> its error disappears */
static void a_write_that_is_no_longer_wanted_has_no_error(void **state) {
        struct world *w = *state;
        w->refuse = 1000;
        want(w, 1);
        until_error(w);
        w->given_up = true;
        want(w, 1);
        pass(w, 5);
        assert_null(writes_error(w->writes, "d/x"));
        assert_int_equal(w->n_changes, 2);
        w->given_up = false; /* wanted again; the earlier back-off does not count */
        w->refuse = 0;
        want(w, 1);
        pass(w, 20);
        assert_int_equal(w->written, 1);
}

/* failure: a dropped write fails late -> no error remains */
static void a_late_failure_of_a_dropped_write_is_no_error(void **state) {
        struct world *w = *state;
        w->refuse = 1000;
        want(w, 1);
        until_error(w);
        w->hold = true;
        until_waiting(w);
        w->given_up = true;
        want(w, 1);
        pass(w, 5);
        answer(w, w->waiting); /* a refusal */
        pass(w, 20);
        assert_null(writes_error(w->writes, "d/x"));
}

static void the_listener_is_called_when_an_error_begins_and_ends(void **state) {
        struct world *w = *state;
        w->refuse = 3;
        want(w, 1);
        until_error(w);
        assert_int_equal(w->n_changes, 1);
        until_written(w);
        assert_int_equal(w->n_changes, 2);
        assert_null(writes_error(w->writes, "d/x"));
}

/* failure: an object is too large -> the error is reported until it fits */
static void an_object_that_is_too_large_is_an_error_until_it_shrinks(void **state) {
        struct world *w = *state;
        w->impossible = "too large";
        want(w, 1);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_string_equal(writes_error(w->writes, "d/x"), "apply Node n: too large");
        assert_int_equal(w->n_changes, 1);
        assert_int_equal(w->n_requests, 0);
        w->impossible = NULL;
        want(w, 1);
        until_written(w);
        assert_null(writes_error(w->writes, "d/x"));
        assert_int_equal(w->n_changes, 2);
}

/* The error is written into a status, which has a size limit. */
static void an_error_contains_at_most_the_longest_valid_name(void **state) {
        struct world *w = *state;
        memset(w->name, 'a', sizeof w->name - 1);
        w->impossible = "no";
        want(w, 1);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_int_equal(strlen(writes_error(w->writes, "d/x")), strlen("apply Node : no") + 253);
}

static void cannot_write(struct world *w, const char *requester, const char *name) {
        writes_begin(w->writes, requester);
        writes_cannot(w->writes,
                      &(struct writes_request){
                              .requester = requester, .verb = KUBE_APPLY, .res = &kube_nodes, .name = name },
                      "no");
        writes_end(w->writes, requester);
}

static void objects_with_names_of_any_length_are_written_separately(void **state) {
        struct world *w = *state;
        char name[8192];
        memset(name, 'a', sizeof name - 1);
        name[sizeof name - 1] = '\0';
        cannot_write(w, "d/x", name);
        cannot_write(w, "d/y", name);
        name[sizeof name - 2] = 'b';
        cannot_write(w, "d/z", name);
        assert_non_null(writes_error(w->writes, "d/x"));
        assert_non_null(writes_error(w->writes, "d/y"));
        assert_non_null(writes_error(w->writes, "d/z"));
        assert_int_equal(writes_remembered(w->writes), 3);
}

/* failure: an API server that has just started refuses requests -> the first refusals are not reported
 * [api-server] */
static void the_first_refusals_are_not_reported(void **state) {
        struct world *w = *state;
        w->refuse = 1000;
        w->refuse_status = 403;
        want(w, 1);
        until_refused(w, 4);
        assert_null(writes_error(w->writes, "d/x"));
        assert_int_equal(w->n_changes, 0);
        w->refuse_status = 422; /* a lasting refusal is reported at once */
        until_error(w);
}

/* A status that cannot be written cannot report it, and when it can be written, the error is over. */
/* failure: a status cannot be written -> that is not reported in the status itself */
static void a_failing_status_write_is_not_reported_in_the_status(void **state) {
        struct world *w = *state;
        w->refuse = 1000;
        w->subresource = "status";
        want(w, 1);
        until_refused(w, 4);
        assert_null(writes_error(w->writes, "d/x"));
}

/* failure: a webhook undoes each write of the controller -> writes back off, and an error states why
 * [api-server] */
static void a_write_that_changes_nothing_backs_off(void **state) {
        struct world *w = *state;
        w->undone = true;
        want(w, 1);
        until_error(w);
        assert_non_null(strstr(writes_error(w->writes, "d/x"), "an admission webhook may undo the change"));
        assert_in_range(w->n_requests, 3, 12);
        w->undone = false;
        until_written(w);
        assert_null(writes_error(w->writes, "d/x"));
}

/* The API server answers with the version before. */
/* failure: the controller removes the last finalizer of a claim template that it has deleted -> no error
 * [api-server] */
static void a_write_that_ends_a_deleted_object_is_no_failure(void **state) {
        struct world *w = *state;
        w->ends = true;
        for (int i = 1; i <= 2; i++) {
                want(w, i);
                until_written(w);
                assert_false(writes_failing(w->writes));
        }
        assert_int_equal(w->n_requests, 2);
}

/* With a back-off, these writes would take longer than RUN_UNTIL_MS. */
/* failure: an old CustomResourceDefinition drops a field of an object -> other changes are written at once
 * [api-server] */
static void another_change_does_not_wait_for_one_that_was_undone(void **state) {
        struct world *w = *state;
        w->undone = w->changing = true;
        want(w, 1);
        RUN_UNTIL(&w->loop, w->n_requests >= 30);
        assert_non_null(strstr(writes_error(w->writes, "d/x"), "CustomResourceDefinition may be older"));
        w->changing = false;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(at_most_one_write_of_an_object_is_in_flight),
                T(an_object_and_its_status_are_written_one_after_the_other),
                T(a_burst_is_one_write),
                T(writes_of_one_object_keep_their_interval),
                T(a_failing_write_backs_off_and_reports_why),
                T(a_write_that_changes_nothing_backs_off),
                T(a_write_that_ends_a_deleted_object_is_no_failure),
                T(another_change_does_not_wait_for_one_that_was_undone),
                T(a_write_in_flight_is_not_dropped),
                T(a_write_that_is_no_longer_wanted_has_no_error),
                T(a_late_failure_of_a_dropped_write_is_no_error),
                T(the_listener_is_called_when_an_error_begins_and_ends),
                T(the_first_refusals_are_not_reported),
                T(an_object_that_is_too_large_is_an_error_until_it_shrinks),
                T(an_error_contains_at_most_the_longest_valid_name),
                T(objects_with_names_of_any_length_are_written_separately),
                T(a_failing_status_write_is_not_reported_in_the_status),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
