/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nvidia/nvml.h"

static const char *library, *old_library;

struct outcome {
        bool called, ok;
        struct nvml_facts facts;
        struct arena *arena;
        struct err err;
};

static void done(void *u, const struct nvml_facts *facts, struct arena *a, const struct err *e) {
        struct outcome *o = u;
        assert_false(o->called);
        o->called = true;
        o->ok = facts != NULL;
        o->arena = a;
        if (facts)
                o->facts = *facts;
        else
                o->err = *e;
}

static struct outcome probe(const char *path, const char *mode, unsigned timeout_ms) {
        struct outcome o = { 0 };
        uv_loop_t loop;
        uv_loop_init(&loop);
        setenv("FAKE_NVML", mode, 1);
        assert_non_null(nvml_probe_start(&loop, path, timeout_ms, done, &o));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        assert_true(o.called);
        return o;
}

static void facts_of_a_working_library(void **state) {
        (void)state;
        struct outcome o = probe(library, "", 30000);
        assert_true(o.ok);
        assert_string_equal(o.facts.driver_version, "580.95.05");
        assert_int_equal(o.facts.n_gpus, 2);
        assert_string_equal(o.facts.gpus[0].cluster_uuid, "10111213-1415-1617-1819-1a1b1c1d1e1f");
        assert_int_equal(o.facts.gpus[0].clique_id, 4294967295);
        assert_int_equal(o.facts.gpus[0].fabric_state, 3);
        assert_string_equal(o.facts.gpus[1].name, "NVIDIA GB200");
        arena_free(o.arena);
}

static void library_with_older_names(void **state) {
        (void)state;
        struct outcome o = probe(old_library, "", 30000);
        assert_true(o.ok);
        assert_int_equal(o.facts.gpus[1].fabric_call, 0);
        assert_int_equal(o.facts.gpus[1].clique_id, 7);
        assert_string_equal(o.facts.gpus[1].cluster_uuid, "10111213-1415-1617-1819-1a1b1c1d1e1f");
        arena_free(o.arena);
}

static void gpu_without_fabric_and_lost_gpu(void **state) {
        (void)state;
        struct outcome o = probe(library, "no-fabric", 30000);
        assert_int_equal(o.facts.gpus[0].fabric_call, 3);
        arena_free(o.arena);
        o = probe(library, "lost", 30000);
        assert_true(o.ok);
        assert_int_equal(o.facts.gpus[0].fabric_call, 0);
        assert_int_equal(o.facts.gpus[1].fabric_call, 15);
        arena_free(o.arena);
}

static void failures_are_told(void **state) {
        (void)state;
        struct outcome o = probe(library, "not-loaded", 30000);
        assert_false(o.ok);
        assert_string_equal(o.err.msg, "nvmlInit: NVML error 9 (Driver Not Loaded)");
        o = probe("/nowhere/libnvidia-ml.so.1", "", 30000);
        assert_false(o.ok);
        assert_non_null(strstr(o.err.msg, "/nowhere/libnvidia-ml.so.1"));
        o = probe(library, "crash", 30000);
        assert_string_equal(o.err.msg, "NVML ended its process with signal 6");
        o = probe(library, "hang", 200);
        assert_string_equal(o.err.msg, "NVML did not answer in time");
}

static void cancelled_probe_never_calls(void **state) {
        (void)state;
        struct outcome o = { 0 };
        uv_loop_t loop;
        uv_loop_init(&loop);
        setenv("FAKE_NVML", "hang", 1);
        nvml_probe_cancel(nvml_probe_start(&loop, library, 30000, done, &o));
        nvml_probe_cancel(NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        assert_false(o.called);
}

static int decode(const char *text, struct nvml_facts *f, struct err *e) {
        struct arena *a = arena_new(512);
        int r = nvml_facts_decode(str_from(text), a, f, e);
        arena_free(a);
        return r;
}

static void decoding_takes_the_last_line_and_checks_it(void **state) {
        (void)state;
        struct nvml_facts f;
        struct err e;
        assert_int_equal(decode("warning {\n{\"driverVersion\":\"1\",\"gpus\":[]}\n\n", &f, &e), 0);
        assert_int_equal(f.n_gpus, 0);
        assert_int_equal(decode("", &f, &e), -1);
        assert_int_equal(decode("[]", &f, &e), -1);
        assert_int_equal(decode("{\"error\":\"why\"}", &f, &e), -1);
        assert_string_equal(e.msg, "why");
        assert_int_equal(decode("{\"gpus\":[]}", &f, &e), -1);
        assert_int_equal(
                decode("{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"clusterUUID\":\"x\"}]}", &f,
                       &e),
                -1);
        assert_int_equal(
                decode("{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"cliqueID\":-1}]}", &f, &e),
                -1);
        assert_int_equal(
                decode("{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"cliqueID\":4294967296}]}", &f,
                       &e),
                -1);
}

static void versions_compare_by_number(void **state) {
        (void)state;
        assert_int_equal(nvml_version_cmp("570.158.01", "570.158.01"), 0);
        assert_int_equal(nvml_version_cmp("570.158.01", "570.158.1"), 0);
        assert_true(nvml_version_cmp("570.86.15", "570.158.01") < 0);
        assert_true(nvml_version_cmp("580.5", "570.158.01") > 0);
        assert_true(nvml_version_cmp("570.158.01", "570.158") > 0);
        assert_true(nvml_version_cmp("", "570.158.01") < 0);
        assert_true(nvml_version_cmp("99999999999999999999999.1", "570") > 0);
}

int main(int argc, char **argv) {
        if (argc > 2 && strcmp(argv[1], "nvml") == 0)
                return nvml_child_main(argc - 2, argv + 2);
        if (argc < 3)
                return 2;
        library = argv[1];
        old_library = argv[2];
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(facts_of_a_working_library),
                cmocka_unit_test(library_with_older_names),
                cmocka_unit_test(gpu_without_fabric_and_lost_gpu),
                cmocka_unit_test(failures_are_told),
                cmocka_unit_test(cancelled_probe_never_calls),
                cmocka_unit_test(decoding_takes_the_last_line_and_checks_it),
                cmocka_unit_test(versions_compare_by_number),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
