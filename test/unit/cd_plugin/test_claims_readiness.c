/* SPDX-License-Identifier: Apache-2.0 */
/* Stale state files, and readiness that is withdrawn while a channel is in use. */
#include "world/cd_node.h"

#include "imex/imex_ctl.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void not_released_by(const char *claim, const char *boot, bool held, const char *part) {
        struct dra_op op = { .timeout_ms = 300 };
        int fd = -1;
        api_assigned(DOMAIN_A);
        daemon_comes(DAEMON_1);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        daemon_reports(DOMAIN_A, claim, boot, true, "READY", &fd);
        if (!held) {
                close(fd);
                fd = -1;
        }
        world_wait(&op, FAILED);
        if (!strstr(op.msg, part))
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(strstr(op.msg, part));
        assert_null(world_cdi(CLAIM_1));
        if (fd >= 0)
                close(fd);
}

/* failure: a killed daemon left a READY state file -> the file does not count */
static void a_ready_file_of_a_killed_daemon_does_not_count(void **state) {
        (void)state;
        not_released_by(DAEMON_1, BOOT, false,
                        "the IMEX daemon that wrote the state file is not running any more");
}

/* failure: a READY state file is from another boot -> the file does not count */
static void a_ready_file_of_another_boot_does_not_count(void **state) {
        (void)state;
        not_released_by(DAEMON_1, "22222222-2222-4222-8222-222222222222", true,
                        "the state file is from before the last boot");
}

/* failure: a READY state file is from an earlier daemon -> the file does not count */
static void a_ready_file_of_an_earlier_daemon_does_not_count(void **state) {
        (void)state;
        not_released_by("d0000000-0000-4000-8000-000000000009", BOOT, true,
                        "the state file is from another daemon than the one prepared on this node");
}

/* The work of the timer five seconds after readiness was withdrawn. */
static void grace_passes(void) {
        for (int i = 0; i < 1000 && !loop_timer_waits(&world_cd()->grace); i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        assert_true(loop_timer_waits(&world_cd()->grace));
        loop_timer_start(&world_cd()->grace, 1);
        while (!LIST_EMPTY(&world_cd()->lost))
                uv_run(&w.loop, UV_RUN_ONCE);
        loop_timer_stop(&world_cd()->grace);
}

static void readiness_withdrawn_under_a_channel_causes_an_event(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_turn();
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "STOPPED", &w.lock_fd);
        grace_passes();
        assert_non_null(strstr(api.events, "ResourceClaim/c1 IMEXDaemonNotReady"));
        assert_non_null(strstr(api.events, "IMEX daemon is STOPPED"));
}

static void a_daemon_that_returns_at_once_causes_no_event(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_turn();
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "STARTING", &w.lock_fd);
        for (int i = 0; i < 1000 && !loop_timer_waits(&world_cd()->grace); i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &w.lock_fd);
        grace_passes();
        assert_string_equal(api.events, "");
}

/* Both run: the host's nvidia-imex holds the driver's only session. */
static void a_host_imex_that_holds_the_session_causes_an_event_of_the_node(void **state) {
        (void)state;
        struct imex_state s = { .boot_id = BOOT,
                                .claim_uid = DAEMON_1,
                                .status = "BACKOFF",
                                .assignment = CLIQUE "/" DOMAIN_A "/3/1" };
        struct dra_op op = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        const char *fault = imex_log_fault(STR("Failed to allocate Imex session: NV_ERR_IN_USE"));
        struct err e;
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        snprintf(s.reason, sizeof s.reason, "%s", fault);
        assert_string_equal(s.reason, fault); /* not truncated */
        assert_int_equal(imex_state_write(dir, &s, &w.lock_fd, &e), 0);
        for (int i = 0; i < 1000 && !api.events[0]; i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        assert_non_null(strstr(api.events, "Node/n0 HostIMEXConflict"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_ready_file_of_a_killed_daemon_does_not_count),
                T(a_ready_file_of_another_boot_does_not_count),
                T(a_ready_file_of_an_earlier_daemon_does_not_count),
                T(readiness_withdrawn_under_a_channel_causes_an_event),
                T(a_daemon_that_returns_at_once_causes_no_event),
                T(a_host_imex_that_holds_the_session_causes_an_event_of_the_node),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
