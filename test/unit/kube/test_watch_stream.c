/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kube/watch_stream.h"

struct seen {
        struct buf log;
        bool stop;
        struct watch_stream *freed;
};

static bool on_event(void *u, enum watch_type type, yyjson_val *object) {
        struct seen *s = u;
        const char *name = yyjson_get_str(yyjson_obj_get(object, "n"));
        buf_addf(&s->log, "%c%s ", "AMDBE"[type], name ? name : "");
        if (s->freed)
                watch_stream_done(s->freed);
        return !s->stop && !s->freed;
}

static int feed(struct watch_stream *w, const char *text, size_t step, struct err *e) {
        size_t n = strlen(text);
        for (size_t at = 0; at < n; at += step) {
                /* A copy of the exact size, so that the sanitizer notices reads beyond it. */
                size_t k = n - at < step ? n - at : step;
                _cleanup_(freep) char *piece = xmalloc(k);
                memcpy(piece, text + at, k);
                if (watch_stream_feed(w, piece, k, e) < 0)
                        return -1;
        }
        return 0;
}

static void test_cut_at_every_size(void **state) {
        static const char text[] = "{\"type\":\"ADDED\",\"object\":{\"n\":\"1\"}}\n\r\n "
                                   "\n{\"type\":\"MODIFIED\",\"object\":{\"n\":\"2\"}}\r\n"
                                   "{\"type\":\"DELETED\",\"object\":{\"n\":\"3\"}}\n{\"type\":\"BOOKMARK\","
                                   "\"object\":{}}\n{\"type\":\"ERROR\",\"object\":{}}"
                                   "\n"
                                   "{\"type\":\"ADDED\",\"object\":{\"n\":\"unfinished";
        for (size_t step = 1; step < sizeof text; step++) {
                struct seen s = { .log = BUF_INIT(4096) };
                struct watch_stream w;
                struct err e;
                watch_stream_init(&w, 1000, on_event, &s);
                assert_int_equal(feed(&w, text, step, &e), 0);
                assert_string_equal(buf_str(&s.log), "A1 M2 D3 B E ");
                watch_stream_reset(&w);
                assert_int_equal(feed(&w, "{\"type\":\"ADDED\",\"object\":{\"n\":\"4\"}}\n", step, &e), 0);
                assert_string_equal(buf_str(&s.log), "A1 M2 D3 B E A4 ");
                watch_stream_done(&w);
                buf_done(&s.log);
        }
}

/* failure: a tenant's opaque parameters are valid for Go and not for RFC 8259 -> watches continue */
static void text_that_only_go_accepts_is_read(void **state) {
        struct seen s = { .log = BUF_INIT(4096) };
        struct watch_stream w;
        struct err e;
        watch_stream_init(&w, 1000, on_event, &s);
        assert_int_equal(feed(&w,
                              "{\"type\":\"ADDED\",\"object\":{\"a\":\"\\ud800\",\"n\":\"1\"}}\n"
                              "{\"type\":\"ADDED\",\"object\":{\"a\":\"\xff\",\"n\":\"2\"}}\n",
                              7, &e),
                         0);
        assert_string_equal(buf_str(&s.log), "A1 A2 ");
        watch_stream_done(&w);
        buf_done(&s.log);
}

static void test_invalid_events(void **state) {
        static const char *const bad[] = { "x\n",
                                           "{}\n",
                                           "[]\n",
                                           "null\n",
                                           "{\"type\":\"ADDED\"}\n",
                                           "{\"type\":\"ADDED\",\"object\":null}\n",
                                           "{\"type\":1,\"object\":{}}\n",
                                           "{\"type\":\"added\",\"object\":{}}\n",
                                           "{\"type\":\"ADDED\",\"object\":{}}{}\n" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct seen s = { .log = BUF_INIT(4096) };
                struct watch_stream w;
                struct err e;
                watch_stream_init(&w, 1000, on_event, &s);
                assert_int_equal(feed(&w, bad[i], 3, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                assert_int_equal(s.log.n, 0);
                watch_stream_done(&w);
                buf_done(&s.log);
        }
}

static void test_limit(void **state) {
        _cleanup_(freep) char *name = xcalloc(1, 201);
        memset(name, 'x', 200);
        _cleanup_(freep) char *line = xasprintf("{\"type\":\"ADDED\",\"object\":{\"n\":\"%s\"}}\n", name);
        for (size_t step = 1; step < 400; step += 57) {
                struct seen s = { .log = BUF_INIT(4096) };
                struct watch_stream w;
                struct err e;
                watch_stream_init(&w, strlen(line) - 1, on_event, &s);
                assert_int_equal(feed(&w, line, step, &e), 0);
                watch_stream_done(&w);
                watch_stream_init(&w, strlen(line) - 2, on_event, &s);
                assert_int_equal(feed(&w, line, step, &e), -1);
                watch_stream_done(&w);
                buf_done(&s.log);
        }
}

/* The buffer of incomplete lines has 64 bytes times a power of two. */
static void only_a_large_buffer_is_freed_after_its_event(void **state) {
        static const struct {
                int name;
                size_t kept;
        } cases[] = { { 8200, 16 << 10 }, { 16400, 0 }, { 10, 64 } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(freep) char *line =
                        xasprintf("{\"type\":\"ADDED\",\"object\":{\"n\":\"%0*d\"}}\n", cases[i].name, 1);
                struct seen s = { .log = BUF_INIT(1 << 16) };
                struct watch_stream w;
                struct err e;
                watch_stream_init(&w, 1 << 16, on_event, &s);
                assert_int_equal(feed(&w, line, strlen(line) - 1, &e), 0);
                assert_int_equal(w.rest.n, 0);
                assert_int_equal(w.rest.cap, cases[i].kept);
                watch_stream_done(&w);
                buf_done(&s.log);
        }
}

static void test_receiver_ends_the_stream(void **state) {
        struct seen s = { .log = BUF_INIT(4096), .stop = true };
        struct watch_stream w;
        struct err e;
        watch_stream_init(&w, 1000, on_event, &s);
        assert_int_equal(feed(&w, "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADDED\",\"object\":{}}\n",
                              1000, &e),
                         0);
        assert_string_equal(buf_str(&s.log), "A ");
        watch_stream_done(&w);
        buf_done(&s.log);
}

static void test_receiver_frees_the_stream(void **state) {
        for (size_t step = 1; step < 40; step++) {
                struct seen s = { .log = BUF_INIT(4096) };
                struct watch_stream w;
                struct err e;
                watch_stream_init(&w, 1000, on_event, &s);
                s.freed = &w;
                const char *text = "{\"type\":\"ADDED\",\"object\":{\"n\":\"1\"}}\n";
                size_t n = strlen(text);
                for (size_t at = 0; at < n && !s.log.n; at += step)
                        assert_int_equal(watch_stream_feed(&w, text + at, n - at < step ? n - at : step, &e),
                                         0);
                assert_string_equal(buf_str(&s.log), "A1 ");
                buf_done(&s.log);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cut_at_every_size),
                cmocka_unit_test(text_that_only_go_accepts_is_read),
                cmocka_unit_test(test_invalid_events),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(only_a_large_buffer_is_freed_after_its_event),
                cmocka_unit_test(test_receiver_ends_the_stream),
                cmocka_unit_test(test_receiver_frees_the_stream),
        };
        return cmocka_run_group_tests_name("watch_stream", tests, NULL, NULL);
}
