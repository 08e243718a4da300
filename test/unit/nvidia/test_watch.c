/* SPDX-License-Identifier: Apache-2.0 */
/* Watching for XIDs, against the stand-in of NVML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "nvidia/nvml_abi.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_worker.h"
#include "tree.h"

static const char *standin;
static char *dir, *library;
static uv_loop_t loop;
static struct nvml_watch *watch;

static unsigned begun, broken, n_xids;
static struct {
        char uuid[64];
        int64_t error;
} gpus[4];
static size_t n_gpus;
static struct {
        char uuid[64];
        uint64_t xid;
        int64_t gi, ci;
} last;
static struct err why;

static void on_watched(void *u, const struct nvml_watched *w) {
        (void)u;
        begun++;
        n_gpus = w->n_gpus;
        for (size_t i = 0; i < w->n_gpus && i < ARRAY_LEN(gpus); i++) {
                snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "%s", w->gpus[i].uuid);
                gpus[i].error = w->gpus[i].error;
        }
}

static void on_xid(void *u, const struct nvml_event *ev) {
        (void)u;
        n_xids++;
        snprintf(last.uuid, sizeof last.uuid, "%.*s", (int)ev->uuid.n, ev->uuid.p);
        last.xid = ev->xid;
        last.gi = ev->gpu_instance;
        last.ci = ev->compute_instance;
}

static void on_broken(void *u, const struct err *e) {
        (void)u;
        broken++;
        why = *e;
}

static void conf(const char *text) {
        _cleanup_(freep) char *whole = xasprintf("EVENT_WAIT_MAX_MS=50\n%s", text);
        tree_put(dir, "libnvidia-ml.conf", whole);
}

static void happens(const char *line) {
        _cleanup_(freep) char *path = file_join(dir, "libnvidia-ml.events");
        int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
        close(fd);
}

static void start(unsigned silent_ms) {
        watch = nvml_watch_new(&loop, &(struct nvml_watch_options){ .limits = NVML_LIMITS,
                                                                    .silent_ms = silent_ms,
                                                                    .watched = on_watched,
                                                                    .xid = on_xid,
                                                                    .broken = on_broken });
}

static int setup(void **state) {
        _cleanup_(freep) char *text = NULL;
        size_t n;
        struct err e;
        (void)state;
        dir = tree_new();
        library = file_join(dir, "libnvidia-ml.so.1");
        assert_int_equal(file_read(standin, 4 << 20, &text, &n, &e), 0);
        assert_int_equal(file_replace(library, text, n, 0755, &e), 0);
        tree_put(dir, "libnvidia-ml.events", "0 xid 99\n"); /* from before the watch */
        tree_put(dir, "libnvidia-ml.sessions", "");
        begun = broken = n_xids = 0;
        uv_loop_init(&loop);
        start(30000);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        nvml_watch_free(watch);
        uv_run(&loop, UV_RUN_DEFAULT);
        free(library);
        tree_remove(dir);
        return uv_loop_close(&loop);
}

#define UNTIL(what)                                                                                          \
        while (!(what))                                                                                      \
        uv_run(&loop, UV_RUN_ONCE)

static void begin(const char *text) {
        conf(text);
        nvml_watch_with(watch, library, 1);
        UNTIL(begun == 1);
}

static void an_xid_is_reported_as_it_happens(void **state) {
        (void)state;
        begin("GPU_COUNT=2\n");
        assert_int_equal(n_gpus, 2);
        assert_true(str_starts(gpus[1].uuid, "GPU-") && gpus[0].error == 0 && gpus[1].error == 0);
        happens("1 xid 79\n");
        UNTIL(n_xids == 1);
        assert_string_equal(last.uuid, gpus[1].uuid);
        assert_int_equal(last.xid, 79);
        assert_int_equal(last.gi, -1);
        assert_int_equal(last.ci, -1);
        /* Several XIDs at once, and one with its MIG instance. */
        happens("0 xid 13\n0 xid 31 2 0\n");
        UNTIL(n_xids == 3);
        assert_string_equal(last.uuid, gpus[0].uuid);
        assert_int_equal(last.gi, 2);
        assert_int_equal(last.ci, 0);
        assert_int_equal(broken, 0);
}

/* failure: one GPU cannot be watched -> it is named, and the others are watched */
static void a_gpu_that_cannot_be_watched_is_named_and_others_are_watched(void **state) {
        (void)state;
        begin("GPU_COUNT=4\nGPU0_EVENT_TYPES=3\nGPU1_FAIL_nvmlDeviceRegisterEvents=999\n"
              "GPU2_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        assert_int_equal(n_gpus, 4);
        assert_int_equal(gpus[0].error, NVML_NOT_SUPPORTED);
        assert_int_equal(gpus[1].error, 999);
        assert_int_equal(gpus[2].error, NVML_GPU_IS_LOST);
        assert_string_equal(gpus[2].uuid, "");
        assert_int_equal(gpus[3].error, 0);
        happens("1 xid 79\n3 xid 48\n");
        UNTIL(n_xids == 1);
        assert_string_equal(last.uuid, gpus[3].uuid);
}

/* failure: a GPU is lost under the watch -> the next watch names it */
static void a_lost_gpu_is_found_by_the_next_watch(void **state) {
        (void)state;
        begin("GPU_COUNT=2\n");
        conf("GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetUUID=15\n");
        happens("error 15\n");
        UNTIL(broken == 1);
        assert_int_equal(why.code, NVML_GPU_IS_LOST);
        assert_int_equal(why.kind, ERR_RETRY);
        UNTIL(begun == 2);
        assert_int_equal(gpus[0].error, 0);
        assert_int_equal(gpus[1].error, NVML_GPU_IS_LOST);
}

/* failure: the watch for XIDs crashes -> it is restarted, and sees new XIDs */
static void a_crashed_watch_is_restarted_and_sees_new_events(void **state) {
        (void)state;
        begin("GPU_COUNT=1\n");
        happens("crash\n");
        UNTIL(broken == 1);
        assert_int_equal(why.code, NVML_CRASHED);
        assert_int_equal(nvml_watch_pid(watch), 0);
        UNTIL(begun == 2);
        happens("0 xid 48\n");
        UNTIL(n_xids == 1);
        kill(nvml_watch_pid(watch), SIGKILL);
        UNTIL(broken == 2);
        assert_non_null(strstr(why.msg, "signal 9"));
}

/* failure: the watch for XIDs hangs -> its process is replaced */
static void a_hanging_watch_is_replaced(void **state) {
        (void)state;
        nvml_watch_free(watch);
        start(1000);
        begin("GPU_COUNT=1\n");
        happens("hang\n");
        UNTIL(broken == 1);
        assert_int_equal(why.code, NVML_HUNG);
        UNTIL(begun == 2);
}

/* failure: NVML crashes or hangs before the watch begins -> its process is replaced */
static void a_call_that_crashes_or_hangs_before_the_watch_ends_the_process(void **state) {
        static const char *const calls[] = { "nvmlEventSetCreate", "nvmlDeviceGetHandleByIndex",
                                             "nvmlDeviceGetUUID", "nvmlDeviceGetSupportedEventTypes",
                                             "nvmlDeviceRegisterEvents" };
        char text[128];
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
                for (unsigned hang = 0; hang < 2; hang++) {
                        nvml_watch_free(watch);
                        begun = broken = 0;
                        watch = nvml_watch_new(&loop, &(struct nvml_watch_options){ .limits = { 200, 200 },
                                                                                    .silent_ms = 30000,
                                                                                    .watched = on_watched,
                                                                                    .xid = on_xid,
                                                                                    .broken = on_broken });
                        snprintf(text, sizeof text, "GPU_COUNT=1\n%s_%s=1\n", hang ? "HANG" : "CRASH",
                                 calls[i]);
                        conf(text);
                        nvml_watch_with(watch, library, 1);
                        UNTIL(broken == 1);
                        /* If the process starts slowly, the two cases look the same. */
                        assert_true(why.code == NVML_HUNG || (!hang && why.code == NVML_CRASHED));
                        assert_int_equal(begun, 0);
                }
        }
}

/* failure: NVML cannot start a watch -> it is retried */
static void a_library_that_cannot_start_is_retried(void **state) {
        (void)state;
        conf("INIT_ERROR=9\n");
        nvml_watch_with(watch, library, 1);
        UNTIL(broken == 1);
        assert_int_equal(why.code, NVML_DRIVER_NOT_LOADED);
        assert_non_null(strstr(why.msg, "Driver Not Loaded"));
        conf("GPU_COUNT=1\n");
        UNTIL(begun == 1);
}

static void a_session_is_open_only_while_the_watch_is_wanted(void **state) {
        _cleanup_(freep) char *path = file_join(dir, "libnvidia-ml.sessions"), *text = NULL;
        struct err e;
        (void)state;
        begin("GPU_COUNT=1\n");
        nvml_watch_with(watch, library, 1); /* nothing has changed */
        pid_t pid = nvml_watch_pid(watch);
        assert_int_not_equal(pid, 0);
        nvml_watch_with(watch, NULL, 0);
        assert_int_equal(nvml_watch_pid(watch), 0);
        nvml_watch_with(watch, library, 2);
        UNTIL(begun == 2);
        assert_int_not_equal(nvml_watch_pid(watch), pid);
        assert_int_equal(file_read(path, 4096, &text, NULL, &e), 0);
        assert_string_equal(text, "begin\nbegin\n"); /* a killed process does not end its session */
}

/* The process may be attaching a GPU, which SIGKILL can leave unusable. */
/* failure: the node changes while a process attaches a GPU -> the process is not killed */
static void a_starting_process_is_not_killed_by_a_change(void **state) {
        _cleanup_(freep) char *path = file_join(dir, "libnvidia-ml.sessions"), *text = NULL;
        struct err e;
        (void)state;
        conf("GPU_COUNT=2\nSLEEP_MS_nvmlDeviceGetHandleByIndex=300\n");
        nvml_watch_with(watch, library, 1);
        UNTIL(nvml_watch_pid(watch));
        pid_t first = nvml_watch_pid(watch);
        nvml_watch_with(watch, library, 2);
        assert_int_equal(nvml_watch_pid(watch), first);
        UNTIL(begun == 1);
        assert_int_not_equal(nvml_watch_pid(watch), first);
        assert_int_equal(broken, 0);
        assert_int_equal(file_read(path, 4096, &text, NULL, &e), 0);
        assert_string_equal(text, "begin\nbegin\n");
        /* A watch that is no longer wanted ends as soon as it has started. */
        conf("GPU_COUNT=2\nSLEEP_MS_nvmlDeviceGetHandleByIndex=300\n");
        nvml_watch_with(watch, library, 3);
        UNTIL(nvml_watch_pid(watch));
        nvml_watch_with(watch, NULL, 0);
        assert_int_not_equal(nvml_watch_pid(watch), 0);
        UNTIL(!nvml_watch_pid(watch));
        assert_int_equal(begun, 1);
        assert_int_equal(broken, 0);
}

int main(int argc, char **argv) {
        if (argc > 2 && strcmp(argv[1], NVML_WORKER) == 0)
                return nvml_worker_main(argc - 2, argv + 2);
        if (argc < 2)
                return 2;
        standin = argv[1];
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(an_xid_is_reported_as_it_happens),
                T(a_gpu_that_cannot_be_watched_is_named_and_others_are_watched),
                T(a_lost_gpu_is_found_by_the_next_watch),
                T(a_crashed_watch_is_restarted_and_sees_new_events),
                T(a_hanging_watch_is_replaced),
                T(a_call_that_crashes_or_hangs_before_the_watch_ends_the_process),
                T(a_library_that_cannot_start_is_retried),
                T(a_session_is_open_only_while_the_watch_is_wanted),
                T(a_starting_process_is_not_killed_by_a_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
