/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
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

static void displays_have_no_fabric(void **state) {
        (void)state;
        struct gpu_fabric f = RUN(true, { "NVIDIA DGX Display", "GPU-d", 15, 0, 0, 0, "" },
                                  { "DGX Display", "GPU-e", 0, 2, 0, 0, "" }, OK);
        assert_int_equal(f.kind, GPU_FABRIC_CLIQUE);
        f = RUN(true, { "DGX Display", "GPU-e", 0, 2, 0, 0, "" });
        assert_int_equal(f.kind, GPU_FABRIC_NONE);
}

/* failure: NVML reports no GPU for a moment -> the node does not count as one without a fabric */
static void a_list_without_gpus_does_not_show_that_there_is_no_fabric(void **state) {
        (void)state;
        struct gpu_fabric f = run(NULL, 0, true);
        assert_int_equal(f.kind, GPU_FABRIC_ERROR);
        assert_string_equal(f.reason, "NVML reports no GPU on this node");
        f = run(NULL, 0, false);
        assert_int_equal(f.kind, GPU_FABRIC_NONE);
        assert_string_equal(f.reason, "NVML reports no GPU on this node");
}

/* ---- the answer of the NVML process ---- */

static int decode(const char *text, struct err *e) {
        struct arena *a = arena_new(1024);
        struct nvml_facts facts;
        int r = nvml_facts_decode(str_from(text), a, &facts, e);
        arena_free(a);
        return r;
}

#define FACTS(gpu)                                                                                           \
        "{\"driverVersion\":\"580\",\"gpus\":[{\"fabricCall\":0,\"cliqueID\":1},{\"fabricCall\":0" gpu "}]}"

/* failure: the NVML process sends an impossible fabric identity -> its answer is refused */
static void an_impossible_fabric_identity_is_refused(void **state) {
        static const char *const good[] = { FACTS(""), FACTS(",\"cliqueID\":0"),
                                            FACTS(",\"cliqueID\":4294967295"), FACTS(",\"clusterUUID\":\"\""),
                                            FACTS(",\"clusterUUID\":\"" CLUSTER "\"") },
                                 *const bad[] = { FACTS(",\"cliqueID\":-1"),
                                                  FACTS(",\"cliqueID\":4294967296"),
                                                  FACTS(",\"clusterUUID\":\"x\"") };
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                assert_int_equal(decode(good[i], &e), 0);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(decode(bad[i], &e), -1);
                assert_non_null(strstr(e.msg, "GPU 1 has a malformed fabric identity"));
        }
        assert_int_equal(decode("[", &e), -1);
        assert_non_null(strstr(e.msg, "unreadable answer"));
        assert_int_equal(decode("{}", &e), -1);
        assert_non_null(strstr(e.msg, "no driver version"));
}

static void versions_are_compared_number_by_number(void **state) {
        static const struct {
                const char *a, *b;
                int is;
        } rows[] = { { "1", "2", -1 },
                     { "10", "1", 1 },
                     { "9", "1", 1 },
                     { "570/158", "570.158", 0 },
                     { "570:158", "570.158", 0 },
                     { "570.0.1", "570.1", -1 },
                     { "4294967294", "42949672945", -1 },
                     { "4294967295", "42949672951", 0 } }; /* further digits do not count */
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                assert_int_equal(nvml_version_cmp(rows[i].a, rows[i].b), rows[i].is);
                assert_int_equal(nvml_version_cmp(rows[i].b, rows[i].a), -rows[i].is);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_completed_registration_has_a_clique_id),
                cmocka_unit_test(each_observation_strict_and_lenient),
                cmocka_unit_test(one_bad_gpu_fails_the_node_only_in_strict_mode),
                cmocka_unit_test(gpus_that_disagree),
                cmocka_unit_test(displays_have_no_fabric),
                cmocka_unit_test(a_list_without_gpus_does_not_show_that_there_is_no_fabric),
                cmocka_unit_test(an_impossible_fabric_identity_is_refused),
                cmocka_unit_test(versions_are_compared_number_by_number),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
