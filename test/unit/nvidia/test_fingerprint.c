/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a node's GPUs that are noticed without a query of NVML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "nvidia/fingerprint.h"
#include "tree.h"

static char *dir, *proc_driver, *sys, *dev, *library;
static uint64_t last;

static int setup(void **state) {
        dir = tree_new();
        proc_driver = file_join(dir, "proc");
        sys = file_join(dir, "sys");
        dev = file_join(dir, "dev");
        library = file_join(dir, "libnvidia-ml.so.1");
        tree_put(dir, "proc/gpus/0000:16:00.0/information", "x");
        tree_put(dir, "proc/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
        tree_put(dir, "proc/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
        tree_put(dir, "sys/module/nvidia/version", "580.95.05\n");
        tree_put(dir, "dev/nvidia0", "");
        tree_put(dir, "libnvidia-ml.so.1", "x");
        return 0;
}

static int teardown(void **state) {
        tree_remove(dir);
        free(proc_driver);
        free(sys);
        free(dev);
        free(library);
        return 0;
}

static uint64_t now(void) {
        return fingerprint(&(struct fingerprint_of){ proc_driver, sys, dev, library });
}

static void changes(bool expected) {
        uint64_t f = now();
        assert_int_equal(f != last, expected);
        assert_int_equal(f, now());
        last = f;
}

/* failure: MIG, a GPU or the driver changes -> the GPU plugin notices it without NVML */
static void each_change_of_the_node_is_noticed(void **state) {
        last = now();
        changes(false);
        tree_put(dir, "proc/gpus/0000:3a:00.0/information", "x");
        changes(true);
        tree_put(dir, "proc/capabilities/gpu0/mig/gi2/access", "DeviceFileMinor: 21\n");
        changes(true);
        tree_put(dir, "proc/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 14\n");
        changes(true);
        tree_put(dir, "sys/module/nvidia/version", "581.1\n");
        changes(true);
        tree_put(dir, "dev/nvidia1", "");
        changes(true);
        _cleanup_(freep) char *other = file_join(dir, "other");
        tree_put(dir, "other", "y");
        assert_int_equal(rename(other, library), 0);
        changes(true);
        assert_int_equal(unlink(library), 0);
        changes(true);
}

static void files_unrelated_to_gpus_do_not_count(void **state) {
        last = now();
        tree_put(dir, "dev/nvidiactl", "");
        tree_put(dir, "dev/nvidia", "");
        tree_put(dir, "dev/nvidia0x", "");
        tree_put(dir, "proc/capabilities/mig/config", "DeviceFileMinor: 1\n");
        tree_put(dir, "proc/params", "x");
        changes(false);
}

static void an_empty_node_has_a_fingerprint(void **state) {
        uint64_t f = fingerprint(&(struct fingerprint_of){ "/nowhere", "/nowhere", "/nowhere", "/nowhere" });
        assert_true(f > 1);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(each_change_of_the_node_is_noticed),
                T(files_unrelated_to_gpus_do_not_count),
                T(an_empty_node_has_a_fingerprint),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
