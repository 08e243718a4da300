/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "nvidia/gpu_fabric.h"

#define CLUSTER "2df84740-d3cb-b5ce-4e7e-98352b5a71b5"
#define OK                                                                                                   \
        { "NVIDIA GB200", "GPU-a", 0, 3, 0, 2, CLUSTER }

static struct gpu_fabric run(const struct nvml_gpu *gpus, size_t n, bool strict) {
        struct nvml_facts f = { .driver_version = "580", .n_gpus = n };
        struct nvml_gpu copy[4];
        for (size_t i = 0; i < n; i++)
                copy[i] = gpus[i];
        f.gpus = copy;
        struct gpu_fabric ret;
        gpu_fabric_from_facts(&f, strict, &ret);
        return ret;
}
#define RUN(strict, ...)                                                                                     \
        run((const struct nvml_gpu[]){ __VA_ARGS__ },                                                        \
            sizeof((const struct nvml_gpu[]){ __VA_ARGS__ }) / sizeof(struct nvml_gpu), strict)

static void a_completed_registration_has_a_clique_id(void **state) {
        (void)state;
        for (int strict = 0; strict < 2; strict++) {
                struct gpu_fabric f = RUN(strict, OK, OK);
                assert_int_equal(f.kind, GPU_FABRIC_CLIQUE);
                assert_string_equal(f.clique_id, CLUSTER ".2");
                assert_string_equal(f.reason, "");
        }
        struct gpu_fabric f = RUN(true, { "x", "GPU-a", 0, 3, 0, 4294967295, CLUSTER });
        assert_string_equal(f.clique_id, CLUSTER ".4294967295");
}

/* One row per line of the table of strict discovery. */
/* failure: a GPU reports an odd fabric state, or a zero cluster UUID -> it counts as none, registering or
 * failed */
static void each_observation_strict_and_lenient(void **state) {
        (void)state;
        static const struct {
                struct nvml_gpu gpu;
                enum gpu_fabric_kind strict;
        } rows[] = {
                { { "x", "GPU-a", 3, 0, 0, 0, "" }, GPU_FABRIC_NONE },
                { { "x", "GPU-a", 15, 0, 0, 0, "" }, GPU_FABRIC_ERROR },
                { { "x", "GPU-a", 0, 0, 0, 0, "" }, GPU_FABRIC_NONE },
                { { "x", "GPU-a", 0, 1, 0, 0, "" }, GPU_FABRIC_REGISTERING },
                { { "x", "GPU-a", 0, 2, 0, 0, "" }, GPU_FABRIC_REGISTERING },
                { { "x", "GPU-a", 0, 3, 999, 1, CLUSTER }, GPU_FABRIC_ERROR },
                { { "x", "GPU-a", 0, 3, 0, 0, "00000000-0000-0000-0000-000000000000" }, GPU_FABRIC_NONE },
                { { "x", "GPU-a", 0, 9, 0, 0, CLUSTER }, GPU_FABRIC_ERROR },
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct gpu_fabric f = run(&rows[i].gpu, 1, true);
                assert_int_equal(f.kind, rows[i].strict);
                assert_non_null(strstr(f.reason, "GPU-a"));
                f = run(&rows[i].gpu, 1, false);
                assert_int_equal(f.kind, GPU_FABRIC_NONE);
                assert_string_equal(f.clique_id, "");
        }
}

static void one_bad_gpu_fails_the_node_only_in_strict_mode(void **state) {
        (void)state;
        struct gpu_fabric f = RUN(true, OK, { "x", "GPU-b", 0, 2, 0, 0, "" });
        assert_int_equal(f.kind, GPU_FABRIC_REGISTERING);
        assert_string_equal(f.clique_id, "");
        assert_non_null(strstr(f.reason, "GPU-b"));
        f = RUN(true, { "x", "GPU-b", 0, 2, 0, 0, "" }, { "x", "GPU-c", 15, 0, 0, 0, "" }, OK);
        assert_int_equal(f.kind, GPU_FABRIC_ERROR);
        assert_non_null(strstr(f.reason, "GPU-c"));
        f = RUN(false, { "x", "GPU-b", 0, 2, 0, 0, "" }, OK);
        assert_int_equal(f.kind, GPU_FABRIC_CLIQUE);
}

static void gpus_that_disagree(void **state) {
        (void)state;
        struct gpu_fabric f = RUN(true, OK, { "x", "GPU-b", 0, 3, 0, 3, CLUSTER });
        assert_int_equal(f.kind, GPU_FABRIC_ERROR);
        assert_non_null(strstr(f.reason, "GPU-a"));
        assert_non_null(strstr(f.reason, "GPU-b"));
        f = RUN(false, OK, { "x", "GPU-b", 0, 3, 0, 3, CLUSTER });
        assert_int_equal(f.kind, GPU_FABRIC_NONE);
        f = RUN(true, OK, { "x", "GPU-b", 0, 3, 0, 2, "3df84740-d3cb-b5ce-4e7e-98352b5a71b5" });
        assert_int_equal(f.kind, GPU_FABRIC_ERROR);
}

static void displays_and_empty_nodes(void **state) {
        (void)state;
        struct gpu_fabric f = RUN(true, { "NVIDIA DGX Display", "GPU-d", 15, 0, 0, 0, "" },
                                  { "DGX Display", "GPU-e", 0, 2, 0, 0, "" }, OK);
        assert_int_equal(f.kind, GPU_FABRIC_CLIQUE);
        f = run(NULL, 0, true);
        assert_int_equal(f.kind, GPU_FABRIC_NONE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_completed_registration_has_a_clique_id),
                cmocka_unit_test(each_observation_strict_and_lenient),
                cmocka_unit_test(one_bad_gpu_fails_the_node_only_in_strict_mode),
                cmocka_unit_test(gpus_that_disagree),
                cmocka_unit_test(displays_and_empty_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
