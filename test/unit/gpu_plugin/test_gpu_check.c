/* SPDX-License-Identifier: Apache-2.0 */
/* What check-node judges only for GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "gpu_plugin/gpu_check.h"
#include "world/check_items.h"

/* Returns whether the list has such an item. A problem must have a remedy. */
static bool has(const char *name, enum check_state state, const char *want) {
        for (size_t i = 0; i < list.n; i++) {
                const struct check_item *it = &list.items[i];
                if (streq(it->name, name) && it->state == state && strstr(it->text, want))
                        return (it->remedy && *it->remedy) == (state == CHECK_PROBLEM);
        }
        return false;
}

static void gpus_that_can_be_allocated_are_counted(void **state) {
        struct mig_facts mig[2] = { 0 };
        struct gpu_facts gpus[] = { { .index = 0, .uuid = "GPU-a" },
                                    { .index = 1, .uuid = "GPU-b", .mig_mode = 1, .mig = mig, .n_mig = 2 } };
        struct gpu_device devices[] = { { .kind = GPU_FULL }, { .kind = GPU_MIG }, { .kind = GPU_MIG } };

        gpu_check_devices(&list, &(struct inventory){ .gpus = gpus, .n_gpus = 2 },
                          &(struct gpu_devices){ .items = devices, .n = 3 });
        assert_true(has("gpus", CHECK_OK, "2 GPUs; 1 GPU and 2 MIG devices"));
        assert_true(has("mig", CHECK_OK, ""));
        assert_true(has("persistence-mode", CHECK_OK, ""));
        assert_int_equal(check_list_status(&list), 0);
}

static void gpus_that_cannot_be_allocated_are_problems(void **state) {
        struct gpu_facts gpus[] = { { .index = 0, .mig_mode = 1, .persistence_off = true },
                                    { .index = 1, .failure = { .call = "nvmlDeviceGetUUID", .error = 15 } } };
        struct gpu_left_out left_out[] = { { "GPU 1", "nvmlDeviceGetUUID: GPU is lost" },
                                           { "gpu-0", "it is in MIG mode", true } };

        gpu_check_devices(
                &list, &(struct inventory){ .gpus = gpus, .n_gpus = 2 },
                &(struct gpu_devices){ .left_out = left_out, .n_left_out = 2, .n_persistence_off = 1 });
        assert_true(has("gpus", CHECK_PROBLEM, "GPU 1: nvmlDeviceGetUUID: GPU is lost"));
        assert_true(has("mig", CHECK_PROBLEM, "GPU 0 is in MIG mode and has no MIG devices"));
        assert_false(has("gpus", CHECK_PROBLEM, "MIG mode"));
        assert_true(has("persistence-mode", CHECK_PROBLEM, "1 GPU,"));
}

static void a_node_without_gpus_is_a_problem(void **state) {
        gpu_check_devices(&list, &(struct inventory){ 0 }, &(struct gpu_devices){ 0 });
        assert_int_equal(list.n, 1);
        assert_true(has("gpus", CHECK_PROBLEM, "no GPU"));
}

static void containers_need_libcuda(void **state) {
        struct driver_item items[] = {
                { .group = DRIVER_LIBRARY, .soname = "libnvidia-ml.so.1" },
                { .group = DRIVER_LIBRARY, .soname = "libcuda.so.1" },
                { .group = DRIVER_PROGRAM, .inside = "/usr/bin/nvidia-smi" },
        };
        struct driver_set set = { .library_dir = "/usr/lib64", .items = items, .n = 3 };

        gpu_check_files(&list, &set);
        assert_true(has("driver-files", CHECK_OK, "libraries: 2, in /usr/lib64; programs: 1"));
        set.n = 1;
        gpu_check_files(&list, &set);
        assert_true(has("driver-files", CHECK_PROBLEM, "no libcuda.so.1"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(gpus_that_can_be_allocated_are_counted, begin, end),
                cmocka_unit_test_setup_teardown(gpus_that_cannot_be_allocated_are_problems, begin, end),
                cmocka_unit_test_setup_teardown(a_node_without_gpus_is_a_problem, begin, end),
                cmocka_unit_test_setup_teardown(containers_need_libcuda, begin, end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
