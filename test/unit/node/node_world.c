/* SPDX-License-Identifier: Apache-2.0 */
#include "node_world.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tree.h"

struct node_world node;

/* ---- the API server ---- */

struct kube_call {
        struct loop_turn turn;
        char name[64];
        kube_done_fn *done;
        kube_retry_fn *retry;
        void *u;
};

static void on_turn(void *u) {
        struct kube_call *call = u;
        const char *uid;
        _cleanup_(freep) char *devices = node.claim(call->name, &uid);
        _cleanup_(freep) char *text =
                xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"user\",\"uid\":\"%s\","
                          "\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":%s}}}",
                          call->name, uid, devices);
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
        node.gets++;
        call->done(call->u, yyjson_doc_get_root(doc), NULL);
        yyjson_doc_free(doc);
        kube_cancel(call);
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = xnew(struct kube_call);
        (void)c;
        snprintf(call->name, sizeof call->name, "%s", r->name);
        call->done = r->done;
        call->retry = r->retry;
        call->u = r->u;
        loop_turn_init(&call->turn, &node.loop, on_turn, call);
        if (node.hold_gets)
                node.held = call;
        else
                loop_turn_start(&call->turn);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        if (node.held == call)
                node.held = NULL;
        loop_turn_done(&call->turn);
        free(call);
}

void node_world_answer(bool fails, bool retry) {
        struct kube_call *call = node.held;
        struct err e;
        err_set(&e, ERR_RETRY, 0, "the server is busy");
        assert_non_null(call);
        if (retry) {
                call->retry(call->u, &e);
        } else if (fails) {
                node.held = NULL;
                call->done(call->u, NULL, &e);
                kube_cancel(call);
        } else {
                on_turn(call);
        }
}

const char *kube_resource_api(const struct kube_client *c) {
        (void)c;
        return "v1";
}

void kube_discover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        (void)fn;
        (void)u;
}

void kube_undiscover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        (void)fn;
        (void)u;
}

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        va_list ap;
        (void)r;
        (void)about;
        (void)type;
        size_t n = (size_t)snprintf(node.event, sizeof node.event, "%s: ", reason);
        va_start(ap, fmt);
        vsnprintf(node.event + n, sizeof node.event - n, fmt, ap);
        va_end(ap);
}

/* ---- the kubelet ---- */

void dra_op_set_data(struct dra_op *op, void *data) {
        (void)op;
        (void)data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        (void)op;
        return 0;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        size_t at = 0;
        op->answer = PREPARED;
        for (size_t i = 0; i < n; i++) {
                const struct dra_device *d = &devices[i];
                at += (size_t)snprintf(op->text + at, sizeof op->text - at, "%s%s/%s/%s%s%s", i ? " " : "",
                                       d->requests[0], d->pool, d->device, d->cdi_ids[0] ? "=" : "",
                                       str_or(d->cdi_ids[0], ""));
        }
}

void dra_op_unprepared(struct dra_op *op) {
        op->answer = UNPREPARED;
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        op->answer = FAILED;
        snprintf(op->text, sizeof op->text, "%s", msg);
}

void until(const struct dra_op *op, enum answer want) {
        while (op->answer == PENDING)
                uv_run(&node.loop, UV_RUN_ONCE);
        if (op->answer != want)
                fail_msg("%s", op->text);
}

static struct dra_claim claim_of(const char *name) {
        struct dra_claim claim = { .namespace = "user", .name = name };
        free(node.claim(name, &claim.uid));
        return claim;
}

void prepare_claim(struct dra_op *op, const char *name) {
        struct dra_claim claim = claim_of(name);
        *op = (struct dra_op){ 0 };
        claims_prepare(node.claims, op, &claim);
}

void unprepare_claim(struct dra_op *op, const char *name) {
        struct dra_claim claim = claim_of(name);
        *op = (struct dra_op){ 0 };
        claims_unprepare(node.claims, op, &claim);
}

void prepared_claim(const char *name) {
        struct dra_op op;
        prepare_claim(&op, name);
        until(&op, PREPARED);
}

void unprepared_claim(const char *name) {
        struct dra_op op;
        unprepare_claim(&op, name);
        until(&op, UNPREPARED);
}

const struct op *waiting(void) {
        const struct op *op;
        while (!(op = TAILQ_FIRST(&node.claims->ops)) || op->phase != OP_WAITING)
                uv_run(&node.loop, UV_RUN_ONCE);
        return op;
}

/* ---- the process ---- */

static void on_started(void *u, const struct err *e) {
        assert_null(e);
        *(bool *)u = true;
}

void node_world_start(const struct node_driver *driver, void *u) {
        const struct claims_options o = {
                .loop = &node.loop,
                .metrics = &node.metrics,
                .driver = driver,
                .u = u,
                .node = "n0",
                .plugin_dir = node.plugin_dir,
                .cdi_root = node.cdi_root,
                .boot_id = str_or(node.boot, BOOT),
        };
        bool started = false;
        struct err e;
        assert_int_equal(claims_new(&o, &node.claims, &e), 0);
        claims_start(node.claims, on_started, &started);
        while (!started)
                uv_run(&node.loop, UV_RUN_ONCE);
}

void node_world_begin(const char *driver, const char *const *types,
                      char *(*claim)(const char *name, const char **ret_uid)) {
        struct err e;
        memset(&node, 0, sizeof node);
        uv_loop_init(&node.loop);
        node.claim = claim;
        node.dir = tree_new();
        node.plugin_dir = file_join(node.dir, "plugin");
        node.cdi_root = file_join(node.dir, "cdi");
        assert_int_equal(file_mkdirs(node.plugin_dir, 0750, &e), 0);
        assert_int_equal(file_mkdirs(node.cdi_root, 0750, &e), 0);
        node.registry = metrics_new();
        node.metrics_options = (struct node_metrics_options){
                .node = "n0",
                .driver = driver,
                .types = types,
                .inside = "a",
                .pending = "b",
                .total = "c",
                .failures = "d",
        };
        node_metrics_init(&node.metrics, node.registry, &node.metrics_options);
}

int node_world_end(void) {
        claims_free(node.claims);
        uv_run(&node.loop, UV_RUN_DEFAULT);
        metrics_free(node.registry);
        free(node.plugin_dir);
        free(node.cdi_root);
        tree_remove(node.dir);
        return uv_loop_close(&node.loop);
}
