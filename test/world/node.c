/* SPDX-License-Identifier: Apache-2.0 */
#include "world/node.h"

#include <string.h>

#include "base/file.h"
#include "tree.h"

struct node_world node;

void node_turn(void) {
        if (!api_serve())
                uv_run(&node.loop, UV_RUN_ONCE);
}

void node_poll(void) {
        if (!api_serve())
                uv_run(&node.loop, UV_RUN_NOWAIT);
}

/* ---- the kubelet ---- */

void until(const struct dra_op *op, enum answer want) {
        while (op->answer == PENDING)
                node_turn();
        if (op->answer != want)
                fail_msg("%s", op->answer == FAILED ? op->msg : op->devices);
}

/* Its UID. */
static const char *put_claim(const char *name) {
        const char *uid;
        _cleanup_(freep) char *devices = node.claim(name, &uid);
        _cleanup_(freep) char *json =
                xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"user\",\"uid\":\"%s\","
                          "\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":%s}}}",
                          name, uid, devices);
        store_set(&api.store, &kube_resource_claims, "user", name, json);
        return uid;
}

void prepare_claim(struct dra_op *op, const char *name) {
        *op = (struct dra_op){ 0 };
        kubelet_prepare(node.claims, op, "user", name, put_claim(name));
}

void unprepare_claim(struct dra_op *op, const char *name) {
        *op = (struct dra_op){ 0 };
        kubelet_unprepare(node.claims, op, "user", name, put_claim(name));
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
                node_turn();
        return op;
}

/* ---- the process ---- */

struct start {
        bool done;
        int r;
        struct err *e;
};

static void on_started(void *u, const struct err *e) {
        struct start *s = u;
        s->done = true;
        s->r = e ? -1 : 0;
        if (e)
                *s->e = *e;
}

int node_start_claims(uv_loop_t *loop, struct claims *c, struct err *e) {
        struct start s = { .e = e };
        claims_start(c, on_started, &s);
        while (!s.done)
                uv_run(loop, UV_RUN_ONCE);
        return s.r;
}

void node_start(const struct node_driver *driver, void *u) {
        const struct claims_options o = {
                .loop = &node.loop,
                .metrics = &node.metrics,
                .driver = driver,
                .u = u,
                .node = "n0",
                .plugin_dir = node.plugin_dir,
                .cdi_root = node.cdi_root,
                .boot_id = str_or(node.boot, NODE_BOOT),
        };
        struct err e;
        assert_int_equal(claims_new(&o, &node.claims, &e), 0);
        assert_int_equal(node_start_claims(&node.loop, node.claims, &e), 0);
}

void node_begin(const char *driver, const char *const *types, node_claim_fn *claim) {
        struct err e;
        memset(&node, 0, sizeof node);
        uv_loop_init(&node.loop);
        api_begin(&node.loop);
        node.claim = claim;
        node.dir = tree_new();
        node.plugin_dir = file_join(node.dir, "plugin");
        node.cdi_root = file_join(node.dir, "cdi");
        assert_int_equal(file_mkdirs(node.plugin_dir, 0750, &e), 0);
        assert_int_equal(file_mkdirs(node.cdi_root, 0750, &e), 0);
        node_metrics_init(&node.metrics, &(struct node_metrics_options){
                                                 .node = "n0",
                                                 .driver = driver,
                                                 .types = types,
                                                 .inside = "a",
                                                 .pending = "b",
                                                 .total = "c",
                                                 .failures = "d",
                                         });
}

int node_end(void) {
        claims_free(node.claims);
        uv_run(&node.loop, UV_RUN_DEFAULT);
        api_end();
        node_metrics_done(&node.metrics);
        free(node.plugin_dir);
        free(node.cdi_root);
        tree_remove(node.dir);
        return uv_loop_close(&node.loop);
}
