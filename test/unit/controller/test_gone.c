/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/gone.h"

enum { NOW = 1800000000, HOUR = 3600 };

static int setup(void **state) {
        *state = gone_new();
        return 0;
}

static int teardown(void **state) {
        gone_free(*state);
        return 0;
}

static void a_minute_begins_when_it_is_first_missed(void **state) {
        struct gone *g = *state;
        assert_int_equal(gone_since(g, "n0", NOW), NOW);
        assert_int_equal(gone_since(g, "n0", NOW + 59), NOW);
        assert_int_equal(gone_since(g, "n1", NOW + 59), NOW + 59);
        assert_int_equal(gone_since(g, "n0", NOW + 61), NOW);
}

/* A Node that was made anew and goes again has a minute of its own. */
static void a_return_ends_it(void **state) {
        struct gone *g = *state;
        gone_since(g, "n0", NOW);
        gone_since(g, "n1", NOW);
        gone_is_back(g, "n0");
        gone_is_back(g, "n2");
        assert_int_equal(gone_since(g, "n0", NOW + 61), NOW + 61);
        assert_int_equal(gone_since(g, "n1", NOW + 61), NOW);
}

static void what_was_missed_last_decides_when_all_have_been_missing_for_a_minute(void **state) {
        struct gone *g = *state;
        assert_int_equal(gone_left(g, 0, 60, NOW), 0);
        gone_since(g, "n0", NOW);
        gone_since(g, "n1", NOW + 20);
        assert_int_equal(gone_left(g, 0, 60, NOW + 30), 50);
        assert_int_equal(gone_left(g, NOW + 21, 60, NOW + 30), 0);
        gone_is_back(g, "n1");
        assert_int_equal(gone_left(g, 0, 60, NOW + 30), 30);
        assert_int_equal(gone_left(g, 0, 60, NOW + 60), 0);
}

static void what_nobody_asks_for_any_more_is_forgotten_after_an_hour(void **state) {
        struct gone *g = *state;
        gone_since(g, "old", NOW);
        gone_since(g, "n0", NOW + 10);
        assert_int_equal(gone_since(g, "n0", NOW + 9 * HOUR), NOW + 10);
        assert_int_equal(gone_since(g, "old", NOW + HOUR), NOW);
        gone_since(g, "new", NOW + HOUR + 1); /* "old" is forgotten now, and "n0" is not */
        assert_int_equal(gone_since(g, "n0", NOW + HOUR + 2), NOW + 10);
        assert_int_equal(gone_since(g, "old", NOW + HOUR + 2), NOW + HOUR + 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(a_minute_begins_when_it_is_first_missed),
                T(a_return_ends_it),
                T(what_was_missed_last_decides_when_all_have_been_missing_for_a_minute),
                T(what_nobody_asks_for_any_more_is_forgotten_after_an_hour),
        };
        return cmocka_run_group_tests_name("gone", tests, NULL, NULL);
}
