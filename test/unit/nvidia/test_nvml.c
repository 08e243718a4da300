/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "nvidia/gpu_fabric.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

static const char *library, *old_library;

struct outcome {
        unsigned called;
        bool ok;
        struct nvml_facts facts;
        struct err err;
};

static uv_loop_t loop;
static struct nvml_client *client;
static struct arena *arena; /* of the last answer */

static int setup(void **state) {
        (void)state;
        uv_loop_init(&loop);
        client = nvml_client_new(&loop);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        nvml_client_free(client);
        arena_free(TAKE(arena));
        uv_run(&loop, UV_RUN_DEFAULT);
        return uv_loop_close(&loop);
}

static void done(void *u, const struct str *json, const struct err *e) {
        struct outcome *o = u;
        o->called++;
        o->ok = json != NULL;
        if (!json) {
                o->err = *e;
                return;
        }
        arena_free(arena);
        arena = arena_new(1024);
        assert_int_equal(nvml_facts_decode(*json, arena, &o->facts, &o->err), 0);
}

static struct outcome probe(const char *path, const char *mode, unsigned timeout_ms) {
        struct outcome o = { 0 };
        setenv("FAKE_NVML", mode, 1);
        nvml_client_ask(client, path, NVML_ASK_FABRIC, (struct nvml_limits){ timeout_ms, timeout_ms }, done,
                        &o);
        while (!o.called)
                uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(o.called, 1);
        return o;
}

/* The library reads its environment when it is loaded, so another behaviour needs another process. */
static void afresh(void) {
        nvml_client_free(client);
        client = nvml_client_new(&loop);
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
}

static void library_with_older_names(void **state) {
        (void)state;
        struct outcome o = probe(old_library, "", 30000);
        assert_true(o.ok);
        assert_int_equal(o.facts.gpus[1].fabric_call, 0);
        assert_int_equal(o.facts.gpus[1].clique_id, 7);
        assert_string_equal(o.facts.gpus[1].cluster_uuid, "10111213-1415-1617-1819-1a1b1c1d1e1f");
}

static void gpu_without_fabric_and_lost_gpu(void **state) {
        (void)state;
        struct outcome o = probe(library, "no-fabric", 30000);
        assert_int_equal(o.facts.gpus[0].fabric_call, 3);
        afresh();
        o = probe(library, "lost", 30000);
        assert_true(o.ok);
        assert_int_equal(o.facts.gpus[0].fabric_call, 0);
        assert_int_equal(o.facts.gpus[1].fabric_call, 15);
}

/* failure: NVML is missing or fails -> the reason is reported */
static void failures_are_reported(void **state) {
        (void)state;
        struct outcome o = probe(library, "not-loaded", 30000);
        assert_false(o.ok);
        assert_string_equal(o.err.msg, "nvmlInit: NVML error 9 (Driver Not Loaded)");
        assert_int_equal(o.err.code, 9);
        assert_int_equal(nvml_client_pid(client), 0);
        o = probe("/nowhere/libnvidia-ml.so.1", "", 30000);
        assert_false(o.ok);
        assert_non_null(strstr(o.err.msg, "/nowhere/libnvidia-ml.so.1"));
        assert_int_equal(o.err.code, NVML_CANNOT_LOAD);
        o = probe(library, "crash", 30000);
        assert_string_equal(o.err.msg, "NVML ended its process with signal 6");
        assert_int_equal(o.err.code, NVML_CRASHED);
        afresh();
        o = probe(library, "hang", 200);
        assert_non_null(strstr(o.err.msg, "NVML did not answer in time: it has not started within"));
        assert_int_equal(o.err.code, NVML_HUNG);
        assert_int_equal(o.err.kind, ERR_RETRY);
}

static uint64_t now_ms(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* failure: NVML crashes -> it is queried again after a delay */
static void a_crashed_library_is_queried_again_after_a_delay(void **state) {
        (void)state;
        struct outcome o = probe(library, "crash", 30000);
        uint64_t before = now_ms();
        o = probe(library, "", 30000);
        assert_true(o.ok);
        assert_true(now_ms() - before >= NVML_BACKOFF_MIN_MS / 2);
        /* Another file is another driver, which has not crashed yet. */
        o = probe(library, "crash", 30000);
        before = now_ms();
        o = probe(old_library, "", 30000);
        assert_true(o.ok);
        assert_true(now_ms() - before < NVML_BACKOFF_MIN_MS);
}

static void consecutive_queries_have_one_process_and_separate_sessions(void **state) {
        (void)state;
        struct outcome o = probe(library, "count-sessions", 30000);
        pid_t pid = nvml_client_pid(client);
        assert_true(pid > 0);
        assert_int_equal(o.facts.gpus[0].clique_id, 1);
        o = probe(library, "count-sessions", 30000);
        assert_int_equal(nvml_client_pid(client), pid);
        assert_int_equal(o.facts.gpus[0].clique_id, 2); /* the second session; none is open */
}

/* failure: the NVML process dies between two queries -> the next query succeeds */
static void a_worker_that_ends_between_queries_is_replaced(void **state) {
        (void)state;
        struct outcome o = probe(library, "", 30000);
        kill(nvml_client_pid(client), SIGKILL);
        while (nvml_client_pid(client))
                uv_run(&loop, UV_RUN_ONCE);
        o = probe(library, "", 30000);
        assert_true(o.ok);
}

/* failure: the NVML process writes unexpected output -> it is killed */
static void a_worker_with_unexpected_output_is_killed(void **state) {
        (void)state;
        struct outcome o = probe(library, "babble", 30000);
        assert_false(o.ok);
        assert_int_equal(o.err.code, NVML_CRASHED);
        assert_string_equal(o.err.msg, "NVML's process answers an unknown question");
        assert_int_equal(nvml_client_pid(client), 0);
}

static void a_cancelled_query_makes_no_callback(void **state) {
        (void)state;
        struct outcome o = { 0 };
        setenv("FAKE_NVML", "hang", 1);
        nvml_client_ask(client, library, NVML_ASK_FABRIC, NVML_LIMITS, done, &o);
        assert_true(nvml_client_asking(client));
        nvml_client_free(client);
        nvml_client_free(NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(o.called, 0);
        client = nvml_client_new(&loop);
        nvml_client_ask(client, library, NVML_ASK_FABRIC, NVML_LIMITS, done, &o);
        while (!nvml_client_pid(client))
                uv_run(&loop, UV_RUN_NOWAIT);
}

static void free_client(void *u, const struct str *json, const struct err *e) {
        unsigned *called = u;
        (*called)++;
        nvml_client_free(TAKE(client));
}

static void the_client_may_be_freed_in_the_answer(void **state) {
        (void)state;
        unsigned called = 0;
        setenv("FAKE_NVML", "", 1);
        nvml_client_ask(client, library, NVML_ASK_FABRIC, NVML_LIMITS, free_client, &called);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(called, 1);
        client = nvml_client_new(&loop);
        nvml_client_ask(client, "/nowhere", NVML_ASK_FABRIC, NVML_LIMITS, free_client, &called);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(called, 2);
}

static int decode(const char *text, struct nvml_facts *f, struct err *e) {
        struct arena *a = arena_new(512);
        int r = nvml_facts_decode(str_from(text), a, f, e);
        arena_free(a);
        return r;
}

static void malformed_lines_are_refused(void **state) {
        (void)state;
        struct nvml_facts f;
        struct err e;
        assert_int_equal(decode("{\"driverVersion\":\"1\",\"gpus\":[]}", &f, &e), 0);
        assert_int_equal(f.n_gpus, 0);
        static const char *const bad[] = {
                "",
                "[]",
                "{\"gpus\":[]}",
                "{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"clusterUUID\":\"x\"}]}",
                "{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"cliqueID\":-1}]}",
                "{\"driverVersion\":\"1\",\"gpus\":[{\"fabricCall\":0,\"cliqueID\":4294967296}]}",
        };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(decode(bad[i], &f, &e), -1);
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
        if (argc > 2 && strcmp(argv[1], NVML_WORKER) == 0)
                return nvml_worker_main(argc - 2, argv + 2);
        if (argc < 3)
                return 2;
        library = argv[1];
        old_library = argv[2];
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(facts_of_a_working_library),
                T(library_with_older_names),
                T(gpu_without_fabric_and_lost_gpu),
                T(failures_are_reported),
                T(a_crashed_library_is_queried_again_after_a_delay),
                T(consecutive_queries_have_one_process_and_separate_sessions),
                T(a_worker_that_ends_between_queries_is_replaced),
                T(a_worker_with_unexpected_output_is_killed),
                T(a_cancelled_query_makes_no_callback),
                T(the_client_may_be_freed_in_the_answer),
                cmocka_unit_test(malformed_lines_are_refused),
                cmocka_unit_test(versions_compare_by_number),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
