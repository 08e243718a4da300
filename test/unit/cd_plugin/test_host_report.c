/* SPDX-License-Identifier: Apache-2.0 */
/* What is reported of the host's own nvidia-imex, and when. Events and annotations are caught here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cd_plugin/host_report.h"

static char told[1000]; /* the reasons, each followed by a blank */
static struct plugin_metrics metrics;
static struct host_report *report;

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        size_t n = strlen(told);
        (void)r;
        (void)type;
        (void)fmt;
        assert_string_equal(about->kind, "Node");
        snprintf(told + n, sizeof told - n, "%s ", reason);
}

static char annotations[1000]; /* "key=value " of each call */

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
        plugin_metrics_init(&metrics, "n0");
        report = host_report_new(&(struct host_report_options){
                .metrics = &metrics, .mode = m, .node = "n0", .own_pod = (struct own_pod *)annotations });
        told[0] = annotations[0] = '\0';
}

static int teardown(void **state) {
        (void)state;
        host_report_free(report);
        plugin_metrics_done(&metrics);
        return 0;
}

static void tell(enum host_imex_state state, const char *word, const char *reason) {
        struct host_imex_status s = { .state = state };
        snprintf(s.word, sizeof s.word, "%s", word);
        snprintf(s.reason, sizeof s.reason, "%s", reason);
        host_report_tell(report, &s);
}

static void one_that_only_does_not_answer_is_not_gone(void **state) {
        (void)state;
        start("");
        tell(HOST_IMEX_UNKNOWN, "", "no nvidia-imex-ctl");
        assert_string_equal(told, "");
        tell(HOST_IMEX_UP, "READY", "");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(told, "HostIMEXInTheWay ");
        tell(HOST_IMEX_DOWN, "", "it cannot be asked");
        assert_string_equal(told, "HostIMEXInTheWay ");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(told, "HostIMEXInTheWay "); /* it was so all the time */
        tell(HOST_IMEX_DOWN, "", "it cannot be asked");
        tell(HOST_IMEX_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        assert_string_equal(told, "HostIMEXInTheWay HostIMEXGone ");
        tell(HOST_IMEX_DOWN, "INITIALIZING", "it is INITIALIZING");
        tell(HOST_IMEX_UNKNOWN, "", "no nvidia-imex-ctl");
        assert_string_equal(told, "HostIMEXInTheWay HostIMEXGone HostIMEXInTheWay HostIMEXGone ");
}

static void each_change_of_state_is_told_once(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(told, ""); /* the plugin finds it so */
        tell(HOST_IMEX_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        tell(HOST_IMEX_DOWN, "INITIALIZING", "it is INITIALIZING");
        tell(HOST_IMEX_DEGRADED, "READY", "1 of 2 nodes");
        tell(HOST_IMEX_DEGRADED, "READY", "0 of 2 nodes");
        tell(HOST_IMEX_UNKNOWN, "READY", "its domain cannot be asked for");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(told, "HostIMEXDown HostIMEXDegraded HostIMEXUnknown HostIMEXUp ");
}

static void one_that_is_down_when_the_plugin_starts_is_told(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        tell(HOST_IMEX_UNKNOWN, "", ""); /* not asked yet */
        assert_string_equal(told, "");
        tell(HOST_IMEX_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        assert_string_equal(told, "HostIMEXDown ");
}

/* A change of state at once, one of the reason with what follows. */
static void annotations_are_absent_when_there_is_nothing_to_report(void **state) {
        (void)state;
        start("HostManagedIMEX=true");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(annotations, "host-state=UP/0 host-reason=none/0 ");
        annotations[0] = '\0';
        tell(HOST_IMEX_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        tell(HOST_IMEX_DOWN, "UNAVAILABLE", "it is UNAVAILABLE");
        tell(HOST_IMEX_DOWN, "", "it hangs");
        assert_string_equal(annotations, "host-state=DOWN/0 host-reason=it is UNAVAILABLE/0 "
                                         "host-state=DOWN/0 host-reason=it hangs/3000 ");
        annotations[0] = '\0';
        tell(HOST_IMEX_UNKNOWN, "", "no tool");
        assert_string_equal(annotations, "host-state=none/0 host-reason=no tool/0 ");
}

static void nothing_is_annotated_where_daemons_of_ours_run(void **state) {
        (void)state;
        start("");
        tell(HOST_IMEX_UP, "READY", "");
        assert_string_equal(annotations, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(one_that_only_does_not_answer_is_not_gone, teardown),
                cmocka_unit_test_teardown(each_change_of_state_is_told_once, teardown),
                cmocka_unit_test_teardown(one_that_is_down_when_the_plugin_starts_is_told, teardown),
                cmocka_unit_test_teardown(annotations_are_absent_when_there_is_nothing_to_report, teardown),
                cmocka_unit_test_teardown(nothing_is_annotated_where_daemons_of_ours_run, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
