/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_bed: a raw HTTP/2 client and a grpc_conn, in memory, with methods that echo, fail, or keep the call.
 */
#pragma once

#include "dra/grpc_conn.h"

#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "h2_client.h"

enum { MAX_KEPT = 512 };

struct bed {
        struct h2_client *client;
        struct grpc_conn *conn;
        size_t slice; /* bytes that reach the server at a time; 0: all */
        uint64_t now_ms;
        unsigned wakes, handled, cancelled;
        struct grpc_call *kept[MAX_KEPT];
        size_t n_kept;
        bool answer_others; /* in on_cancel */
        enum grpc_status status;
        const char *message;
        size_t reply_size;
};

static inline void on_echo(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        b->handled++;
        grpc_call_reply(call, message.p, message.n);
}

static inline void on_fail(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        b->handled++;
        grpc_call_fail(call, b->status, b->message);
}

static inline void on_sized(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        _cleanup_(freep) char *p = xcalloc(1, b->reply_size);
        b->handled++;
        grpc_call_reply(call, p, b->reply_size);
}

static inline void answer_all(struct bed *b) {
        while (b->n_kept)
                grpc_call_reply(b->kept[--b->n_kept], "late", 4);
}

static inline void on_cancel(void *u, struct grpc_call *call) {
        struct bed *b = u;
        b->cancelled++;
        for (size_t i = 0; i < b->n_kept; i++)
                if (b->kept[i] == call)
                        b->kept[i--] = b->kept[--b->n_kept];
        if (b->answer_others)
                answer_all(b);
}

static inline void on_keep(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        b->handled++;
        assert_true(b->n_kept < MAX_KEPT);
        b->kept[b->n_kept++] = call;
        grpc_call_on_cancel(call, on_cancel, b);
}

static inline void on_wake(void *u) {
        ((struct bed *)u)->wakes++;
}

static inline struct bed *bed_new_with(const struct grpc_limits *limits) {
        static const struct grpc_method methods[] = { { "/test.Test/Echo", on_echo },
                                                      { "/test.Test/Fail", on_fail },
                                                      { "/test.Test/Keep", on_keep },
                                                      { "/test.Test/Sized", on_sized },
                                                      { NULL, NULL } };
        struct bed *b = xnew(struct bed);
        b->client = h2_new();
        b->conn = grpc_conn_new(methods, b, limits, on_wake, b);
        b->now_ms = 1000;
        return b;
}

static inline struct bed *bed_new(void) {
        return bed_new_with(&grpc_limits_trusted);
}

static inline void bed_free(struct bed *b) {
        grpc_conn_free(b->conn);
        h2_free(b->client);
        free(b);
}

static inline bool to_server(struct bed *b) {
        const uint8_t *p;
        bool any = false;
        for (size_t n; (n = h2_output(b->client, &p)) > 0; any = true) {
                for (size_t k; n; p += k, n -= k) {
                        k = b->slice && b->slice < n ? b->slice : n;
                        grpc_conn_recv(b->conn, p, k, b->now_ms);
                }
        }
        return any;
}

static inline bool to_client(struct bed *b) {
        struct buf out = BUF_INIT(1 << 20);
        grpc_conn_output(b->conn, &out, 256 << 10);
        bool any = out.n > 0;
        if (any)
                assert_int_equal(h2_input(b->client, out.p, out.n), 0);
        buf_done(&out);
        return any;
}

/* Transfers bytes until neither side has output. */
static inline void shuttle(struct bed *b) {
        bool any;
        do {
                any = to_server(b);
                any |= to_client(b);
        } while (any);
}

static inline struct h2_call *call_with(struct bed *b, const char *path, const void *p, size_t n,
                                        const struct h2_options *o) {
        size_t total;
        _cleanup_(freep) uint8_t *m = h2_message(p, n, &total);
        return h2_call(b->client, path, m, total, o);
}

static inline void assert_status(const struct h2_call *call, int status, const char *message) {
        assert_true(call->closed);
        assert_int_equal(call->http_status, 200);
        assert_int_equal(call->grpc_status, status);
        assert_string_equal(call->grpc_message, message);
        assert_int_equal(call->reply.n, 0);
        /* without data: one HEADERS frame, which ends the stream */
        assert_int_equal(call->header_frames, 1);
        assert_true(call->ended_by_headers);
}

static inline void assert_text(struct str s, const char *want) {
        assert_int_equal(s.n, strlen(want));
        assert_memory_equal(s.p, want, s.n);
}
