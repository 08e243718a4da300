/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/child.h"
#include "base/str.h"
#include "daemon/node_daemon_run.h"

static pid_t orphan;
static bool answered, reaped;

static void on_done(void *u, const struct child_result *r) {
        int64_t pid;

        assert_true(str_to_i64(str_trim(r->out), &pid));
        orphan = (pid_t)pid;
        assert_int_equal(r->exit_status, 0); /* our own child was left to its owner */
        answered = true;
}

static void on_tick(uv_timer_t *t) {
        /* An orphan that has left the group of its parent is not killed with it. */
        if (answered && getpgid(orphan) == orphan)
                kill(orphan, SIGKILL);
        /* A zombie still answers to kill(); a reaped process does not. */
        reaped = answered && kill(orphan, 0) < 0;
        if (reaped)
                uv_close((uv_handle_t *)t, NULL);
}

/* A child leaves its own child, which this process inherits like the first process of a container. */
static void reap(const char *command) {
        uv_loop_t *loop = uv_default_loop();
        struct orphans o;
        uv_timer_t tick;

        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        answered = reaped = false;
        orphans_start(&o, loop);
        uv_timer_init(loop, &tick);
        uv_timer_start(&tick, on_tick, 5, 5);
        child_run(loop, &(struct child_options){
                                .argv = (const char *const[]){ "sh", "-c", command, NULL },
                                .timeout_ms = 5000,
                                .done = on_done });
        uv_run(loop, UV_RUN_DEFAULT);
        assert_true(reaped);
        orphans_stop(&o);
        uv_run(loop, UV_RUN_DEFAULT);
}

static void test_reaps_orphans_and_no_own_children(void **state) {
        reap("sleep 1000 & echo $!");
}

static void test_reaps_orphans_that_lead_a_group(void **state) {
        reap("setsid sleep 1000 &"
             "until read -r pid name state parent group rest </proc/$!/stat && [ $group = $! ]; do :; done;"
             "echo $!");
        assert_int_equal(uv_loop_close(uv_default_loop()), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reaps_orphans_and_no_own_children),
                cmocka_unit_test(test_reaps_orphans_that_lead_a_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
