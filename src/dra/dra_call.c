/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_call.h"

#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "dra/dra_messages.h"

enum op_state { OP_WAITING, OP_OPEN, OP_DONE };

struct dra_call;

struct dra_op {
        struct dra_call *call;
        struct dra_claim claim;
        enum op_state state;
        void *data;
};

struct dra_call {
        struct arena *arena; /* holds everything, this struct included */
        const struct dra_plugin_ops *ops;
        void *u;
        struct grpc_call *grpc; /* NULL: cancelled */
        bool prepare, starting;
        struct dra_op *op;
        struct dra_result *result; /* one per op */
        size_t n, unfinished;
};

static void dra_call_call_finish(struct dra_call *call) {
        struct buf out = BUF_INIT(SIZE_MAX); /* grpc_call_reply checks the size */
        dra_messages_write_results(call->prepare, call->result, call->n, call->arena, &out);
        grpc_call_reply(call->grpc, buf_str(&out), out.n);
        buf_done(&out);
        arena_free(call->arena);
}

static void op_finish(struct dra_op *op) {
        struct dra_call *call = op->call;
        op->state = OP_DONE;
        if (--call->unfinished == 0 && !call->starting && call->grpc)
                dra_call_call_finish(call);
}

static void on_cancel(void *u, struct grpc_call *grpc) {
        struct dra_call *call = u;
        call->grpc = NULL;
        for (size_t i = 0; i < call->n; i++) {
                struct dra_op *op = &call->op[i];
                if (op->state != OP_OPEN)
                        continue;
                op->state = OP_DONE;
                call->ops->cancelled(call->u, op, op->data);
        }
        if (!call->starting)
                arena_free(call->arena);
}

void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct dra_claim *claims;
        struct err e;
        size_t n;
        if (dra_messages_read_claims(message, a, &claims, &n, &e) < 0) {
                grpc_call_fail(grpc, GRPC_INVALID_ARGUMENT, e.msg);
                return;
        }
        struct dra_call *call = arena_alloc(a, sizeof(*call));
        *call = (struct dra_call){ .arena = TAKE(a),
                                   .ops = ops,
                                   .u = u,
                                   .grpc = grpc,
                                   .prepare = prepare,
                                   .n = n,
                                   .unfinished = n };
        call->op = arena_alloc(call->arena, n * sizeof(*call->op));
        call->result = arena_alloc(call->arena, n * sizeof(*call->result));
        for (size_t i = 0; i < n; i++) {
                call->op[i] = (struct dra_op){ .call = call, .claim = claims[i] };
                call->result[i].uid = claims[i].uid;
        }
        grpc_call_on_cancel(grpc, on_cancel, call);

        /* An operation may be answered, or the whole server be freed, inside its own start. */
        call->starting = true;
        for (size_t i = 0; i < n && call->grpc; i++) {
                struct dra_op *op = &call->op[i];
                op->state = OP_OPEN;
                if (prepare)
                        ops->prepare(u, op, &op->claim);
                else
                        ops->unprepare(u, op, &op->claim);
        }
        call->starting = false;
        if (!call->grpc)
                arena_free(call->arena);
        else if (call->unfinished == 0)
                dra_call_call_finish(call);
}

static struct dra_result *op_result(struct dra_op *op) {
        BUG_ON(op->state != OP_OPEN);
        return &op->call->result[op - op->call->op];
}

/* A subrequest ("gpus/large") is one of the alternatives of a request. The kubelet knows only the request. */
static const char *const *requests_of(const char *const *requests, struct arena *a) {
        const char **list = arena_strdups(a, requests);
        for (size_t i = 0; list[i]; i++)
                list[i] = arena_strndup(a, list[i], strcspn(list[i], "/"));
        return list;
}

void dra_op_set_data(struct dra_op *op, void *data) {
        op->data = data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        return op->call->grpc ? grpc_call_timeout_ms(op->call->grpc) : 0;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        struct dra_result *result = op_result(op);
        struct arena *a = op->call->arena;
        BUG_ON(!op->call->prepare);
        struct dra_device *copy = arena_alloc(a, (n + 1) * sizeof(*copy));
        for (size_t i = 0; i < n; i++)
                copy[i] = (struct dra_device){ .requests = requests_of(devices[i].requests, a),
                                               .pool = arena_strdup(a, devices[i].pool),
                                               .device = arena_strdup(a, devices[i].device),
                                               .cdi_ids = arena_strdups(a, devices[i].cdi_ids) };
        result->devices = copy;
        result->n_devices = n;
        op_finish(op);
}

void dra_op_unprepared(struct dra_op *op) {
        (void)op_result(op);
        BUG_ON(op->call->prepare);
        op_finish(op);
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        /* An empty error would mean success. */
        op_result(op)->error = arena_strdup(op->call->arena, str_or(msg, "unknown error"));
        op_finish(op);
}
