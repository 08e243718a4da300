/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the edits of a container with those that the Go driver and NVIDIA's toolkit write for the same
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
                                                          .firmware_path = "",
                                                          .sockets = true },
                            a, &files, &e) < 0)
                fail_msg("%s", e.msg);
        o = (struct gpu_edits_options){ .root = driver,
                                        .dev_root = driver,
                                        .sys = xasprintf("%s/sys", root),
                                        .proc_driver = xasprintf("%s/proc", root),
                                        .majors = { .gpu = 195, .uvm = 510, .caps = 236 },
                                        .node_mode = 0666,
                                        .gids = true,
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

/* The Go driver leaves type and numbers out if the host has a node, because the runtime reads the node. */
static void drop_types(yyjson_mut_val *edits) {
        yyjson_mut_val *node;
        size_t i, max;
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(edits, "deviceNodes"), i, max, node) {
                assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(node, "type")), "c");
                yyjson_mut_obj_remove_key(node, "type");
        }
}

static yyjson_doc *without_types(struct buf *text) {
        yyjson_doc *doc = yyjson_read(text->p, text->n, 0);
        yyjson_mut_doc *copy = yyjson_doc_mut_copy(doc, NULL);
        yyjson_mut_val *spec = yyjson_mut_doc_get_root(copy), *device;
        size_t i, max;
        drop_types(yyjson_mut_obj_get(spec, "containerEdits"));
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(spec, "devices"), i, max, device) {
                drop_types(yyjson_mut_obj_get(device, "containerEdits"));
        }
        yyjson_doc_free(doc);
        doc = yyjson_mut_doc_imut_copy(copy, NULL);
        yyjson_mut_doc_free(copy);
        return doc;
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
        yyjson_doc *ours = without_types(&text), *gos = yyjson_read(want, n_want, 0);
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

/* failure: a GPU is prepared -> its CDI file has the content of the Go driver's */
static void a_gpu_has_the_cdi_edits_of_the_go_driver(void **state) {
        (void)state;
        if (!nodes)
                skip();
        equals_golden("cdi-one-gpu.json", "11111111-0000-4000-8000-000000000001", 1);
}

static void several_gpus_have_the_cdi_edits_of_the_go_driver(void **state) {
        (void)state;
        if (!nodes)
                skip();
        equals_golden("cdi-two-gpus.json", "11111111-0000-4000-8000-000000000002", 2);
}

static const struct cdi_node *node_at(const struct cdi_edits *ed, const char *path) {
        for (size_t i = 0; i < ed->n_nodes; i++) {
                if (streq(ed->nodes[i].path, path))
                        return &ed->nodes[i];
        }
        return NULL;
}

static void has_node(const struct cdi_edits *ed, const char *path, unsigned major, unsigned minor,
                     unsigned mode) {
        const struct cdi_node *n = node_at(ed, path);
        if (!n)
                fail_msg("there is no %s", path);
        assert_int_equal(n->major, major);
        assert_int_equal(n->minor, minor);
        assert_int_equal(n->mode, mode);
}

static void remove_node(const char *path) {
        _cleanup_(freep) char *node = file_join(root, path);
        assert_true(unlink(node) == 0 || !nodes);
}

/* The host has run no CUDA program since its boot. */
/* failure: the host lacks /dev/nvidia-uvm because no CUDA program has run -> the container runtime creates it
 * */
static void missing_device_nodes_are_created_by_the_runtime(void **state) {
        static const char *const all[] = { "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-modeset",
                                           "dev/nvidia-uvm", "dev/nvidia-uvm-tools" };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                remove_node(all[i]);
        o.node_mode = 0660;
        o.node_gid = 44;
        struct cdi_edits common = all_have(), ed = edits_of(&gpus[0], NULL);
        has_node(&common, "/dev/nvidiactl", 195, 255, 0660);
        has_node(&common, "/dev/nvidia-uvm", 510, 0, 0660);
        has_node(&common, "/dev/nvidia-uvm-tools", 510, 1, 0660);
        has_node(&ed, "/dev/nvidia0", 195, 0, 0660);
        assert_null(ed.nodes[0].host_path);
        assert_int_equal(ed.gids[0], 44);
        assert_null(node_at(&common, "/dev/nvidia-modeset"));
        tree_put(root, "sys/module/nvidia_modeset/version", "");
        common = all_have();
        has_node(&common, "/dev/nvidia-modeset", 195, 254, 0660);
}

/* The major of nvidia-uvm changes when the module is loaded again. */
/* failure: a device node has the numbers of an earlier driver -> the kernel's numbers take precedence */
static void the_device_numbers_of_the_kernel_take_precedence(void **state) {
        (void)state;
        if (!nodes)
                skip();
        o.majors.uvm = 509;
        struct cdi_edits common = all_have();
        has_node(&common, "/dev/nvidia-uvm", 509, 0, 0666);
        has_node(&common, "/dev/nvidia-uvm-tools", 509, 1, 0666);
}

static void without_the_uvm_module_there_is_no_gpu_and_the_remedy_is_named(void **state) {
        struct cdi_edits ed;
        (void)state;
        o.majors.uvm = 0;
        tree_put(root, "sys/module/nvidia/version", DRIVER_TREE_VERSION);
        assert_int_equal(gpu_edits_common(&o, &files, a, &ed, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(e.code, GPU_EDITS_NO_UVM);
        assert_non_null(strstr(e.msg, "modprobe nvidia_uvm"));
}

/* The substitute for /proc/devices may list fewer devices than exist. */
static void without_the_kernels_list_the_device_nodes_have_the_numbers(void **state) {
        (void)state;
        if (!nodes)
                skip();
        o.majors = (struct proc_majors){ 0 };
        struct cdi_edits common = all_have(), ed = edits_of(&gpus[0], NULL);
        has_node(&common, "/dev/nvidia-uvm", 510, 0, 0666);
        has_node(&common, "/dev/nvidiactl", 195, 255, 0666);
        has_node(&ed, "/dev/nvidia0", 195, 0, 0666);
        remove_node("dev/nvidiactl");
        assert_int_equal(gpu_edits_common(&o, &files, a, &ed, &e), -1);
        assert_non_null(strstr(e.msg, "'/dev/nvidiactl' below '/run/nvidia/driver'"));
}

static void a_gpu_without_a_device_node_is_refused_with_the_remedy(void **state) {
        (void)state;
        struct cdi_edits ed;
        o.majors.gpu = 0;
        assert_int_equal(gpu_edits_device(&o, &gpus[3], NULL, a, &ed, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_non_null(strstr(e.msg, "'gpu-7'"));
        assert_non_null(strstr(e.msg, "'/dev/nvidia7' below '/run/nvidia/driver'"));
        assert_non_null(strstr(e.msg, "nvidia-smi"));
}

/* A runtime with an older CDI rejects the whole file because of additional groups. */
static void groups_can_be_left_out(void **state) {
        struct buf text = BUF_INIT(1 << 20);
        (void)state;
        if (!nodes)
                skip();
        assert_int_equal(all_have().n_gids, 1); /* of nvidia-modeset */
        o.gids = false;
        struct cdi_edits common = all_have();
        struct cdi_device device = { "gpu-0", edits_of(&gpus[0], &common) };
        cdi_render(
                &(struct cdi_spec){
                        .kind = GPU_CDI_KIND_CLAIM, .devices = &device, .n_devices = 1, .common = common },
                &text);
        assert_null(strstr(buf_str(&text), "additionalGids"));
        assert_non_null(strstr(buf_str(&text), "\"cdiVersion\":\"0.5.0\""));
        assert_non_null(node_at(&common, "/dev/nvidia-modeset"));
        buf_done(&text);
}

static void display_nodes_have_links_by_path(void **state) {
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

static void a_mig_device_has_the_node_of_its_gpu_and_two_capabilities(void **state) {
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
        assert_string_equal(ed.nodes[2].path, "/dev/nvidia-caps/nvidia-cap67");
        tree_put(root, "proc/capabilities/gpu0/mig/gi7/access", "DeviceFileMinor: many\n");
        assert_int_equal(gpu_edits_device(&o, &gpus[2], NULL, a, &ed, &e), -1);
        o.majors.caps = 0;
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

static void a_hook_without_application_profiles_gets_no_such_command(void **state) {
        (void)state;
        size_t n = all_have().n_hooks;
        o.no_profiles = true;
        struct cdi_edits ed = all_have();
        assert_int_equal(ed.n_hooks, n - 1);
        for (size_t i = 0; i < ed.n_hooks; i++)
                assert_string_not_equal(ed.hooks[i].args[1], "update-application-profile");
}

static void our_hook_gets_the_path_of_ldconfig(void **state) {
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
                T(a_gpu_has_the_cdi_edits_of_the_go_driver),
                T(several_gpus_have_the_cdi_edits_of_the_go_driver),
                T(missing_device_nodes_are_created_by_the_runtime),
                T(the_device_numbers_of_the_kernel_take_precedence),
                T(without_the_uvm_module_there_is_no_gpu_and_the_remedy_is_named),
                T(without_the_kernels_list_the_device_nodes_have_the_numbers),
                T(a_gpu_without_a_device_node_is_refused_with_the_remedy),
                T(groups_can_be_left_out),
                T(display_nodes_have_links_by_path),
                T(a_mig_device_has_the_node_of_its_gpu_and_two_capabilities),
                T(a_hook_of_nvidias_toolkit_has_its_command_line),
                T(a_hook_without_application_profiles_gets_no_such_command),
                T(our_hook_gets_the_path_of_ldconfig),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
