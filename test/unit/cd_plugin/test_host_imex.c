/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of the host's own nvidia-imex, and the states that result from its answers. A shell program
 * simulates nvidia-imex-ctl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "cd_plugin/host_imex.h"
#include "tree.h"

/* ---- the state by the answers ---- */

#define NODE(id, status, ready, to)                                                                          \
        "\"" #id "\":{\"status\":\"" status "\",\"host\":\"10.0.0." #id "\",\"hostName\":\"n" #id            \
        "\",\"version\":\"" ready "\",\"connections\":{\"0\":{\"status\":\"" to "\"}}}"
#define UP                                                                                                   \
        "{\"nodes\":{" NODE(0, "READY", "580.1", "CONNECTED") "," NODE(1, "READY", "580.2",                  \
                                                                       "CONNECTED") "},\"status\":\"UP\"}"
#define DEGRADED                                                                                             \
        "{\"nodes\":{" NODE(0, "READY", "580.1", "CONNECTED") "," NODE(                                      \
                1, "UNAVAILABLE", "", "INVALID") "},\"status\":\"DEGRADED\"}"
#define UNCONNECTED                                                                                          \
        "{\"nodes\":{" NODE(0, "READY", "580.1", "NEVER_CONNECTED") "," NODE(1, "READY", "580.1",            \
                                                                             "CONNECTED") "},\"status\":"    \
                                                                                          "\"DEGRADED\"}"

static struct host_imex_status judged(const char *word, const char *domain) {
        struct host_imex_status summary = { 0 }, s;
        struct imex_ctl_domain d;
        struct arena *a = arena_new(1024);
        struct err e;
        if (domain) {
                assert_int_equal(imex_ctl_parse_domain(str_from(domain), a, &d, &e), 0);
                host_status_summarize(&d, "n1", &summary);
        }
        host_status_evaluate(imex_status_decode(word), "it hangs", &summary, &s);
        arena_free(a);
        return s;
}

static void ready_in_a_domain_that_is_up(void **state) {
        (void)state;
        struct host_imex_status s = judged("READY", UP);
        assert_int_equal(s.state, HOST_UP);
        assert_string_equal(s.reason, "");
        assert_string_equal(s.version, "580.2"); /* this node's */
        assert_int_equal(s.nodes, 2);
        assert_int_equal(s.nodes_ready, 2);
        assert_int_equal(judged("READY", NULL).state, HOST_UP);
}

static void a_degraded_domain_names_the_missing_nodes(void **state) {
        (void)state;
        struct host_imex_status s = judged("READY", DEGRADED);
        assert_int_equal(s.state, HOST_DEGRADED);
        assert_string_equal(
                s.reason, "the IMEX domain is DEGRADED: 1 of 2 nodes are READY, not 10.0.0.1 (UNAVAILABLE)");
        s = judged("READY", UNCONNECTED);
        assert_int_equal(s.state, HOST_DEGRADED);
        assert_non_null(strstr(s.reason, "not all of them are connected to each other"));
}

static void any_other_state_than_READY_is_down(void **state) {
        (void)state;
        assert_int_equal(judged("INITIALIZING", UP).state, HOST_DOWN);
        assert_string_equal(judged("UNAVAILABLE", NULL).reason, "the host's nvidia-imex is UNAVAILABLE");
        assert_string_equal(judged("", UP).reason, "the host's nvidia-imex cannot be queried: it hangs");
        assert_int_equal(judged("", UP).state, HOST_DOWN);
}

/* ---- queries ---- */

static uv_loop_t loop;
static char *root, *here, *socket_path;
static struct host_imex *host;
static unsigned answers;

static void on_answered(void *u) {
        (void)u;
        answers++;
}

/* The output of the tool for -q and for -N -j; it records its arguments in `calls`. */
static void ctl_answers(const char *status, const char *domain) {
        _cleanup_(freep) char *script = xasprintf("#!/bin/sh\necho \"$*\" >>%s/calls\ncase \"$*\" in *-N*) "
                                                  "cat %s/domain ;; *) echo '%s' ;; esac\n",
                                                  root, root, status);
        tree_put(root, "domain", domain);
        tree_put(root, "driver/usr/bin/nvidia-imex-ctl", script);
}

static int setup(void **state) {
        (void)state;
        root = tree_new();
        uv_loop_init(&loop);
        host = NULL;
        answers = 0;
        return 0;
}

static void start(void) {
        here = file_join(root, "driver");
        socket_path = file_join(root, "imex/imex_ctrl.sock");
        host = host_imex_new(
                &loop, &(struct host_imex_options){ .root = { .host = "/run/nvidia/driver", .here = here },
                                                    .socket_path = socket_path,
                                                    .node = "n1",
                                                    .interval_ms = 50,
                                                    .domain = true,
                                                    .answered = on_answered });
}

/* On a host whose nvidia-imex has a socket and a configuration, with this answer. */
static void start_with(const char *status, const char *domain) {
        ctl_answers(status, domain);
        tree_put(root, "imex/imex_ctrl.sock", "");
        tree_put(root, "imex/config.cfg", "");
        start();
}

static int teardown(void **state) {
        (void)state;
        host_imex_free(host);
        uv_run(&loop, UV_RUN_DEFAULT);
        free(TAKE(here));
        free(TAKE(socket_path));
        tree_remove(root);
        return uv_loop_close(&loop);
}

static void on_alarm(uv_timer_t *t) {
        *(bool *)t->data = true;
}

/* Runs until the state is this one; the limit is for a test that fails. */
static void becomes(enum host_state want) {
        static uv_timer_t alarm;
        bool late = false;
        uv_timer_init(&loop, &alarm);
        alarm.data = &late;
        uv_timer_start(&alarm, on_alarm, 10000, 0);
        while ((!answers || host_imex_get(host)->state != want) && !late)
                uv_run(&loop, UV_RUN_ONCE);
        assert_false(late);
        uv_close((uv_handle_t *)&alarm, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
}

static void answered_times(unsigned n) {
        for (unsigned first = answers; answers < first + n;)
                uv_run(&loop, UV_RUN_ONCE);
}

static unsigned calls(void) {
        _cleanup_(freep) char *path = file_join(root, "calls"), *text = NULL;
        struct err e;
        unsigned n = 0;
        if (file_read(path, 1 << 20, &text, NULL, &e) == 0)
                for (const char *p = text; (p = strchr(p, '\n')); p++)
                        n++;
        return n;
}

static bool was_called_with(const char *arguments) {
        _cleanup_(freep) char *path = file_join(root, "calls"), *text = NULL,
                              *line = xasprintf("%s\n", arguments);
        struct err e;
        return file_read(path, 1 << 20, &text, NULL, &e) == 0 && strstr(text, line);
}

static void a_host_without_imex_is_unknown_until_it_has_one(void **state) {
        (void)state;
        char reason[400];
        start();
        becomes(HOST_UNKNOWN);
        assert_non_null(strstr(host_imex_get(host)->reason, "nvidia-imex-ctl"));
        ctl_answers("READY", UP);
        becomes(HOST_UNKNOWN);
        tree_put(root, "imex/imex_ctrl.sock", "");
        tree_put(root, "imex/config.cfg", "");
        becomes(HOST_UP);
        _cleanup_(freep) char *q = xasprintf("-q --u=%s/imex/imex_ctrl.sock", root),
                              *n = xasprintf("-c %s/imex/config.cfg -N -j", root);
        assert_true(was_called_with(q));
        assert_true(was_called_with(n));
        assert_string_equal(host_imex_get(host)->version, "580.2");
        assert_true(host_imex_ready(host, 0, reason, sizeof reason));
}

static void without_a_socket_the_configuration_is_used(void **state) {
        (void)state;
        ctl_answers("READY", DEGRADED);
        tree_put(root, "imex/config.cfg", "");
        start();
        becomes(HOST_DEGRADED);
        _cleanup_(freep) char *q = xasprintf("-c %s/imex/config.cfg -q", root);
        assert_true(was_called_with(q));
}

static void a_missing_answer_proves_nothing_if_no_pod_can_reach_imex(void **state) {
        (void)state;
        tree_put(root, "imex/config.cfg", "IMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\n");
        ctl_answers("UNAVAILABLE", UP);
        start();
        becomes(HOST_UNKNOWN);
        answered_times(3); /* the state does not change */
        assert_int_equal(host_imex_get(host)->state, HOST_UNKNOWN);
        assert_non_null(strstr(host_imex_get(host)->reason, "set IMEX_CMD_UNIX_DOMAIN_PATH"));
        ctl_answers("READY", UP); /* after one answer, a missing answer counts */
        becomes(HOST_UP);
        ctl_answers("UNAVAILABLE", UP);
        becomes(HOST_DOWN);
}

static void a_missing_answer_means_down_if_a_socket_is_expected(void **state) {
        (void)state;
        _cleanup_(freep) char *config =
                xasprintf("IMEX_CMD_ENABLED=1\nIMEX_CMD_UNIX_DOMAIN_PATH=%s/imex/imex_ctrl.sock\n", root);
        tree_put(root, "imex/config.cfg", config);
        ctl_answers("UNAVAILABLE", UP);
        start();
        becomes(HOST_DOWN);
}

static void the_state_follows_IMEX(void **state) {
        (void)state;
        char reason[400];
        start_with("READY", UP);
        becomes(HOST_UP);
        ctl_answers("UNAVAILABLE", DEGRADED);
        becomes(HOST_DOWN);
        assert_false(host_imex_ready(host, 0, reason, sizeof reason));
        assert_string_equal(reason,
                            "n1: the host's nvidia-imex is UNAVAILABLE, and this pod waits for READY");
        ctl_answers("READY", UP);
        becomes(HOST_UP);
}

static void a_failed_query_of_the_domain_does_not_improve_its_state(void **state) {
        (void)state;
        char reason[400];
        start_with("READY", DEGRADED);
        becomes(HOST_DEGRADED);
        ctl_answers("READY", "peer 1 hangs");
        answered_times(1);
        assert_int_not_equal(host_imex_get(host)->state, HOST_UP);
        becomes(HOST_UNKNOWN);
        assert_non_null(
                strstr(host_imex_get(host)->reason, "READY, but the state of its domain is not known"));
        assert_non_null(strstr(host_imex_get(host)->reason, "peer 1 hangs"));
        assert_true(host_imex_ready(host, 0, reason,
                                    sizeof reason)); /* by the state of nvidia-imex, not of its domain */
        ctl_answers("READY", UP);
        becomes(HOST_UP);
}

/* The answer contains each pair of nodes. */
/* failure: a host-managed IMEX domain has 40 nodes -> its state is read */
static void the_answer_about_a_large_domain_is_read(void **state) {
        (void)state;
        _cleanup_(freep) char *domain = xasprintf("%200000s" UP, "");
        start_with("READY", domain);
        becomes(HOST_UP);
}

static void a_domain_that_cannot_be_queried_is_unknown(void **state) {
        (void)state;
        ctl_answers("READY", UP);
        tree_put(root, "imex/imex_ctrl.sock", "");
        start();
        becomes(HOST_UNKNOWN);
        while (!strstr(host_imex_get(host)->reason, "there is no configuration"))
                uv_run(&loop, UV_RUN_ONCE);
}

/* As in the decision whether the node's devices are offered. */
/* failure: the host's nvidia-imex does not answer twice -> it counts as not READY */
static void two_missing_answers_mean_not_ready(void **state) {
        (void)state;
        start_with("READY", UP);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_ASKED);
        answered_times(1);
        assert_int_equal(host_imex_own(host), HOST_IMEX_READY);
        ctl_answers("", UP);
        becomes(HOST_DOWN);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_READY); /* two missing answers */
        ctl_answers("READY", DEGRADED);
        becomes(HOST_DEGRADED);
        assert_int_equal(host_imex_own(host), HOST_IMEX_READY); /* whatever the states of other nodes are */
        ctl_answers("INITIALIZING", UP);
        becomes(HOST_DOWN);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_READY);
}

/* failure: the host's nvidia-imex cannot be queried -> its state is unknown */
static void a_missing_host_imex_has_an_unknown_state(void **state) {
        (void)state;
        start();
        becomes(HOST_UNKNOWN);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_KNOWN);
}

/* failure: the host's nvidia-imex does not answer once -> the node's devices are not withheld */
static void one_missing_answer_at_the_start_is_not_a_failure(void **state) {
        (void)state;
        start_with("", UP);
        answered_times(1);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_KNOWN);
        answered_times(1);
        assert_int_equal(host_imex_own(host), HOST_IMEX_NOT_READY);
}

/* failure: the host's nvidia-imex changes its state -> it is queried at short intervals until that lasts */
static void a_state_that_must_last_is_queried_at_short_intervals(void **state) {
        (void)state;
        ctl_answers("READY", UP);
        tree_put(root, "imex/imex_ctrl.sock", "");
        tree_put(root, "imex/config.cfg", "");
        here = file_join(root, "driver");
        socket_path = file_join(root, "imex/imex_ctrl.sock");
        host = host_imex_new(
                &loop, &(struct host_imex_options){ .root = { .host = "/run/nvidia/driver", .here = here },
                                                    .socket_path = socket_path,
                                                    .node = "n1",
                                                    .interval_ms = 3600000,
                                                    .answered = on_answered });
        answered_times(1);
        host_imex_settle(host, true);
        answered_times(3); /* and not after an hour */
        host_imex_settle(host, false);
}

/* An answer from before a pod came must not release that pod. */
static void a_hanging_imex_is_no_longer_READY(void **state) {
        (void)state;
        char reason[400];
        start_with("READY", UP);
        becomes(HOST_UP);
        ctl_answers("", UP);
        uint64_t now = uv_hrtime();
        host_imex_poll_fast(host);
        for (unsigned asked = calls(); calls() < asked + 2;) {
                assert_false(host_imex_ready(host, now, reason, sizeof reason));
                uv_run(&loop, UV_RUN_ONCE);
        }
        becomes(HOST_DOWN);
        assert_false(host_imex_ready(host, now, reason, sizeof reason));
        host_imex_poll_slow(host);
}

static void recovery_is_reported_when_state_and_domain_are_known(void **state) {
        (void)state;
        start_with("UNAVAILABLE", UP);
        becomes(HOST_DOWN);
        ctl_answers("READY", DEGRADED);
        while (host_imex_get(host)->state == HOST_DOWN) {
                assert_int_equal(host_imex_get(host)->imex, IMEX_STATE_UNAVAILABLE);
                uv_run(&loop, UV_RUN_ONCE);
        }
        assert_int_equal(host_imex_get(host)->state, HOST_DEGRADED);
        assert_int_equal(host_imex_get(host)->imex, IMEX_STATE_READY);
}

static void NOT_READY_is_not_READY(void **state) {
        (void)state;
        char reason[400];
        ctl_answers("NOT_READY", UP);
        tree_put(root, "imex/imex_ctrl.sock", "");
        start();
        becomes(HOST_DOWN);
        assert_false(host_imex_ready(host, 0, reason, sizeof reason));
        assert_non_null(strstr(host_imex_get(host)->reason, "NOT_READY"));
}

static void only_an_answer_to_a_later_query_counts(void **state) {
        (void)state;
        char reason[400];
        start_with("READY", UP);
        becomes(HOST_UP);
        uint64_t now = uv_hrtime();
        assert_false(host_imex_ready(host, now, reason, sizeof reason));
        assert_string_equal(reason, "n1: the host's nvidia-imex has not answered yet");
        host_imex_poll_fast(host);
        while (!host_imex_ready(host, now, reason, sizeof reason))
                uv_run(&loop, UV_RUN_ONCE);
        host_imex_poll_slow(host);
}

/* As when the driver is installed on the host itself, so that the host's root is the driver's, or when IMEX
 * runs in the driver's container. */
static void a_socket_in_the_driver_root_is_queried_inside_that_root(void **state) {
        (void)state;
        struct err e;
        char *shell = NULL, reason[400];
        size_t n = 0;
        if (geteuid() != 0 || file_read("/bin/busybox", 8 << 20, &shell, &n, &e) < 0)
                skip();
        _cleanup_(freep) char *path = file_join(root, "driver/bin/sh"),
                              *socket = xasprintf("driver%s/imex/imex_ctrl.sock", root);
        tree_put(root, "driver/bin/sh", "");
        assert_int_equal(file_replace_volatile(path, shell, n, 0755, &e), 0);
        free(shell);
        tree_put(root, "driver/only-in-the-root", "");
        tree_put(root, "driver/usr/bin/nvidia-imex-ctl",
                 "#!/bin/sh\n[ -e /only-in-the-root ] && [ -e \"${2#--u=}\" ] && echo READY\n");
        tree_put(root, socket, "");
        start();
        while (!host_imex_ready(host, 0, reason, sizeof reason))
                uv_run(&loop, UV_RUN_ONCE);
}

/* If IMEX runs in pods, the host's matters only when it exists: the plugin queries and polls nothing until
 * its socket appears, with all the folders on its path. */
/* failure: the host has no nvidia-imex where daemons run IMEX -> it is not queried until its socket exists */
static void without_a_socket_the_host_imex_is_not_queried(void **state) {
        (void)state;
        ctl_answers("READY", "");
        tree_put(root, "imex/config.cfg", "");
        here = file_join(root, "driver");
        host = host_imex_new(&loop, &(struct host_imex_options){ .root = { .host = "/", .here = here },
                                                                 .socket_path = "/etc/nvidia-imex/ctl.sock",
                                                                 .node = "n1",
                                                                 .interval_ms = 10,
                                                                 .only_with_socket = true,
                                                                 .answered = on_answered });
        while (!answers) /* UV_RUN_ONCE would wait forever: no event follows */
                uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(host_imex_get(host)->state, HOST_UNKNOWN);
        for (int i = 0; i < 20; i++) /* no timer is left */
                uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(uv_backend_timeout(&loop), -1);
        assert_int_equal(calls(), 0);
        struct err e;
        _cleanup_(freep) char *dir = file_join(here, "etc/nvidia-imex"), *socket = file_join(dir, "ctl.sock");
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        for (int i = 0; i < 20; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(calls(), 0);
        tree_put(here, "etc/nvidia-imex/ctl.sock", "");
        becomes(HOST_DOWN); /* queried, but the tool does not run in this root */
        assert_int_equal(unlink(socket), 0);
        becomes(HOST_UNKNOWN);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ready_in_a_domain_that_is_up),
                cmocka_unit_test(a_degraded_domain_names_the_missing_nodes),
                cmocka_unit_test(any_other_state_than_READY_is_down),
                T(a_host_without_imex_is_unknown_until_it_has_one),
                T(without_a_socket_the_configuration_is_used),
                T(without_a_socket_the_host_imex_is_not_queried),
                T(a_socket_in_the_driver_root_is_queried_inside_that_root),
                T(a_missing_answer_proves_nothing_if_no_pod_can_reach_imex),
                T(a_missing_answer_means_down_if_a_socket_is_expected),
                T(the_state_follows_IMEX),
                T(a_failed_query_of_the_domain_does_not_improve_its_state),
                T(two_missing_answers_mean_not_ready),
                T(a_missing_host_imex_has_an_unknown_state),
                T(one_missing_answer_at_the_start_is_not_a_failure),
                T(a_state_that_must_last_is_queried_at_short_intervals),
                T(the_answer_about_a_large_domain_is_read),
                T(a_domain_that_cannot_be_queried_is_unknown),
                T(a_hanging_imex_is_no_longer_READY),
                T(recovery_is_reported_when_state_and_domain_are_known),
                T(NOT_READY_is_not_READY),
                T(only_an_answer_to_a_later_query_counts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
