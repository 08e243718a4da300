/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_grpc_connection: one gRPC connection in memory, with the DRA calls behind it.
 *
 * The first byte chooses the mode. Raw: the rest is what the peer sends, cut into slices. Script: the rest
 * are orders to a well-behaved HTTP/2 client, which reaches states that random bytes do not: open, continue,
 * reset, answer, expire, shut down. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stderr.h"
#include "base/err.h"
#include "base/mem.h"
#include "dra/dra_plugin.h"
#include "dra/grpc_conn.h"
#include "h2_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_KEPT = 300, MAX_CALLS = 64, MAX_STREAMS = 8, MAX_CLAIMS_KEPT = 2048 };

struct bed {
        struct grpc_conn *conn;
        struct grpc_call *call[MAX_KEPT];
        size_t n_calls;
        struct grpc_call *stream[MAX_STREAMS];
        size_t n_streams;
        struct dra_op *op[MAX_CLAIMS_KEPT];
        size_t n_ops;
};

/* Limits that short inputs reach. */
static const struct grpc_limits small_limits = {
        .message_bytes = 1 << 10,
        .buffered_bytes = 8 << 10,
        .header_bytes = 4 << 10,
        .write_bytes = 8 << 10,
        .calls = 8,
        .acks = 16,
};

static void on_echo(void *u, struct grpc_call *call, struct str message) {
        grpc_call_reply(call, message.p, message.n);
}

static void on_fail(void *u, struct grpc_call *call, struct str message) {
        _cleanup_(freep) char *text = xstrndup(message.p, message.n);
        grpc_call_fail(call, GRPC_INTERNAL, text);
}

static void on_cancel(void *u, struct grpc_call *call) {
        struct bed *b = u;
        size_t i = 0;
        while (i < b->n_calls && b->call[i] != call)
                i++;
        BUG_ON(i == b->n_calls);
        b->call[i] = b->call[--b->n_calls];
}

static void on_keep(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        if (b->n_calls == MAX_KEPT) {
                grpc_call_fail(call, GRPC_UNAVAILABLE, "enough");
                return;
        }
        grpc_call_on_cancel(call, on_cancel, b);
        b->call[b->n_calls++] = call;
}

static void on_stream_cancel(void *u, struct grpc_call *call) {
        struct bed *b = u;
        size_t i = 0;
        while (i < b->n_streams && b->stream[i] != call)
                i++;
        BUG_ON(i == b->n_streams);
        b->stream[i] = b->stream[--b->n_streams];
}

static void on_stream(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        if (b->n_streams == MAX_STREAMS) {
                grpc_call_fail(call, GRPC_UNAVAILABLE, "enough");
                return;
        }
        grpc_call_on_cancel(call, on_stream_cancel, b);
        b->stream[b->n_streams++] = call;
        grpc_call_send(call, message.p, message.n);
        grpc_call_send(call, "next", 4);
}

static void start_op(void *u, struct dra_op *op, const struct dra_claim *claim) {
        struct bed *b = u;
        if (claim->name[0] == 'f' || b->n_ops == MAX_CLAIMS_KEPT) {
                dra_op_fail(op, claim->name);
                return;
        }
        b->op[b->n_ops++] = op;
}

static void cancel_op(void *u, struct dra_op *op, void *op_data) {
        struct bed *b = u;
        size_t i = 0;
        while (i < b->n_ops && b->op[i] != op)
                i++;
        BUG_ON(i == b->n_ops);
        b->op[i] = b->op[--b->n_ops];
}

static const struct dra_plugin_ops ops = { .prepare = start_op,
                                           .unprepare = start_op,
                                           .cancelled = cancel_op };

static void on_prepare(void *u, struct grpc_call *call, struct str message) {
        dra_call_start(&ops, u, true, call, message);
}

static void on_wake(void *u) {
}

static void answer(struct bed *b) {
        const struct dra_device device = { .requests = (const char *[]){ "r/s", NULL },
                                           .pool = "p",
                                           .device = "d",
                                           .cdi_ids = (const char *[]){ "c", NULL } };
        if (b->n_calls)
                grpc_call_reply(b->call[--b->n_calls], "late", 4);
        for (size_t i = 0; i < b->n_streams; i++)
                grpc_call_send(b->stream[i], "news", 4);
        if (b->n_streams > MAX_STREAMS / 2)
                grpc_call_fail(b->stream[--b->n_streams], GRPC_UNAVAILABLE, "end");
        if (b->n_ops)
                dra_op_prepared(b->op[--b->n_ops], &device, 1);
}

static void drain(struct bed *b, struct h2_client *client) {
        struct buf out = BUF_INIT(1 << 20);
        grpc_conn_output(b->conn, &out, 64 << 10);
        if (client && out.n)
                (void)h2_input(client, out.p, out.n);
        buf_done(&out);
}

static void run_raw(struct bed *b, const uint8_t *p, size_t n, uint8_t choice) {
        size_t slice = choice & 0x40 ? (choice & 0x3fU) + 1 : n;
        uint64_t now = 1;
        while (n) {
                size_t k = slice < n ? slice : n;
                _cleanup_(freep) uint8_t *exact = xmalloc(k); /* so reads beyond the slice are noticed */
                memcpy(exact, p, k);
                grpc_conn_recv(b->conn, exact, k, now++);
                drain(b, NULL);
                if (choice & 1)
                        answer(b);
                p += k;
                n -= k;
        }
}

static void send_all(struct bed *b, struct h2_client *client, uint64_t now) {
        const uint8_t *p;
        for (size_t n; (n = h2_output(client, &p)) > 0;)
                grpc_conn_recv(b->conn, p, n, now);
}

static void run_script(struct bed *b, const uint8_t *p, size_t n) {
        static const char *const paths[] = { "/t.T/Echo", "/t.T/Keep", "/t.T/Fail",  "/t.T/Prepare",
                                             "/none",     "",          "/t.T/Stream" };
        static const char *const timeouts[] = { NULL, "1S", "5m", "1n", "x", "99999999H" };
        struct h2_client *client = h2_new();
        struct h2_call *call[MAX_CALLS] = { NULL };
        size_t n_calls = 0;
        uint64_t now = 1;
        while (n >= 2 && !grpc_conn_finished(b->conn)) {
                uint8_t order = p[0], arg = p[1];
                size_t k;
                p += 2;
                n -= 2;
                k = arg < n ? arg : n;
                struct h2_call *old = n_calls ? call[arg % n_calls] : NULL;
                switch (order % 10) {
                case 0: /* a whole message */
                case 1: /* raw request bytes */
                        if (n_calls < MAX_CALLS) {
                                size_t total = k;
                                uint8_t *body = order % 10 ? NULL : h2_message(p, k, &total);
                                const struct h2_options o = {
                                        .timeout = timeouts[order / 10 % ARRAY_LEN(timeouts)],
                                        .frame_size = order & 7,
                                        .open = order & 0x80
                                };
                                call[n_calls++] = h2_call(client, paths[order / 10 % ARRAY_LEN(paths)],
                                                          body ? body : p, total, &o);
                                free(body);
                        }
                        p += k;
                        n -= k;
                        break;
                case 2:
                        if (old && !old->closed)
                                h2_send(old, p, k < 8 ? k : 8, arg & 1);
                        break;
                case 3:
                        if (old && !old->closed)
                                h2_reset(old);
                        break;
                case 4:
                        answer(b);
                        break;
                case 5:
                        now += arg;
                        grpc_conn_expire(b->conn, now);
                        break;
                case 6:
                        h2_ping(client);
                        break;
                case 7: /* bytes that no client would send */
                        send_all(b, client, now);
                        grpc_conn_recv(b->conn, p, k, now);
                        p += k;
                        n -= k;
                        break;
                case 8:
                        drain(b, client);
                        break;
                default:
                        send_all(b, client, now);
                        if (arg == 0xff)
                                grpc_conn_shutdown(b->conn);
                }
        }
        send_all(b, client, now);
        drain(b, client);
        h2_free(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const struct grpc_method methods[] = {
                { "/t.T/Echo", on_echo },       { "/t.T/Keep", on_keep },     { "/t.T/Fail", on_fail },
                { "/t.T/Prepare", on_prepare }, { "/t.T/Stream", on_stream }, { NULL, NULL }
        };
        if (n < 1)
                return 0;
        struct bed *b = xnew(struct bed);
        b->conn =
                grpc_conn_new(methods, b, data[0] & 0x20 ? &small_limits : &grpc_limits_trusted, on_wake, b);
        if (data[0] & 0x80)
                run_script(b, data + 1, n - 1);
        else
                run_raw(b, data + 1, n - 1, data[0]);
        (void)grpc_conn_deadline(b->conn);
        grpc_conn_break(b->conn);
        BUG_ON(b->n_calls || b->n_ops); /* every call has its answer */
        grpc_conn_free(b->conn);
        free(b);
        return 0;
}
