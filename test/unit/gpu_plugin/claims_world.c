/* SPDX-License-Identifier: Apache-2.0 */
#include "claims_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "driver_tree.h"
#include "tree.h"

struct claims_world w;

struct gpu_device gpus[3] = {
        { .kind = GPU_FULL, .name = "gpu-0", .uuid = "GPU-0", .minor = 0, .address = "0000:16:00.0" },
        { .kind = GPU_FULL, .name = "gpu-1", .uuid = "GPU-1", .minor = 1, .address = "0000:17:00.0" },
        { .kind = GPU_MIG,
          .name = "gpu-1-mig-1g24gb-19-0",
          .uuid = "MIG-0",
          .minor = 1,
          .address = "0000:17:00.0",
          .parent_uuid = "GPU-1",
          .gpu_instance = 7 },
};

/* ---- the API server ---- */

struct kube_call {
        struct loop_turn turn;
        char name[64];
        kube_done_fn *done;
        void *u;
};

static void on_turn(void *u) {
        struct kube_call *call = u;
        _cleanup_(freep) char *text =
                xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"user\",\"uid\":\"%s\","
                          "\"resourceVersion\":\"1\"},"
                          "\"status\":{\"allocation\":{\"devices\":{\"results\":[%s],\"config\":[%s]}}}}",
                          call->name, streq(call->name, "one") ? ONE : TWO, w.results, w.config);
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
        w.gets++;
        call->done(call->u, yyjson_doc_get_root(doc), NULL);
        yyjson_doc_free(doc);
        kube_cancel(call);
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = xnew(struct kube_call);
        (void)c;
        snprintf(call->name, sizeof call->name, "%s", r->name);
        call->done = r->done;
        call->u = r->u;
        loop_turn_init(&call->turn, &w.loop, on_turn, call);
        loop_turn_start(&call->turn);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        loop_turn_done(&call->turn);
        free(call);
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
        size_t n = (size_t)snprintf(w.event, sizeof w.event, "%s: ", reason);
        va_start(ap, fmt);
        vsnprintf(w.event + n, sizeof w.event - n, fmt, ap);
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
        for (size_t i = 0; i < n; i++)
                at += (size_t)snprintf(op->text + at, sizeof op->text - at, "%s%s/%s/%s=%s", i ? " " : "",
                                       devices[i].requests[0], devices[i].pool, devices[i].device,
                                       str_or(devices[i].cdi_ids[0], ""));
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
                uv_run(&w.loop, UV_RUN_ONCE);
        if (op->answer != want)
                fail_msg("%s", op->text);
}

void prepare(struct dra_op *op, const char *name) {
        *op = (struct dra_op){ 0 };
        claims_prepare(w.claims, op, &(struct dra_claim){ "user", name, streq(name, "one") ? ONE : TWO });
}

void unprepared(const char *name) {
        struct dra_op op = { 0 };
        claims_unprepare(w.claims, &op, &(struct dra_claim){ "user", name, streq(name, "one") ? ONE : TWO });
        until(&op, UNPREPARED);
}

void prepared(const char *name) {
        struct dra_op op;
        prepare(&op, name);
        until(&op, PREPARED);
}

void refused(const char *name, const char *why) {
        struct dra_op op;
        prepare(&op, name);
        until(&op, FAILED);
        if (!strstr(op.text, why))
                fail_msg("'%s' is not in '%s'", why, op.text);
        unprepared(name);
}

const struct op *waiting(void) {
        const struct op *op;
        while (!(op = TAILQ_FIRST(&w.claims->ops)) || op->phase != OP_WAITING)
                uv_run(&w.loop, UV_RUN_ONCE);
        return op;
}

char *file_of(const char *uid) {
        return cdi_path(w.cdi_root, GPU_CDI_KIND_CLAIM, uid);
}

char *read_file(const char *path) {
        char *text = NULL;
        struct err e;
        if (file_read(path, 1 << 20, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        return text;
}

bool is_there(const char *uid) {
        _cleanup_(freep) char *path = file_of(uid);
        return access(path, F_OK) == 0;
}

static char *checkpoint(void) {
        return file_join(w.plugin_dir, "checkpoint.json");
}

char *read_checkpoint(void) {
        _cleanup_(freep) char *path = checkpoint();
        return read_file(path);
}

void lose_checkpoint(void) {
        _cleanup_(freep) char *path = checkpoint();
        assert_int_equal(unlink(path), 0);
}

/* ---- the process ---- */

static bool hold(void *u) {
        (void)u;
        return w.holds;
}

static void wanted(void *u, bool yes) {
        (void)u;
        w.wanted = yes;
}

static void on_started(void *u, const struct err *e) {
        assert_null(e);
        *(bool *)u = true;
}

void start(void) {
        /* Who installs it may do so again, under another pointer. */
        _cleanup_(freep) char *hook = xstrdup("/var/lib/kubelet/plugins/gpu.nvidia.com/nvidia-cdi-hook");
        w.gpu = gpu_driver_new(&(struct gpu_driver_options){
                .node = "n0",
                .gates = &w.gates,
                .root = { "/run/nvidia/driver", w.dir },
                .sys = w.sys,
                .proc_driver = w.proc,
                .proc_devices = w.proc_devices,
                .hook = hook,
                .hold = hold,
                .wanted = wanted,
        });
        const struct claims_options o = {
                .loop = &w.loop,
                .metrics = &w.metrics,
                .driver = &gpu_driver,
                .u = w.gpu,
                .node = "n0",
                .plugin_dir = w.plugin_dir,
                .cdi_root = w.cdi_root,
                .boot_id = str_or(w.boot, BOOT),
        };
        bool started = false;
        struct err e;
        assert_int_equal(claims_new(&o, &w.claims, &e), 0);
        claims_start(w.claims, on_started, &started);
        while (!started)
                uv_run(&w.loop, UV_RUN_ONCE);
}

int claims_world_setup(void **state) {
        static const char *const types[] = { "gpu", "mig", NULL };
        static const struct node_metrics_options o = {
                .node = "n0",
                .driver = GPU_DRIVER,
                .types = types,
                .inside = "a",
                .pending = "b",
                .total = "c",
                .failures = "d",
        };
        struct err e;
        (void)state;
        memset(&w, 0, sizeof w);
        uv_loop_init(&w.loop);
        w.dir = tree_new();
        w.nodes = driver_tree_of_golden(w.dir);
        w.plugin_dir = file_join(w.dir, "plugin");
        w.cdi_root = file_join(w.dir, "cdi");
        w.sys = file_join(w.dir, "sys");
        w.proc = file_join(w.dir, "proc");
        w.proc_devices = file_join(w.dir, "devices");
        tree_put(w.dir, "devices", "Character devices:\n236 nvidia-caps\n\nBlock devices:\n");
        tree_put(w.dir, "proc/capabilities/gpu1/mig/gi7/access",
                 "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
        tree_put(w.dir, "proc/capabilities/gpu1/mig/gi7/ci0/access",
                 "DeviceFileMinor: 67\nDeviceFileMode: 292\n");
        assert_int_equal(file_mkdirs(w.plugin_dir, 0750, &e), 0);
        assert_int_equal(file_mkdirs(w.cdi_root, 0750, &e), 0);
        w.registry = metrics_new();
        node_metrics_init(&w.metrics, w.registry, &o);
        gates_init(&w.gates);
        w.devices = (struct gpu_devices){ .driver_version = DRIVER_TREE_VERSION,
                                          .items = gpus,
                                          .n = ARRAY_LEN(gpus) };
        w.results = RESULT("gpu", "gpu-0");
        w.config = "";
        w.holds = true;
        gpus[0].uuid = "GPU-0";
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        return 0;
}

void needs_nodes(void) {
        if (!w.nodes)
                skip();
}

int claims_world_teardown(void **state) {
        (void)state;
        claims_free(w.claims);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        metrics_free(w.registry);
        free(w.plugin_dir);
        free(w.cdi_root);
        free(w.sys);
        free(w.proc);
        free(w.proc_devices);
        tree_remove(w.dir);
        return uv_loop_close(&w.loop);
}
