/* SPDX-License-Identifier: Apache-2.0 */
/* An informer whose server asks for long waits, or sends large answers. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "informer_world.h"

enum { MiB = 1 << 20, MINUTE_MS = 60000 };

/* ---- time ---- */

static uint64_t refused_ms[2];

static void refuse(struct pod_server *s, struct fake_conn *c, int status, const char *header,
                   const char *body) {
        refused_ms[s->n_watches - 1] = uv_now(s->loop);
        fake_reply(c, status, header, body);
}

static void busy_for_an_hour(struct pod_server *s, struct fake_conn *c) {
        refuse(s, c, 503, "Retry-After: 3600\r\n",
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
               "\"maintenance\","
               "\"code\":503}");
}

static void an_hour_by_the_status(struct pod_server *s, struct fake_conn *c) {
        refuse(s, c, 429, NULL,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"slowly\","
               "\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":3600},\"code\":429}");
}

static void a_page_for_an_hour(struct pod_server *s, struct fake_conn *c) {
        refuse(s, c, 503, "Retry-After: 3600\r\n", "back soon");
}

/* Milliseconds between a refusal and the next one. */
static uint64_t pause_after(struct world *w, void (*refuse_watch)(struct pod_server *, struct fake_conn *)) {
        w->api.refuse_watch = refuse_watch;
        w->api.n_watch_failures = 2;
        world_begin(w);
        for (unsigned i = 0; i < 800 && w->api.n_watches < 2; i++)
                run_for(&w->loop, 5000);
        assert_in_range(w->api.n_watches, 2, 3);
        return refused_ms[1] - refused_ms[0];
}

/* A request a minute is better than an hour without a watch. */
/* failure: the API server sends Retry-After: 3600 -> a watch waits at most a minute */
static void a_watch_waits_a_minute_at_most(void **state) {
        assert_in_range(pause_after(*state, busy_for_an_hour), MINUTE_MS, MINUTE_MS + 2000);
}

/* failure: a Status asks to retry in an hour -> a watch waits at most a minute */
static void a_watch_waits_a_minute_at_most_for_a_status_too(void **state) {
        assert_in_range(pause_after(*state, an_hour_by_the_status), MINUTE_MS, MINUTE_MS + 2000);
}

/* failure: a page asks to retry in an hour -> a watch waits ten seconds */
static void a_page_delays_a_watch_by_ten_seconds(void **state) {
        assert_in_range(pause_after(*state, a_page_for_an_hour), 10000, 12000);
}

/* ---- a watch that gets no headers ---- */

static struct fake_conn *slow;
static unsigned n_cut, n_answered;

static void leave_nodes_unanswered(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        if (fake_has(r->path, "/nodes"))
                slow = c;
        else
                fake_list(c, r, "Pod", s->pages[0]);
}

static void on_slow(void *u, yyjson_val *obj, const struct err *e) {
        ((struct world *)u)->got = !e;
}

static void on_cut(void *u, const struct err *e) {
        n_cut++;
}

static void on_answered(void *u, yyjson_val *obj, const struct err *e) {
        n_answered += !e;
}

/* One watch without headers, a request that the server works on for a while, and others that it answers every
 * five seconds, or no others. */
static void one_watch_hangs(struct world *w, bool others) {
        n_cut = n_answered = 0;
        w->api.hung = true;
        w->api.answer_list = leave_nodes_unanswered;
        world_begin(w);
        RUN_UNTIL(&w->loop, w->synced);
        kube_start(w->client, &(struct kube_request){ .verb = KUBE_LIST,
                                                      .res = &kube_nodes,
                                                      .timeout_ms = 300000,
                                                      .done = on_slow,
                                                      .retry = on_cut,
                                                      .u = w });
        for (unsigned s = 0; s < 100; s += 5) {
                if (others)
                        kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                      .res = &kube_pods,
                                                                      .ns = "ns",
                                                                      .name = "a",
                                                                      .done = on_answered,
                                                                      .u = w });
                run_for(&w->loop, 5000);
        }
        assert_true(w->api.n_watches > 2);
}

/* failure: one watch gets no headers -> other requests on the connection continue */
static void a_watch_without_headers_leaves_other_requests_alone(void **state) {
        struct world *w = *state;
        one_watch_hangs(w, true);
        assert_int_equal(n_cut, 0);
        assert_in_range(n_answered, 19, 20);
        fake_reply(slow, 200, NULL,
                   "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},"
                   "\"items\":[]}");
        RUN_UNTIL(&w->loop, w->got);
}

/* failure: the API server answers nothing on a connection -> the connection is replaced */
static void a_server_that_answers_nothing_loses_its_connection(void **state) {
        struct world *w = *state;
        one_watch_hangs(w, false);
        assert_true(n_cut > 0);
}

/* ---- size ---- */

enum { OBJECTS = 3 };
static unsigned n_objects;
static size_t object_bytes;
static char limits[256];

/* As many objects as requested. Each of the first OBJECTS has an annotation of object_bytes. */
static void large_objects(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(buf_done) struct buf list = BUF_INIT(256 * MiB);
        const char *limit = fake_query(r, "limit");
        unsigned n = limit ? (unsigned)atoi(limit) : n_objects, from, to;
        size_t used = strlen(limits);
        snprintf(limits + used, sizeof limits - used, "%u ", n);
        const char *page = fake_query(r, "continue");
        from = page ? (unsigned)atoi(page) : 0;
        to = from + n < n_objects ? from + n : n_objects;
        buf_addf(&list, "{\"metadata\":{\"resourceVersion\":\"10\"");
        if (to < n_objects)
                buf_addf(&list, ",\"continue\":\"%u\"", to);
        buf_adds(&list, "},\"items\":[");
        for (unsigned i = from; i < to; i++) {
                buf_addf(&list,
                         "%s{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%u\",\"uid\":\"u%u\","
                         "\"resourceVersion\":\"%u\",\"annotations\":{\"a\":\"",
                         i > from ? "," : "", i, i, i + 1);
                for (size_t k = 0; i < OBJECTS && k < object_bytes; k += 64)
                        buf_add(&list, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                                64);
                buf_adds(&list, "\"}}}");
        }
        buf_adds(&list, "]}");
        fake_list(c, r, "Pod", buf_str(&list));
}

static void begin_with(struct world *w, size_t bytes) {
        n_objects = OBJECTS;
        object_bytes = bytes;
        limits[0] = '\0';
        w->o.limit = 4;
        w->api.answer_list = large_objects;
        world_begin(w);
}

/* failure: a page of a list is too large -> the page size is halved */
static void a_page_that_is_too_large_is_requested_in_halves(void **state) {
        struct world *w = *state;
        begin_with(w, 12 * MiB); /* three of them are 36 MiB */
        RUN_UNTIL(&w->loop, w->api.watching);
        assert_string_equal(limits, "4 2 2 ");
        assert_int_equal(kube_informer_count(w->informer), OBJECTS);
        assert_int_equal(w->n_trouble, 0);
}

/* failure: a tenant creates large objects -> after 16 pages, the page size grows again */
static void pages_grow_again_behind_large_objects(void **state) {
        struct world *w = *state;
        begin_with(w, 12 * MiB);
        n_objects = 40;
        RUN_UNTIL(&w->loop, w->api.watching);
        assert_string_equal(limits, "4 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 4 4 ");
        assert_int_equal(kube_informer_count(w->informer), n_objects);
}

/* failure: one object is too large to read -> the error names its position */
static void one_object_that_is_too_large_is_reported(void **state) {
        struct world *w = *state;
        begin_with(w, 33 * MiB);
        RUN_UNTIL(&w->loop, w->trouble);
        assert_string_equal(limits, "4 2 1 ");
        assert_non_null(strstr(w->err.msg, "one of the pods, after 0 that can be listed"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
                T(a_watch_waits_a_minute_at_most),
                T(a_watch_waits_a_minute_at_most_for_a_status_too),
                T(a_page_delays_a_watch_by_ten_seconds),
                T(a_page_that_is_too_large_is_requested_in_halves),
                T(a_watch_without_headers_leaves_other_requests_alone),
                T(a_server_that_answers_nothing_loses_its_connection),
                T(one_object_that_is_too_large_is_reported),
                T(pages_grow_again_behind_large_objects),
        };
        return cmocka_run_group_tests_name("informer_limits", tests, NULL, NULL);
}
