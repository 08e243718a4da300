/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets, compared with what the Go driver and NVIDIA's toolkit have written for the same
 * driver root (golden/cdi-*.json, which are its YAML as JSON). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "driver_tree.h"
#include "gpu_plugin/gpu_edits.h"
#include "tree.h"

static char *root;
static struct arena *a;
static struct err e;
static struct driver_set files;
static struct gpu_edits_options o;
static bool nodes;

static const struct gpu_device gpus[] = {
        { .kind = GPU_FULL, .name = "gpu-0", .minor = 0, .address = "0000:16:00.0" },
        { .kind = GPU_FULL, .name = "gpu-1", .minor = 1, .address = "0000:17:00.0" },
        { .kind = GPU_MIG,
          .name = "gpu-0-mig-1g24gb-19-0",
          .minor = 0,
          .address = "0000:16:00.0",
          .gpu_instance = 7 },
        { .kind = GPU_FULL, .name = "gpu-7", .minor = 7 },
};

static int setup(void **state) {
        (void)state;
        root = tree_new();
        a = arena_new(4096);
        nodes = driver_tree_of_golden(root);
        struct driver_root driver = { "/run/nvidia/driver", root };
        if (driver_set_find(&(struct driver_set_options){ .root = driver,
                                                          .version = DRIVER_TREE_VERSION,
                                                          .machine = "x86_64",
                                                          .kernel_release = "6.1.0",
                                                          .firmware_path = "" },
                            a, &files, &e) < 0)
                fail_msg("%s", e.msg);
        o = (struct gpu_edits_options){ .root = driver,
                                        .dev_root = driver,
                                        .sys = xasprintf("%s/sys", root),
                                        .proc_driver = xasprintf("%s/proc", root),
                                        .caps_major = 236,
                                        .hook = "/var/lib/kubelet/plugins/gpu.nvidia.com/nvidia-cdi-hook",
                                        .driver_version = DRIVER_TREE_VERSION };
        return 0;
}

static int teardown(void **state) {
        (void)state;
        char *made[] = { root, NULL };
        free((char *)(uintptr_t)o.sys);
        free((char *)(uintptr_t)o.proc_driver);
        arena_free(a);
        tree_remove(made[0]);
        return 0;
}

static struct cdi_edits edits_of(const struct gpu_device *d, const struct cdi_edits *common) {
        struct cdi_edits ed;
        if (gpu_edits_device(&o, d, common, a, &ed, &e) < 0)
                fail_msg("%s", e.msg);
        return ed;
}

static struct cdi_edits all_have(void) {
        struct cdi_edits ed;
        if (gpu_edits_common(&o, &files, a, &ed, &e) < 0)
                fail_msg("%s", e.msg);
        return ed;
}

static void equals_golden(const char *name, const char *uid, size_t n) {
        struct cdi_edits common = all_have();
        struct cdi_device *devices = arena_alloc(a, n * sizeof *devices);
        for (size_t i = 0; i < n; i++)
                devices[i] = (struct cdi_device){ arena_printf(a, "%s-%s", uid, gpus[i].name),
                                                  edits_of(&gpus[i], &common) };
        struct cdi_spec spec = {
                .kind = GPU_CDI_KIND_CLAIM, .devices = devices, .n_devices = n, .common = common
        };
        struct buf text = BUF_INIT(1 << 20);
        _cleanup_(freep) char *path = xasprintf(GO_GOLDEN_DIR "/%s", name);
        _cleanup_(freep) char *want = NULL;
        size_t n_want = 0;
        assert_int_equal(cdi_validate(&spec, &e), 0);
        cdi_render(&spec, &text);
        assert_int_equal(file_read(path, 1 << 20, &want, &n_want, &e), 0);
        yyjson_doc *ours = yyjson_read(text.p, text.n, 0), *gos = yyjson_read(want, n_want, 0);
        if (!yyjson_equals(yyjson_doc_get_root(ours), yyjson_doc_get_root(gos))) {
                _cleanup_(freep) char *x = yyjson_write(ours, YYJSON_WRITE_PRETTY, NULL);
                _cleanup_(freep) char *y = yyjson_write(gos, YYJSON_WRITE_PRETTY, NULL);
                assert_string_equal(x, y);
                fail_msg("they differ");
        }
        yyjson_doc_free(ours);
        yyjson_doc_free(gos);
        buf_done(&text);
}

static void a_gpu_is_given_as_the_go_driver_does(void **state) {
        (void)state;
        if (!nodes)
                skip();
        equals_golden("cdi-one-gpu.json", "11111111-0000-4000-8000-000000000001", 1);
}

static void several_gpus_are_given_as_the_go_driver_does(void **state) {
        (void)state;
        if (!nodes)
                skip();
        equals_golden("cdi-two-gpus.json", "11111111-0000-4000-8000-000000000002", 2);
}

static void a_gpu_without_a_device_node_is_refused_with_the_remedy(void **state) {
        (void)state;
        struct cdi_edits ed;
        assert_int_equal(gpu_edits_device(&o, &gpus[3], NULL, a, &ed, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_non_null(
                strstr(e.msg, "'gpu-7' has no device node '/dev/nvidia7' below '/run/nvidia/driver'"));
        assert_non_null(strstr(e.msg, "nvidia-smi"));
}

static void display_nodes_come_with_the_links_that_lead_to_them(void **state) {
        (void)state;
        if (!nodes || !driver_tree_node(root, "dev/dri/card1", 226, 1, 0660, 44) ||
            !driver_tree_node(root, "dev/dri/renderD129", 226, 129, 0666, 0) ||
            !driver_tree_node(root, "dev/dri/card9", 226, 9, 0660, 44))
                skip();
        tree_put(root, "sys/bus/pci/devices/0000:16:00.0/drm/card1/dev", "");
        tree_put(root, "sys/bus/pci/devices/0000:16:00.0/drm/renderD129/dev", "");
        tree_put(root, "sys/bus/pci/devices/0000:16:00.0/drm/card2/dev", ""); /* has no node */
        driver_tree_link(root, "dev/dri/by-path/pci-0000:16:00.0-card", "../card1");
        driver_tree_link(root, "dev/dri/by-path/pci-0000:16:00.0-render", "../card9"); /* another's */
        struct cdi_edits ed = edits_of(&gpus[0], NULL);
        assert_int_equal(ed.n_nodes, 3);
        assert_string_equal(ed.nodes[0].path, "/dev/nvidia0");
        assert_string_equal(ed.nodes[1].path, "/dev/dri/card1");
        assert_string_equal(ed.nodes[1].host_path, "/run/nvidia/driver/dev/dri/card1");
        assert_int_equal(ed.nodes[1].gid, 44);
        assert_string_equal(ed.nodes[2].path, "/dev/dri/renderD129");
        assert_int_equal(ed.n_gids, 1);
        assert_int_equal(ed.n_hooks, 1);
        assert_string_equal(ed.hooks[0].args[1], "create-symlinks");
        assert_string_equal(ed.hooks[0].args[3], "../card1::/dev/dri/by-path/pci-0000:16:00.0-card");
        assert_null(ed.hooks[0].args[4]);
}

static void a_mig_device_is_its_gpu_and_two_capabilities(void **state) {
        (void)state;
        if (!nodes)
                skip();
        tree_put(root, "proc/capabilities/gpu0/mig/gi7/access",
                 "DeviceFileMinor: 66\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
        struct cdi_edits ed;
        assert_int_equal(gpu_edits_device(&o, &gpus[2], NULL, a, &ed, &e), -1);
        assert_non_null(strstr(e.msg, "'gpu-0-mig-1g24gb-19-0'"));
        tree_put(root, "proc/capabilities/gpu0/mig/gi7/ci0/access",
                 "DeviceFileMinor: 67\nDeviceFileMode: 292\n");
        ed = edits_of(&gpus[2], NULL);
        assert_int_equal(ed.n_nodes, 3);
        assert_string_equal(ed.nodes[0].path, "/dev/nvidia0");
        assert_string_equal(ed.nodes[1].path, "/dev/nvidia-caps/nvidia-cap66");
        assert_int_equal(ed.nodes[1].major, 236);
        assert_int_equal(ed.nodes[1].mode, 0444);
        assert_false(ed.nodes[1].untyped);
        assert_string_equal(ed.nodes[2].path, "/dev/nvidia-caps/nvidia-cap67");
        tree_put(root, "proc/capabilities/gpu0/mig/gi7/access", "DeviceFileMinor: many\n");
        assert_int_equal(gpu_edits_device(&o, &gpus[2], NULL, a, &ed, &e), -1);
        o.caps_major = 0;
        assert_int_equal(gpu_edits_device(&o, &gpus[2], NULL, a, &ed, &e), -1);
        assert_non_null(strstr(e.msg, "nvidia-caps"));
}

static void a_hook_of_nvidias_toolkit_has_its_command_line(void **state) {
        (void)state;
        o.hook = "/usr/bin/nvidia-ctk";
        struct cdi_edits ed = all_have();
        assert_string_equal(ed.hooks[0].args[0], "nvidia-ctk");
        assert_string_equal(ed.hooks[0].args[1], "hook");
        assert_string_equal(ed.hooks[0].args[2], "create-symlinks");
}

static void our_hook_is_told_its_ldconfig(void **state) {
        (void)state;
        o.ldconfig = "/p/ldconfig-1";
        struct cdi_edits ed = all_have();
        const char *const *args = ed.hooks[3].args;
        assert_string_equal(args[1], "update-ldcache");
        while (args[1])
                args++;
        assert_string_equal(args[-1], "--ldconfig-path");
        assert_string_equal(args[0], "/p/ldconfig-1");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_gpu_is_given_as_the_go_driver_does),
                T(several_gpus_are_given_as_the_go_driver_does),
                T(a_gpu_without_a_device_node_is_refused_with_the_remedy),
                T(display_nodes_come_with_the_links_that_lead_to_them),
                T(a_mig_device_is_its_gpu_and_two_capabilities),
                T(a_hook_of_nvidias_toolkit_has_its_command_line),
                T(our_hook_is_told_its_ldconfig),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
