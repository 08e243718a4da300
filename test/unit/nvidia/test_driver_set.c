/* SPDX-License-Identifier: Apache-2.0 */
/* Driver roots in the form of distributions and driver containers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "driver_tree.h"
#include "nvidia/driver_set.h"
#include "nvidia/elf_soname.h"
#include "nvidia/ld_cache.h"
#include "tree.h"

static char *root;
static struct arena *a;
static struct err e;
static struct driver_set set;
static struct driver_set_options o;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        a = arena_new(4096);
        o = (struct driver_set_options){ .root = { "/host", root },
                                         .version = "580.95.05",
                                         .machine = "x86_64",
                                         .kernel_release = "6.8.0-1",
                                         .firmware_path = "" };
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_free(a);
        tree_remove(root);
        return 0;
}

static void find(void) {
        if (driver_set_find(&o, a, &set, &e) < 0)
                fail_msg("%s", e.msg);
}

static const struct driver_item *at(const char *inside) {
        for (size_t i = 0; i < set.n; i++) {
                if (streq(set.items[i].inside, inside))
                        return &set.items[i];
        }
        fail_msg("there is no %s", inside);
        return NULL;
}

/* failure: a driver is in Ubuntu's folders -> its files are found */
static void ubuntu_has_a_folder_for_each_machine(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_link(root, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.580.95.05");
        driver_tree_link(root, "lib", "usr/lib");
        driver_tree_library(root, "usr/lib/i386-linux-gnu/libcuda.so.580.95.05", "libcuda.so.1");
        tree_put(root, "usr/bin/nvidia-smi", "");
        find();
        assert_string_equal(set.library_dir, "/usr/lib/x86_64-linux-gnu");
        assert_int_equal(set.n, 2);
        const struct driver_item *cuda = at("/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05");
        assert_string_equal(cuda->host, "/host/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05");
        assert_string_equal(cuda->soname, "libcuda.so.1");
        assert_true(cuda->has_soname_link);
        assert_false(cuda->has_bare_link);
        assert_int_equal(at("/usr/bin/nvidia-smi")->group, DRIVER_PROGRAM);
}

static void arm64_has_its_own_folder(void **state) {
        (void)state;
        o.machine = "aarch64";
        driver_tree_library(root, "usr/lib/aarch64-linux-gnu/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05", "libcuda.so.1");
        tree_put(root, "usr/share/vulkan/icd.d/nvidia_icd.aarch64.json", "");
        tree_put(root, "usr/share/vulkan/icd.d/nvidia_icd.x86_64.json", "");
        find();
        assert_string_equal(set.library_dir, "/usr/lib/aarch64-linux-gnu");
        assert_string_equal(at("/etc/vulkan/icd.d/nvidia_icd.aarch64.json")->host,
                            "/host/usr/share/vulkan/icd.d/nvidia_icd.aarch64.json");
        assert_int_equal(set.n, 2);
}

/* All files are behind absolute links, which are relative to the driver root. */
/* failure: a driver is behind Debian's alternatives -> its files are found */
static void debian_has_alternatives(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.580.95.05",
                            "libcuda.so.1");
        driver_tree_link(root, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/libcuda.so.1");
        driver_tree_link(root, "usr/bin/nvidia-smi", "/etc/alternatives/nvidia--nvidia-smi");
        driver_tree_link(root, "etc/alternatives/nvidia--nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
        tree_put(root, "usr/lib/nvidia/current/nvidia-smi", "");
        find();
        assert_string_equal(set.library_dir, "/usr/lib/x86_64-linux-gnu/nvidia/current");
        assert_string_equal(at("/usr/bin/nvidia-smi")->host, "/host/usr/lib/nvidia/current/nvidia-smi");
}

/* failure: a driver is in lib64 -> its files are found */
static void rocky_has_lib64(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_link(root, "lib64", "usr/lib64");
        driver_tree_library(root, "usr/lib64/libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1");
        driver_tree_library(root, "usr/lib64/xorg/modules/drivers/nvidia_drv.so", NULL);
        tree_put(root, "usr/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin", "");
        driver_tree_link(root, "lib", "usr/lib");
        tree_put(root, "usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json", "");
        find();
        assert_string_equal(set.library_dir, "/usr/lib64");
        assert_int_equal(set.n, 5);
        assert_int_equal(at("/usr/lib64/libnvidia-egl-gbm.so.1.1.2")->group, DRIVER_GRAPHICS);
        assert_int_equal(at("/usr/lib64/xorg/modules/drivers/nvidia_drv.so")->group, DRIVER_XORG);
        assert_string_equal(at("/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin")->host,
                            "/host/usr/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin");
}

/* A host without a distribution's layout (GKE, Talos): the root contains only the driver. */
/* failure: the driver root has no layout of a distribution -> its files are found */
static void a_root_that_contains_only_a_driver(void **state) {
        (void)state;
        driver_tree_library(root, "lib64/libnvidia-ml.so.580.95.05", "libnvidia-ml.so.1");
        tree_put(root, "bin/nvidia-smi", "");
        tree_put(root, "vulkan/icd.d/nvidia_icd.json", "");
        find();
        assert_string_equal(set.library_dir, "/lib64");
        assert_string_equal(at("/etc/vulkan/icd.d/nvidia_icd.json")->host,
                            "/host/vulkan/icd.d/nvidia_icd.json");
        assert_string_equal(at("/bin/nvidia-smi")->host, "/host/bin/nvidia-smi");
}

static void the_kernels_firmware_path_is_searched_too(void **state) {
        (void)state;
        o.firmware_path = "/var/lib/firmware";
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        tree_put(root, "var/lib/firmware/nvidia/580.95.05/gsp_tu10x.bin", "");
        tree_put(root, "var/lib/firmware/nvidia/570.1/gsp_tu10x.bin", "");
        find();
        assert_int_equal(set.n, 2);
        assert_int_equal(at("/var/lib/firmware/nvidia/580.95.05/gsp_tu10x.bin")->group, DRIVER_FIRMWARE);
}

static void anything_but_files_and_programs_is_left_out(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_link(root, "usr/lib64/libnvidia-x.so.580.95.05", "/nowhere");
        tree_put(root, "usr/lib64/libnvidia-y.so.580.95.05/a", "");
        tree_put(root, "usr/bin/nvidia-smi/a", "");
        tree_put(root, "run/nvidia-persistenced/socket/a", "");
        o.sockets = true;
        tree_put(root, "sbin/nvidia-imex", "");
        _cleanup_(freep) char *imex = xasprintf("%s/sbin/nvidia-imex", root);
        assert_int_equal(chmod(imex, 0644), 0);
        find();
        assert_int_equal(set.n, 1);
}

/* Sets the times of folders and clocks to an hour later. */
static void an_hour_passes(void) {
        set.begun.tv_sec += 3600;
}

/* failure: nvidia-persistenced or a package of the driver changes -> the driver's files are searched again */
static void a_driver_set_is_reused_until_a_folder_or_a_file_changes(void **state) {
        static const char *const appear[] = { "usr/lib64/libnvidia-egl-wayland.so.1.1.13",
                                              "usr/lib64/vdpau/a",
                                              "usr/bin/nvidia-imex",
                                              "usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
                                              "etc/vulkan/icd.d/nvidia_icd.json",
                                              "lib/firmware/nvidia/580.95.05/gsp_ga10x.bin",
                                              "run/nvidia-persistenced/socket" };
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_library(root, "opt/libnvidia-x.so.580.95.05", NULL);
        driver_tree_link(root, "usr/lib64/libnvidia-x.so.580.95.05", "/opt/libnvidia-x.so.580.95.05");
        o.sockets = true;
        find();
        an_hour_passes();
        assert_true(driver_set_holds(&o.root, &set));
        for (size_t i = 0; i < ARRAY_LEN(appear); i++) {
                tree_put(root, appear[i], "");
                assert_false(driver_set_holds(&o.root, &set));
                find();
                an_hour_passes();
                assert_true(driver_set_holds(&o.root, &set));
        }
        _cleanup_(freep) char *socket = file_join(root, "run/nvidia-persistenced/socket");
        _cleanup_(freep) char *linked = file_join(root, "opt/libnvidia-x.so.580.95.05");
        assert_int_equal(unlink(socket), 0);
        assert_false(driver_set_holds(&o.root, &set));
        find();
        an_hour_passes();
        assert_int_equal(unlink(linked), 0);
        assert_false(driver_set_holds(&o.root, &set));
        find();
        an_hour_passes();
        assert_true(driver_set_holds(&o.root, &set));
        assert_false(driver_set_holds(&(struct driver_root){ "/host", "/proc/self/nowhere" }, &set));
}

/* Two changes within one tick of the clock have the same time. */
static void a_folder_that_has_just_changed_is_searched_again(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        find();
        set.begun.tv_sec -= 1;
        assert_false(driver_set_holds(&o.root, &set));
}

/* failure: links of a driver root lead out of it -> they stay inside it */
static void links_out_of_the_root_stay_inside_it(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_link(root, "usr/bin/nvidia-smi", "../../../../../../../bin/sh");
        driver_tree_link(root, "usr/bin/nvidia-imex", "/bin/sh");
        find();
        assert_int_equal(set.n, 1);
}

/* failure: the driver's libraries have another version -> the error names both */
static void the_wrong_version_is_named(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.570.1", "libcuda.so.1");
        assert_int_equal(driver_set_find(&o, a, &set, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_non_null(strstr(e.msg, "libcuda.so.580.95.05"));
        assert_non_null(strstr(e.msg, "driver root '/host'"));
        assert_non_null(strstr(e.msg, "nvidiaDriverRoot"));
        o.version = "../../etc";
        assert_int_equal(driver_set_find(&o, a, &set, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

/* ---- the loader's cache ---- */

static void put32(struct buf *b, uint32_t v) {
        buf_add(b, &v, sizeof v);
}

static void one_entry(struct buf *b, const char *key, const char *path) {
        uint32_t texts = 48 + 24;
        buf_adds(b, "glibc-ld.so.cache1.1");
        put32(b, 1);
        for (int i = 0; i < 6; i++)
                put32(b, 0);
        put32(b, 1);
        put32(b, texts);
        put32(b, texts + (uint32_t)strlen(key) + 1);
        for (int i = 0; i < 3; i++)
                put32(b, 0);
        buf_add(b, key, strlen(key) + 1);
        buf_add(b, path, strlen(path) + 1);
}

static void the_loaders_cache_adds_folders(void **state) {
        (void)state;
        struct buf b = BUF_INIT(4096);
        one_entry(&b, "libcuda.so.1", "/opt/nvidia/lib/libcuda.so.1");
        driver_tree_library(root, "opt/nvidia/lib/libcuda.so.580.95.05", "libcuda.so.1");
        tree_put(root, "etc/ld.so.cache", "not a cache");
        assert_int_equal(driver_set_find(&o, a, &set, &e), -1);
        _cleanup_(freep) char *path = xasprintf("%s/etc/ld.so.cache", root);
        assert_int_equal(file_replace_volatile(path, b.p, b.n, 0644, &e), 0);
        find();
        assert_string_equal(set.library_dir, "/opt/nvidia/lib");
        buf_done(&b);
}

/* nvidia-tesla-535-driver: the folder is in no list, but the loader's path leads there through links. */
/* failure: a driver is in a folder that only the loader's cache names -> it is found */
static void debian_has_a_folder_for_each_branch(void **state) {
        (void)state;
        struct buf b = BUF_INIT(4096);
        one_entry(&b, "libcuda.so.1", "/lib/x86_64-linux-gnu/libcuda.so.1");
        _cleanup_(freep) char *path = xasprintf("%s/etc/ld.so.cache", root);
        driver_tree_link(root, "lib", "usr/lib");
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/nvidia/tesla-535/libcuda.so.580.95.05",
                            "libcuda.so.1");
        driver_tree_link(root, "usr/lib/x86_64-linux-gnu/nvidia/tesla-535/libcuda.so.1",
                         "libcuda.so.580.95.05");
        driver_tree_link(root, "usr/lib/x86_64-linux-gnu/libcuda.so.1",
                         "/etc/alternatives/glx--libcuda.so.1");
        driver_tree_link(root, "etc/alternatives/glx--libcuda.so.1",
                         "/usr/lib/x86_64-linux-gnu/nvidia/tesla-535/libcuda.so.1");
        assert_int_equal(file_replace_volatile(path, b.p, b.n, 0644, &e), 0);
        find();
        assert_string_equal(set.library_dir, "/usr/lib/x86_64-linux-gnu/nvidia/tesla-535");
        assert_int_equal(at("/usr/lib/x86_64-linux-gnu/nvidia/tesla-535/libcuda.so.580.95.05")->group,
                         DRIVER_LIBRARY);
        buf_done(&b);
}

/* failure: a driver is in two folders -> all its files are found */
static void a_driver_may_be_in_two_folders(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05", "libnvidia-ml.so.1");
        driver_tree_library(root, "usr/lib/x86_64-linux-gnu/libnvidia-cfg.so.580.95.05",
                            "libnvidia-cfg.so.1");
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_library(root, "usr/lib64/libnvidia-ptxjitcompiler.so.580.95.05",
                            "libnvidia-ptxjitcompiler.so.1");
        find();
        assert_string_equal(set.library_dir, "/usr/lib64"); /* of libcuda */
        assert_int_equal(set.n, 4);
        assert_string_equal(at("/usr/lib/x86_64-linux-gnu/libnvidia-cfg.so.580.95.05")->soname,
                            "libnvidia-cfg.so.1");
        assert_int_equal(at("/usr/lib64/libnvidia-ptxjitcompiler.so.580.95.05")->group, DRIVER_LIBRARY);
}

/* failure: a newer driver has libraries with their own versions -> they are found */
static void a_library_with_its_own_version_is_found(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        driver_tree_library(root, "usr/lib64/libnvidia-nvvm70.so.4", "libnvidia-nvvm70.so.4");
        find();
        assert_int_equal(set.n, 2);
        assert_int_equal(at("/usr/lib64/libnvidia-nvvm70.so.4")->group, DRIVER_LIBRARY);
}

/* failure: a newer driver has two kinds of firmware -> both are found */
static void firmware_of_newer_branches_has_two_kinds(void **state) {
        (void)state;
        driver_tree_library(root, "usr/lib64/libcuda.so.580.95.05", "libcuda.so.1");
        tree_put(root, "lib/firmware/nvidia/580.95.05/gsp_ga10x.bin", "");
        tree_put(root, "lib/firmware/nvidia/580.95.05/ucodes_gb20x.bin", "");
        tree_put(root, "var/lib/firmware/nvidia/580.95.05/ucodes_gb10x.bin", "");
        o.firmware_path = "/var/lib/firmware";
        find();
        assert_int_equal(set.n, 4);
        assert_int_equal(at("/lib/firmware/nvidia/580.95.05/ucodes_gb20x.bin")->group, DRIVER_FIRMWARE);
        assert_int_equal(at("/var/lib/firmware/nvidia/580.95.05/ucodes_gb10x.bin")->group, DRIVER_FIRMWARE);
}

static void a_truncated_cache_is_read_as_far_as_possible(void **state) {
        (void)state;
        struct buf b = BUF_INIT(4096);
        one_entry(&b, "libcuda.so.1", "/opt/libcuda.so.1");
        for (size_t n = 0; n <= b.n; n++) {
                _cleanup_(freep) char *copy = xmalloc(n + 1);
                size_t i = 0;
                struct str found;
                memcpy(copy, b.p, n);
                assert_int_equal(ld_cache_next((struct str){ copy, n }, "libcuda.so.1", &i, &found),
                                 n == b.n);
        }
        buf_done(&b);
}

/* ---- names of libraries ---- */

static void a_truncated_library_has_no_name(void **state) {
        (void)state;
        char name[ELF_SONAME_SIZE];
        driver_tree_library(root, "lib.so", "libcuda.so.1");
        _cleanup_(freep) char *path = xasprintf("%s/lib.so", root);
        _cleanup_(freep) char *text = NULL;
        size_t size = 0;
        assert_int_equal(file_read(path, 4096, &text, &size, &e), 0);
        for (size_t n = 0; n <= size; n++) {
                _cleanup_(closep) int fd = memfd_create("lib", MFD_CLOEXEC);
                assert_int_equal(write(fd, text, n), n);
                if (elf_soname(fd, name, &e) == 0)
                        assert_string_equal(name, "libcuda.so.1");
        }
        assert_string_equal(name, "libcuda.so.1");
}

static void a_name_that_is_a_path_is_ignored(void **state) {
        (void)state;
        static const char *const bad[] = { "../../etc/passwd", "a/b", ".", "a b", "\001" };
        char name[ELF_SONAME_SIZE];
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(freep) char *path = xasprintf("%s/lib%zu.so", root, i);
                driver_tree_library(root, strrchr(path, '/') + 1, bad[i]);
                FILE *f = fopen(path, "r");
                assert_non_null(f);
                assert_int_equal(elf_soname(fileno(f), name, &e), -1);
                fclose(f);
        }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(ubuntu_has_a_folder_for_each_machine),
                T(arm64_has_its_own_folder),
                T(debian_has_alternatives),
                T(rocky_has_lib64),
                T(a_root_that_contains_only_a_driver),
                T(the_kernels_firmware_path_is_searched_too),
                T(anything_but_files_and_programs_is_left_out),
                T(a_driver_set_is_reused_until_a_folder_or_a_file_changes),
                T(a_folder_that_has_just_changed_is_searched_again),
                T(links_out_of_the_root_stay_inside_it),
                T(the_wrong_version_is_named),
                T(the_loaders_cache_adds_folders),
                T(a_truncated_cache_is_read_as_far_as_possible),
                T(debian_has_a_folder_for_each_branch),
                T(a_driver_may_be_in_two_folders),
                T(a_library_with_its_own_version_is_found),
                T(firmware_of_newer_branches_has_two_kinds),
                T(a_truncated_library_has_no_name),
                T(a_name_that_is_a_path_is_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
