/* SPDX-License-Identifier: Apache-2.0 */
/* Times are given: a day passes in no time. */
#include "rules/racks.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "model/rack.h"

enum { NOW = 1763800000 }; /* 2025-11-22T08:26:40Z */
#define NOW_TEXT "2025-11-22T08:26:40Z"
#define DAY_AGO "2025-11-21T08:26:40Z"
#define LESS_THAN_A_DAY_AGO "2025-11-21T08:26:41Z"

static const struct cd_channel channel = { .template_name = RACK_TEMPLATE_PREFIX "s0",
                                           .allocation_mode = "Single" };

static struct compute_domain domain(const char *nodes, const char *empty) {
        return (struct compute_domain){ .o.meta = { .name = "s0", .ns = "driver", .uid = "u" },
                                        .channel = &channel,
                                        .rack = "s0",
                                        .rack_uid = "u",
                                        .rack_nodes = nodes,
                                        .rack_empty = empty };
}

static struct arena *a;

static int set_up(void **state) {
        (void)state;
        a = arena_new(1024);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        arena_free(a);
        return 0;
}

static struct racks_decision decided(const struct compute_domain *cd, struct racks_facts f) {
        struct racks_decision d;
        f.now = NOW;
        racks_decide(cd, &f, a, &d);
        return d;
}

static const struct racks_node both[] = { { "n0", .there = true, .states = true },
                                          { "n1", .there = true, .states = true } };
static const struct racks_node gone[] = { { "n0", .there = false }, { "n1", .there = true, .moved = true } };

static void nodes_that_join_are_written_down_once(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0", NULL);
        struct racks_facts f = { .nodes = both, .n_nodes = 2, .wanted = true };
        struct racks_decision d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_NOTE);
        assert_string_equal(d.nodes, "n0,n1");
        assert_int_equal(d.empty_since, 0);
        cd.rack_nodes = d.nodes;
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        assert_int_equal(decided(&cd, f).recheck_s, 0);
}

/* Slices go with their kubelet, Nodes stay. */
static void a_rack_that_reboots_is_there(void **state) {
        (void)state;
        const struct racks_node rebooting[] = { { "n0", .there = true }, { "n1", .there = true } };
        struct compute_domain cd = domain("n0,n1", NULL);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .nodes = rebooting, .n_nodes = 2, .wanted = true }).step,
                RACKS_KEEP);
}

static void when_the_last_node_is_gone_the_time_is_written_down(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_decision d =
                decided(&cd, (struct racks_facts){ .nodes = gone, .n_nodes = 2, .wanted = true });
        assert_int_equal(d.step, RACKS_NOTE);
        assert_string_equal(d.nodes, "");
        assert_int_equal(d.empty_since, NOW);
        assert_int_equal(d.recheck_s, RACKS_EMPTY_S);
}

static void it_goes_a_day_later_and_no_restart_begins_the_day_anew(void **state) {
        (void)state;
        struct compute_domain cd = domain("", LESS_THAN_A_DAY_AGO);
        struct racks_facts f = { .wanted = true, .confirmed = true };
        struct racks_decision d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_KEEP);
        assert_int_equal(d.recheck_s, 1);
        cd.rack_empty = DAY_AGO;
        assert_int_equal(decided(&cd, f).step, RACKS_DELETE);
}

static void never_under_a_claim(void **state) {
        (void)state;
        struct compute_domain cd = domain("", DAY_AGO);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .wanted = true, .claimed = true, .confirmed = true }).step,
                RACKS_KEEP);
        assert_int_equal(decided(&cd, (struct racks_facts){ .wanted = true }).step, RACKS_ASK);
}

static void never_on_the_word_of_a_stale_cache(void **state) {
        (void)state;
        struct compute_domain cd = domain("", DAY_AGO);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .wanted = true, .confirmed = true, .stale = true }).step,
                RACKS_HOLD);
        cd = domain("n0,n1", NULL);
        assert_int_equal(
                decided(&cd,
                        (struct racks_facts){ .nodes = gone, .n_nodes = 2, .wanted = true, .stale = true })
                        .step,
                RACKS_HOLD);
}

/* Nothing else brings the rack back into the queue. */
static void nodes_that_only_a_stale_cache_keeps_are_looked_at_again(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_facts f = { .nodes = gone, .n_nodes = 2, .wanted = true, .stale = true };
        struct racks_decision d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_HOLD);
        assert_string_equal(d.nodes, "n0,n1");
        f.stale = false;
        d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_NOTE);
        assert_string_equal(d.nodes, "");
        cd = domain("n0,n1", NULL);
        assert_int_equal(
                decided(&cd,
                        (struct racks_facts){ .nodes = both, .n_nodes = 2, .wanted = true, .stale = true })
                        .step,
                RACKS_KEEP);
}

static void a_node_that_comes_back_ends_the_day(void **state) {
        (void)state;
        struct compute_domain cd = domain("", DAY_AGO);
        struct racks_decision d = decided(
                &cd, (struct racks_facts){ .nodes = both, .n_nodes = 1, .wanted = true, .confirmed = true });
        assert_int_equal(d.step, RACKS_NOTE);
        assert_string_equal(d.nodes, "n0");
        assert_int_equal(d.empty_since, 0);
}

static void where_nobody_wants_it_any_more_it_goes_when_nobody_uses_it(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_facts f = { .nodes = both, .n_nodes = 2, .claimed = true };
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        f.claimed = false;
        assert_int_equal(decided(&cd, f).step, RACKS_ASK);
        f.confirmed = true;
        assert_int_equal(decided(&cd, f).step, RACKS_DELETE);
        cd.o.meta.deleted = NOW;
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
}

static void a_copy_that_a_person_has_made_elsewhere_is_left_alone(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", DAY_AGO);
        struct racks_facts f = { .confirmed = true };
        cd.rack_uid = "of-the-original";
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        cd.rack_uid = NULL;
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        f.wanted = true; /* where racks are wanted it is taken for the rack's */
        assert_int_equal(decided(&cd, f).step, RACKS_NOTE);
}

static void what_is_no_time_begins_the_day_now(void **state) {
        (void)state;
        static const char *const texts[] = { "", "yesterday", "2099-01-01T00:00:00Z",
                                             "1969-01-01T00:00:00Z" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct compute_domain cd = domain("", texts[i]);
                struct racks_decision d =
                        decided(&cd, (struct racks_facts){ .wanted = true, .confirmed = true });
                assert_int_equal(d.step, RACKS_NOTE);
                assert_int_equal(d.empty_since, NOW);
        }
        struct compute_domain cd = domain("", NOW_TEXT);
        assert_int_equal(decided(&cd, (struct racks_facts){ .wanted = true }).step, RACKS_KEEP);
}

static void only_what_we_would_have_made_is_a_racks(void **state) {
        (void)state;
        struct compute_domain cd = domain("", NULL);
        assert_true(racks_is_domain(&cd));
        cd.o.meta.name = "mine";
        assert_false(racks_is_domain(&cd));
        cd = domain("", NULL);
        cd.rack = NULL;
        assert_false(racks_is_domain(&cd));
        cd = domain("", NULL);
        cd.channel = NULL;
        assert_false(racks_is_domain(&cd));
}

/* Somebody has deleted the one in the driver's namespace, which listed the nodes, while they were down. */
static void where_the_list_of_nodes_is_lost_a_rack_that_nobody_states_may_be_down(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_facts f = { .wanted = true, .confirmed = true, .lost = true };
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        cd.rack_empty = DAY_AGO; /* it was empty before */
        cd.rack_nodes = "";
        assert_int_equal(decided(&cd, f).step, RACKS_DELETE);
        f.nodes = both;
        f.n_nodes = 2;
        assert_int_equal(decided(&cd, f).step, RACKS_NOTE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nodes_that_join_are_written_down_once),
                cmocka_unit_test(a_rack_that_reboots_is_there),
                cmocka_unit_test(when_the_last_node_is_gone_the_time_is_written_down),
                cmocka_unit_test(it_goes_a_day_later_and_no_restart_begins_the_day_anew),
                cmocka_unit_test(never_under_a_claim),
                cmocka_unit_test(never_on_the_word_of_a_stale_cache),
                cmocka_unit_test(nodes_that_only_a_stale_cache_keeps_are_looked_at_again),
                cmocka_unit_test(a_node_that_comes_back_ends_the_day),
                cmocka_unit_test(where_nobody_wants_it_any_more_it_goes_when_nobody_uses_it),
                cmocka_unit_test(a_copy_that_a_person_has_made_elsewhere_is_left_alone),
                cmocka_unit_test(what_is_no_time_begins_the_day_now),
                cmocka_unit_test(only_what_we_would_have_made_is_a_racks),
                cmocka_unit_test(where_the_list_of_nodes_is_lost_a_rack_that_nobody_states_may_be_down),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
