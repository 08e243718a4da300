/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "controller/records.h"

enum { NOW = 1800000000, HOUR = 3600 };

static int setup(void **state) {
        *state = first_seen_new(3600);
        return 0;
}

static int teardown(void **state) {
        first_seen_free(*state);
        return 0;
}

/* failure: a Node is deleted -> its minute begins when the controller first sees that [force-deleted] */
static void force_deletion_of_a_node_counts_from_its_first_observation(void **state) {
        struct first_seen *g = *state;
        assert_int_equal(first_seen_at(g, "n0", NOW), NOW);
        assert_int_equal(first_seen_at(g, "n0", NOW + 59), NOW);
        assert_int_equal(first_seen_at(g, "n1", NOW + 59), NOW + 59);
        assert_int_equal(first_seen_at(g, "n0", NOW + 61), NOW);
}

/* failure: a Node is recreated and deleted again -> a new minute begins [force-deleted] */
static void a_node_that_is_force_deleted_again_gets_a_new_minute(void **state) {
        struct first_seen *g = *state;
        first_seen_at(g, "n0", NOW);
        first_seen_at(g, "n1", NOW);
        first_seen_forget(g, "n0");
        first_seen_forget(g, "n2");
        assert_int_equal(first_seen_at(g, "n0", NOW + 61), NOW + 61);
        assert_int_equal(first_seen_at(g, "n1", NOW + 61), NOW);
}

static void all_facts_are_a_minute_old_when_the_newest_is(void **state) {
        struct first_seen *g = *state;
        assert_int_equal(first_seen_left(g, "", 60, NOW), 0);
        first_seen_at(g, "n0", NOW);
        first_seen_at(g, "n1", NOW + 20);
        assert_int_equal(first_seen_left(g, "", 60, NOW + 30), 50);
        first_seen_forget(g, "n1");
        assert_int_equal(first_seen_left(g, "", 60, NOW + 30), 30);
        assert_int_equal(first_seen_left(g, "", 60, NOW + 60), 0);
}

static void a_fact_that_is_not_recorded_for_an_hour_is_forgotten(void **state) {
        struct first_seen *g = *state;
        first_seen_at(g, "old", NOW);
        first_seen_at(g, "n0", NOW);
        assert_int_equal(first_seen_at(g, "n0", NOW + HOUR), NOW);
        assert_int_equal(first_seen_at(g, "old", NOW + HOUR), NOW);
        assert_int_equal(first_seen_at(g, "n0", NOW + 2 * HOUR), NOW);
        first_seen_at(g, "new", NOW + 2 * HOUR + 1); /* "old" is forgotten now, and "n0" is not */
        assert_int_equal(first_seen_at(g, "n0", NOW + 2 * HOUR + 2), NOW);
        assert_int_equal(first_seen_at(g, "old", NOW + 2 * HOUR + 2), NOW + 2 * HOUR + 2);
}

static void a_fact_that_its_callers_forget_stays(void **state) {
        struct first_seen *g = first_seen_new(0);
        first_seen_at(g, "old", NOW);
        first_seen_at(g, "n0", NOW + 100 * HOUR);
        assert_int_equal(first_seen_at(g, "old", NOW + 100 * HOUR), NOW);
        assert_int_equal(first_seen_count(g, "", NOW + 200 * HOUR), 2);
        first_seen_forget(g, "old");
        assert_int_equal(first_seen_get(g, "old"), 0);
        first_seen_free(g);
}

/* failure: a Node of another partition is deleted -> assignments of this partition do not wait */
static void a_deleted_node_matters_to_its_partition(void **state) {
        struct controller c = { .memory.vanished = *state };
        int64_t now = clock_mono_s();
        records_vanished(&c, "a.1", "n0");
        assert_true(records_vanished_left(&c, "a.1", now) > 0);
        assert_int_equal(records_vanished_left(&c, "a.10", now), 0);
        assert_int_equal(records_vanished_left(&c, "a", now), 0);
        assert_int_equal(records_vanished_left(&c, "a.1", now + 120), 0);
        records_exists(&c, "b.1", "n0"); /* the Node exists again, in another partition */
        assert_true(records_vanished_left(&c, "a.1", now) > 0);
        records_exists(&c, "a.1", "n0");
        assert_int_equal(records_vanished_left(&c, "a.1", now), 0);
}

/* failure: a Node is recreated and deleted again -> assignments of its partition wait again [force-deleted]
 */
static void a_node_that_is_deleted_again_matters_for_another_minute(void **state) {
        struct controller c = { .memory.vanished = *state };
        int64_t now = clock_mono_s();
        first_seen_at(c.memory.vanished, "a.1/n0", now - 600);
        assert_int_equal(records_vanished_left(&c, "a.1", now), 0);
        records_vanished(&c, "a.1", "n0");
        assert_true(records_vanished_left(&c, "a.1", now) > 0);
}

/* failure: a Node whose partition is unknown is deleted -> assignments of all partitions wait */
static void a_deleted_node_of_no_known_partition_matters_to_all(void **state) {
        struct controller c = { .memory.vanished = *state };
        int64_t now = clock_mono_s();
        records_vanished(&c, NULL, "n0");
        assert_true(records_vanished_left(&c, "a.1", now) > 0);
        records_exists(&c, NULL, "n0");
        assert_int_equal(records_vanished_left(&c, "a.1", now), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(force_deletion_of_a_node_counts_from_its_first_observation),
                T(a_node_that_is_force_deleted_again_gets_a_new_minute),
                T(all_facts_are_a_minute_old_when_the_newest_is),
                T(a_fact_that_is_not_recorded_for_an_hour_is_forgotten),
                T(a_fact_that_its_callers_forget_stays),
                T(a_deleted_node_matters_to_its_partition),
                T(a_node_that_is_deleted_again_matters_for_another_minute),
                T(a_deleted_node_of_no_known_partition_matters_to_all),
        };
        return cmocka_run_group_tests_name("since", tests, NULL, NULL);
}
