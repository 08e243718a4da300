/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that SIGKILL does not end, because they are stuck in the kernel (a driver whose GPU has fallen
 * off the bus): the tests count them after some queries. kill() has no effect here, as for such a process. In
 * virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/child.h"
#include "base/process.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

static bool immune;
static uv_loop_t loop;

int __wrap_kill(pid_t pid, int sig) {
        return sig == SIGKILL && immune ? 0 : __real_kill(pid, sig);
}

static unsigned children(pid_t *ret_last) {
        _cleanup_(freep) char *text = NULL;
        struct str rest, word;
        size_t n = 0;
        unsigned count = 0;
        int64_t pid;
        struct err e;
        assert_int_equal(file_read("/proc/thread-self/children", 4096, &text, &n, &e), 0);
        for (rest = (struct str){ text, n }; str_next_field(&rest, ' ', &word);)
                if (str_to_i64(word, &pid)) {
                        *ret_last = (pid_t)pid;
                        count++;
                }
        return count;
}

static void on_timer(void *u) {
        (void)u;
}

/* The processes return from the kernel. */
static void end_all(void) {
        struct loop_timer alive = { 0 }; /* a stuck process does not keep the loop alive */
        pid_t pid = 0;
        immune = false;
        loop_timer_init(&alive, &loop, on_timer, NULL);
        while (children(&pid)) {
                __real_kill(-pid, SIGKILL);
                loop_timer_start(&alive, 1000);
                uv_run(&loop, UV_RUN_ONCE);
        }
        loop_timer_done(&alive);
        assert_int_equal(process_stuck(), 0);
}

static int setup(void **state) {
        immune = true;
        return uv_loop_init(&loop);
}

static int teardown(void **state) {
        uv_run(&loop, UV_RUN_DEFAULT);
        return uv_loop_close(&loop);
}

/* ---- questions to NVML ---- */

static struct err answer;

static void on_answered(void *u, const struct str *json, const struct err *e) {
        assert_null(json);
        answer = *e;
        *(bool *)u = true;
}

static void ask(struct nvml_client *c) {
        bool answered = false;
        nvml_client_ask(c, "/nowhere", NVML_ASK_FABRIC, (struct nvml_limits){ 20000, 20000 }, on_answered,
                        &answered);
        while (!answered)
                uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(answer.code, NVML_HUNG);
}

/* failure: a process with NVML is stuck in the kernel -> at most one remains until it ends */
static void ten_queries_to_a_stuck_nvml_leave_one_process(void **state) {
        struct nvml_client *c = nvml_client_new(&loop);
        pid_t stuck = 0, next = 0;
        for (unsigned i = 0; i < 10; i++) {
                ask(c);
                assert_int_equal(children(&stuck), 1);
        }
        assert_int_equal(process_stuck(), 1);
        assert_non_null(strstr(answer.msg, "has not ended, because it is stuck in the kernel"));
        char process[32];
        snprintf(process, sizeof process, "process %d,", (int)stuck);
        assert_non_null(strstr(answer.msg, process));
        end_all();
        immune = true;
        ask(c);
        assert_int_equal(children(&next), 1);
        assert_int_not_equal(next, stuck);
        nvml_client_free(c);
        end_all();
}

/* ---- a process that watches ---- */

static unsigned broken;

static void on_broken(void *u, const struct err *e) {
        assert_int_equal(e->code, NVML_HUNG);
        broken++;
}

/* failure: the watch for XIDs is stuck in the kernel -> one process remains */
static void a_watch_that_hangs_for_an_hour_leaves_one_process(void **state) {
        pid_t pid;
        broken = 0;
        struct nvml_watch *w = nvml_watch_new(&loop, &(struct nvml_watch_options){ .limits = NVML_LIMITS,
                                                                                   .silent_ms = 20000,
                                                                                   .broken = on_broken });
        nvml_watch_with(w, "/nowhere", 1);
        while (broken < 50)
                uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(children(&pid), 1);
        nvml_watch_free(w);
        end_all();
}

/* ---- programs ---- */

static void on_done(void *u, const struct child_result *r) {
        *(bool *)u = true;
        answer = r->err ? *r->err : (struct err){ 0 };
}

static void run(const char *seconds) {
        const char *const argv[] = { "sleep", seconds, NULL };
        bool done = false;
        (void)child_run(&loop, &(struct child_options){
                                       .argv = argv, .timeout_ms = 5000, .done = on_done, .u = &done });
        while (!done)
                uv_run(&loop, UV_RUN_ONCE);
}

/* failure: nvidia-smi is stuck in the kernel -> it is not started again, but other programs are */
static void a_hanging_program_is_started_once_and_others_are_started(void **state) {
        pid_t pid;
        for (unsigned i = 0; i < 10; i++) {
                run("1000");
                assert_int_equal(children(&pid), 1);
                assert_int_equal(answer.kind == ERR_RETRY && answer.code == PROCESS_STUCK, i > 0);
        }
        assert_non_null(strstr(answer.msg, "'sleep 1000' is not started again"));
        run("2000"); /* other arguments may mean another GPU */
        assert_int_equal(answer.kind, 0);
        assert_int_equal(children(&pid), 2);
        assert_int_equal(process_stuck(), 2);
        end_all();
}

int main(int argc, char **argv) {
        if (argc > 1 && strcmp(argv[1], NVML_WORKER) == 0)
                for (;;)
                        pause();
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(ten_queries_to_a_stuck_nvml_leave_one_process),
                T(a_watch_that_hangs_for_an_hour_leaves_one_process),
                T(a_hanging_program_is_started_once_and_others_are_started),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
