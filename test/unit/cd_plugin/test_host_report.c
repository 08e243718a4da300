/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin reports about the host's own nvidia-imex, and when. Events and annotations are caught here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cd_plugin/host_imex.h"

static char reported[1000]; /* the reasons, each followed by a space */
static struct cd_metrics metrics;
static struct host_report *report;

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        size_t n = strlen(reported);
        (void)r;
        (void)type;
        (void)fmt;
        assert_string_equal(about->kind, "Node");
        snprintf(reported + n, sizeof reported - n, "%s ", reason);
}

static char annotations[1000]; /* "key=value/wait_ms " of each call */

void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms) {
        size_t n = strlen(annotations);
        assert_ptr_equal(p, annotations);
        snprintf(annotations + n, sizeof annotations - n, "%s=%s/%u ", strrchr(key, '/') + 1,
                 str_or(value, "none"), wait_ms);
}

static void start(const char *mode) {
        const struct imex_mode *m = NULL;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, mode, &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        cd_metrics_init(&metrics, "n0");
        report = host_report_new(&(struct host_report_options){
                .metrics = &metrics, .mode = m, .node = "n0", .own_pod = (struct own_pod *)annotations });
        reported[0] = annotations[0] = '\0';
}

static int teardown(void **state) {
        (void)state;
        host_report_free(report);
        node_metrics_done(&metrics.node);
        return 0;
}

static void answers(enum host_state state, const char *word, const char *reason) {
        struct host_imex_status s = { .state = state };
        s.imex = imex_status_decode(word);
        snprintf(s.reason, sizeof s.reason, "%s", reason);
        host_report_update(report, &s);
}

static void an_imex_that_does_not_answer_is_not_reported_as_stopped(void **state) {
        (void)state;
        start("");
        answers(HOST_UNKNOWN, "", "no nvidia-imex-ctl");
        assert_string_equal(reported, "");
        answers(HOST_UP, "READY", "");
        answers(HOST_UP, "READY", "");
        assert_string_equal(reported, "HostIMEXConflict ");
        answers(HOST_DOWN, "", "it cannot be queried");
        assert_string_equal(reported, "HostIMEXConflict ");
        answers(HOST_UP, "READY", "");
        assert_string_equal(reported, "HostIMEXConflict "); /* no change */
        answers(HOST_DOWN, "", "it cannot be queried");
        answers(HOST_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        assert_string_equal(reported, "HostIMEXConflict HostIMEXStopped ");
        answers(HOST_DOWN, "INITIALIZING", "it is INITIALIZING");
        answers(HOST_UNKNOWN, "", "no nvidia-imex-ctl");
        assert_string_equal(reported, "HostIMEXConflict HostIMEXStopped HostIMEXConflict HostIMEXStopped ");
}

static void each_change_of_state_is_reported_once(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        answers(HOST_UP, "READY", "");
        assert_string_equal(reported, ""); /* the first answer after the start */
        answers(HOST_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        answers(HOST_DOWN, "INITIALIZING", "it is INITIALIZING");
        answers(HOST_DEGRADED, "READY", "1 of 2 nodes");
        answers(HOST_DEGRADED, "READY", "0 of 2 nodes");
        answers(HOST_UNKNOWN, "READY", "the state of its domain is not known");
        answers(HOST_UP, "READY", "");
        assert_string_equal(reported, "HostIMEXDown HostIMEXDegraded HostIMEXUnknown HostIMEXUp ");
}

static void an_imex_that_is_down_at_the_start_is_reported(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        answers(HOST_UNKNOWN, "", ""); /* not queried yet */
        assert_string_equal(reported, "");
        answers(HOST_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        assert_string_equal(reported, "HostIMEXDown ");
}

/* A change of state is written at once, a change of the reason with the next write. */
static void annotations_are_absent_when_there_is_nothing_to_report(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        answers(HOST_UP, "READY", "");
        assert_string_equal(annotations, "host-state=UP/0 host-reason=none/0 ");
        annotations[0] = '\0';
        answers(HOST_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        answers(HOST_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        answers(HOST_DOWN, "", "it hangs");
        assert_string_equal(annotations, "host-state=DOWN/0 host-reason=it is UNAVAILABLE/0 "
                                         "host-state=DOWN/0 host-reason=it hangs/3000 ");
        annotations[0] = '\0';
        answers(HOST_UNKNOWN, "", "no tool");
        assert_string_equal(annotations, "host-state=none/0 host-reason=no tool/0 ");
}

static void nothing_is_annotated_where_our_daemons_run(void **state) {
        (void)state;
        start("");
        answers(HOST_UP, "READY", "");
        assert_string_equal(annotations, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(an_imex_that_does_not_answer_is_not_reported_as_stopped, teardown),
                cmocka_unit_test_teardown(each_change_of_state_is_reported_once, teardown),
                cmocka_unit_test_teardown(an_imex_that_is_down_at_the_start_is_reported, teardown),
                cmocka_unit_test_teardown(annotations_are_absent_when_there_is_nothing_to_report, teardown),
                cmocka_unit_test_teardown(nothing_is_annotated_where_our_daemons_run, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
