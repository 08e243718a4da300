/* SPDX-License-Identifier: Apache-2.0 */
#include "world/gpu_claims.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "driver_tree.h"
#include "tree.h"

struct gpu_claims w;

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

static char *claim(const char *name, const char **ret_uid) {
        *ret_uid = streq(name, "one") ? ONE : TWO;
        return xasprintf("{\"results\":[%s],\"config\":[%s]}", w.results, w.config);
}

void refused(const char *name, const char *why) {
        struct dra_op op;
        prepare_claim(&op, name);
        until(&op, FAILED);
        if (!strstr(op.msg, why))
                fail_msg("'%s' is not in '%s'", why, op.msg);
        unprepared_claim(name);
}

char *file_of(const char *uid) {
        return cdi_path(node.cdi_root, GPU_CDI_KIND_CLAIM, uid);
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
        return file_join(node.plugin_dir, "checkpoint.json");
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
        w.looks++;
        return w.holds;
}

static bool verify(void *u, const struct gpu_device *d, uint64_t since_ms) {
        w.verify_wanted |= 1U << (d - gpus);
        return !w.unverified;
}

static void wanted(void *u, bool yes) {
        w.wanted = yes;
}

void start(void) {
        /* The driver must copy the text, because the installer may free it. */
        _cleanup_(freep) char *hook = xstrdup("/var/lib/kubelet/plugins/gpu.nvidia.com/nvidia-cdi-hook");
        w.gpu = gpu_driver_new(&(struct gpu_driver_options){
                .node = "n0",
                .gates = &w.gates,
                .root = { "/run/nvidia/driver", node.dir },
                .sys = w.sys,
                .proc_driver = w.proc,
                .proc_devices = w.proc_devices,
                .hook = hook,
                .ipc_sockets = w.ipc_sockets,
                .hold = hold,
                .verify = verify,
                .wanted = wanted,
        });
        node_start(&gpu_driver, w.gpu);
}

int gpu_claims_setup(void **state) {
        static const char *const types[] = { "gpu", "mig", NULL };
        memset(&w, 0, sizeof w);
        node_begin(GPU_DRIVER, types, claim);
        w.nodes = driver_tree_of_golden(node.dir);
        w.sys = file_join(node.dir, "sys");
        w.proc = file_join(node.dir, "proc");
        w.proc_devices = file_join(node.dir, "devices");
        tree_put(node.dir, "devices",
                 "Character devices:\n195 nvidia\n510 nvidia-uvm\n236 nvidia-caps\n\nBlock devices:\n");
        tree_put(node.dir, "proc/capabilities/gpu1/mig/gi7/access",
                 "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
        tree_put(node.dir, "proc/capabilities/gpu1/mig/gi7/ci0/access",
                 "DeviceFileMinor: 67\nDeviceFileMode: 292\n");
        gates_init(&w.gates);
        w.devices = (struct gpu_devices){ .driver_version = DRIVER_TREE_VERSION,
                                          .items = gpus,
                                          .n = ARRAY_LEN(gpus) };
        w.results = RESULT("gpu", "gpu-0");
        w.config = "";
        w.holds = true;
        gpus[0].uuid = "GPU-0";
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        return 0;
}

void needs_nodes(void) {
        if (!w.nodes)
                skip();
}

int gpu_claims_teardown(void **state) {
        free(w.sys);
        free(w.proc);
        free(w.proc_devices);
        return node_end();
}
