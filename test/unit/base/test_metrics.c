/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

/* The text of our families, followed by the process_ ones. */
static char *render(const struct metrics *m, char **ret_process) {
        struct buf b = BUF_INIT(1 << 20);
        metrics_render(m, &b);
        assert_false(b.failed);
        char *text = buf_steal(&b), *process = strstr(text, "# HELP process_");
        assert_non_null(process);
        if (ret_process)
                *ret_process = xstrdup(process);
        *process = '\0';
        return text;
}

static void assert_text(const struct metrics *m, const char *want) {
        _cleanup_(freep) char *got = render(m, NULL);
        assert_string_equal(got, want);
}

static void test_counter_and_gauge(void **state) {
        struct metrics *m = metrics_new();
        struct metric *plain = metric_add(m, METRIC_COUNTER, "a_total", "Things done.", NULL);
        struct metric *g = metric_add(m, METRIC_GAUGE, "b", "Size.", LABELS("driver", "operation"));
        assert_text(m, "# HELP a_total Things done.\n# TYPE a_total counter\na_total 0\n");
        metric_inc(plain, 1, NULL);
        metric_inc(plain, 2, LABELS());
        metric_set(g, 0.25, LABELS("x", "prepare"));
        metric_inc(g, -1, LABELS("x", "unprepare"));
        metric_inc(g, 0.5, LABELS("x", "prepare"));
        assert_text(m, "# HELP a_total Things done.\n# TYPE a_total counter\na_total 3\n"
                       "# HELP b Size.\n# TYPE b gauge\nb{driver=\"x\",operation=\"prepare\"} "
                       "0.75\nb{driver=\"x\",operation=\"unprepare\"} -1\n");
        metric_forget(g, LABELS("x", "prepare"));
        metric_forget(g, LABELS("never", "there"));
        assert_text(m, "# HELP a_total Things done.\n# TYPE a_total counter\na_total 3\n"
                       "# HELP b Size.\n# TYPE b gauge\nb{driver=\"x\",operation=\"unprepare\"} -1\n");
        metric_set(g, 1, LABELS("y", "prepare"));
        metric_clear(g);
        assert_text(m, "# HELP a_total Things done.\n# TYPE a_total counter\na_total 3\n");
        metric_set(g, 2, LABELS("y", "prepare"));
        assert_text(m, "# HELP a_total Things done.\n# TYPE a_total counter\na_total 3\n"
                       "# HELP b Size.\n# TYPE b gauge\nb{driver=\"y\",operation=\"prepare\"} 2\n");
        metrics_free(m);
}

static void test_histogram(void **state) {
        static const double buckets[] = { 0.05, 0.1, 12.8 };
        struct metrics *m = metrics_new();
        struct metric *h =
                metric_add_histogram(m, "d_seconds", "Time.", LABELS("op"), buckets, ARRAY_LEN(buckets));
        metric_observe(h, 0.05, LABELS("p")); /* a value equal to a bound belongs to its bucket */
        metric_observe(h, 0.06, LABELS("p"));
        metric_observe(h, 99, LABELS("p"));
        assert_text(m, "# HELP d_seconds Time.\n# TYPE d_seconds histogram\n"
                       "d_seconds_bucket{op=\"p\",le=\"0.05\"} 1\nd_seconds_bucket{op=\"p\",le=\"0.1\"} 2\n"
                       "d_seconds_bucket{op=\"p\",le=\"12.8\"} 2\nd_seconds_bucket{op=\"p\",le=\"+Inf\"} 3\n"
                       "d_seconds_sum{op=\"p\"} 99.11\nd_seconds_count{op=\"p\"} 3\n");
        metrics_free(m);
}

static void test_escapes(void **state) {
        struct metrics *m = metrics_new();
        struct metric *g = metric_add(m, METRIC_GAUGE, "g", "A \\ and a \"quote\"\nhere", LABELS("l"));
        metric_set(g, 1, LABELS("a\\b\"c\nd"));
        metric_set(g, 2, LABELS("a\",l=\"b")); /* does not become another series */
        metric_set(g, 3, LABELS(""));
        assert_text(m, "# HELP g A \\\\ and a \"quote\"\\nhere\n# TYPE g gauge\n"
                       "g{l=\"a\\\\b\\\"c\\nd\"} 1\ng{l=\"a\\\",l=\\\"b\"} 2\ng{l=\"\"} 3\n");
        metrics_free(m);
}

static void test_numbers(void **state) {
        const struct {
                double v;
                const char *text;
        } cases[] = { { 1e6, "x 1000000\n" },
                      { 1234567890123, "x 1234567890123\n" },
                      { 0.1, "x 0.1\n" },
                      { 1e300, "x 1e+300\n" },
                      { (double)INFINITY, "x +Inf\n" },
                      { -(double)INFINITY, "x -Inf\n" },
                      { (double)NAN, "x NaN\n" } };
        struct metrics *m = metrics_new();
        struct metric *g = metric_add(m, METRIC_GAUGE, "x", "X.", NULL);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                metric_set(g, cases[i].v, NULL);
                _cleanup_(freep) char *got = render(m, NULL);
                assert_non_null(strstr(got, cases[i].text));
        }
        metrics_free(m);
}

static double value_of(const char *text, const char *name) {
        _cleanup_(freep) char *line = xasprintf("\n%s ", name);
        const char *p = strstr(text, line);
        assert_non_null(p);
        return strtod(p + strlen(line), NULL);
}

static void test_process(void **state) {
        struct metrics *m = metrics_new();
        _cleanup_(freep) char *process = NULL, *none = render(m, &process);
        assert_string_equal(none, "");
        double now = (double)time(NULL), start = value_of(process, "process_start_time_seconds");
        assert_true(start <= now + 1 && start > now - 600);
        assert_true(value_of(process, "process_resident_memory_bytes") > 100000);
        assert_true(value_of(process, "process_virtual_memory_bytes") >
                    value_of(process, "process_resident_memory_bytes"));
        assert_true(value_of(process, "process_cpu_seconds_total") >= 0);
        assert_true(value_of(process, "process_max_fds") > 0);

        double fds = value_of(process, "process_open_fds");
        int fd = dup(0);
        _cleanup_(freep) char *again = NULL, *nothing = render(m, &again);
        assert_true(value_of(again, "process_open_fds") == fds + 1);
        assert_string_equal(nothing, "");
        close(fd);
        metrics_free(m);
}

static void test_limit(void **state) {
        struct metrics *m = metrics_new();
        struct buf b = BUF_INIT(100);
        metrics_render(m, &b);
        assert_true(b.failed);
        buf_done(&b);
        metrics_free(m);
        metrics_free(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counter_and_gauge), cmocka_unit_test(test_histogram),
                cmocka_unit_test(test_escapes),           cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_process),           cmocka_unit_test(test_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
