/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "nvidia/device_nodes.h"
#include "tree.h"

static char *root, *dev;
static struct err e;

static int setup(void **state) {
        root = tree_new();
        dev = tree_new();
        return 0;
}

static int teardown(void **state) {
        tree_remove(root);
        tree_remove(dev);
        return 0;
}

static void node(const char *name, unsigned minor_number) {
        _cleanup_(freep) char *dir = file_join(root, "dev"), *path = file_join(dir, name);
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        if (mknod(path, S_IFCHR | 0600, makedev(195, minor_number)) < 0)
                skip(); /* possible only as root */
}

static void copy(void) {
        assert_int_equal(device_nodes_copy(&(struct driver_root){ "/run/nvidia/driver", root }, dev, &e), 0);
}

/* -1: there is none. */
static int minor_of(const char *name) {
        _cleanup_(freep) char *path = file_join(dev, name);
        struct stat st;
        if (lstat(path, &st) < 0)
                return -1;
        assert_true(S_ISCHR(st.st_mode));
        assert_int_equal(major(st.st_rdev), 195);
        return (int)minor(st.st_rdev);
}

/* failure: NVML may create no device nodes, and only the driver root has them -> the plugin creates them */
static void gpu_nodes_of_the_driver_root_are_copied(void **state) {
        node("nvidiactl", 255);
        node("nvidia0", 0);
        node("nvidia11", 11);
        copy();
        assert_int_equal(minor_of("nvidiactl"), 255);
        assert_int_equal(minor_of("nvidia0"), 0);
        assert_int_equal(minor_of("nvidia11"), 11);
        copy();
        assert_int_equal(tree_entries(dev, ""), 2 + 3);
}

static void other_files_are_not_copied(void **state) {
        static const char *const others[] = {
                "nvidia",     "nvidia-uvm", "nvidia-modeset", "nvidia1x",
                "nvidiactl2", "nvidia-1",   "null",           "nvidia-nvswitch0"
        };
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                node(others[i], 1);
        tree_put(root, "dev/nvidia3", "no device");
        copy();
        assert_int_equal(tree_entries(dev, ""), 2);
}

static void an_existing_file_is_kept(void **state) {
        node("nvidia0", 7);
        _cleanup_(freep) char *path = file_join(dev, "nvidia0");
        assert_int_equal(symlink("/nowhere", path), 0);
        copy();
        char target[16];
        assert_int_equal(readlink(path, target, sizeof target), 8);
}

/* failure: a link in the driver root leads to a device of the host -> it is not copied */
static void a_link_does_not_lead_out_of_the_driver_root(void **state) {
        node("null", 1);
        _cleanup_(freep) char *there = file_join(root, "dev/nvidia0"), *up = file_join(root, "dev/nvidia1");
        assert_int_equal(symlink("/dev/zero", there), 0);
        assert_int_equal(symlink("../../../../../../dev/zero", up), 0);
        copy();
        assert_int_equal(tree_entries(dev, ""), 2);
}

static void a_driver_root_without_dev_is_no_error(void **state) {
        copy();
        assert_int_equal(tree_entries(dev, ""), 2);
}

static void a_failure_names_the_device_node(void **state) {
        node("nvidiactl", 255);
        assert_int_equal(device_nodes_copy(&(struct driver_root){ "/", root }, "/nowhere", &e), -1);
        assert_string_equal(e.msg, "create the device node '/nowhere/nvidiactl': No such file or directory");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(gpu_nodes_of_the_driver_root_are_copied),
                T(other_files_are_not_copied),
                T(an_existing_file_is_kept),
                T(a_link_does_not_lead_out_of_the_driver_root),
                T(a_driver_root_without_dev_is_no_error),
                T(a_failure_names_the_device_node),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
