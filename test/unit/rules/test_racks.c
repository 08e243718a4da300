/* SPDX-License-Identifier: Apache-2.0 */
/* The tests set the time, so a day passes at once. */
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
        assert_null(racks_check(&f, &d));
        return d;
}

static const struct racks_node both[] = { { "n0", .there = true, .states = true },
                                          { "n1", .there = true, .states = true } };
static const struct racks_node gone[] = { { "n0", .there = false }, { "n1", .there = true, .moved = true } };

/* failure: a decision would delete a rack that is in use -> it is not carried out, and DecisionWrong reports
 * it
 */
static void the_check_finds_every_wrong_deletion(void **state) {
        (void)state;
        const struct racks_node left[] = { { "n0" } };
        const struct racks_facts right = {
                .nodes = left, .n_nodes = 1, .wanted = true, .confirmed = true, .now = NOW
        };
        struct racks_facts f = right;
        struct racks_decision d = { .step = RACKS_DELETE, .empty_since = NOW - RACKS_EMPTY_S };
        assert_null(racks_check(&f, &d));
        f.stale = true;
        assert_string_equal(racks_check(&f, &d), "it would be deleted while a cache is stale");
        f = right;
        f.confirmed = false;
        assert_string_equal(racks_check(&f, &d), "it would be deleted while a claim may use it");
        f = right;
        f.claimed = true;
        assert_string_equal(racks_check(&f, &d), "it would be deleted while a claim may use it");
        f = right;
        f.nodes = both;
        assert_string_equal(racks_check(&f, &d), "it would be deleted while a Node states the rack");
        f.wanted = false; /* in a namespace that does not want it */
        assert_null(racks_check(&f, &d));
        f = right;
        d.empty_since++;
        assert_string_equal(racks_check(&f, &d),
                            "it would be deleted before its rack has had no Node for a day");
        d.empty_since = 0;
        assert_non_null(racks_check(&f, &d));
        d.step = RACKS_PAUSE;
        assert_null(racks_check(&f, &d));
}

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

/* The slices are deleted while the kubelets are down, but the Nodes stay. */
/* failure: all nodes of a rack reboot and their slices disappear -> its ComputeDomain stays */
static void a_rebooting_rack_keeps_its_computedomain(void **state) {
        (void)state;
        const struct racks_node rebooting[] = { { "n0", .there = true }, { "n1", .there = true } };
        struct compute_domain cd = domain("n0,n1", NULL);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .nodes = rebooting, .n_nodes = 2, .wanted = true }).step,
                RACKS_KEEP);
}

/* failure: the last Node of a rack is deleted -> the time is recorded */
static void the_time_is_recorded_when_the_last_node_is_gone(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_decision d =
                decided(&cd, (struct racks_facts){ .nodes = gone, .n_nodes = 2, .wanted = true });
        assert_int_equal(d.step, RACKS_NOTE);
        assert_string_equal(d.nodes, "");
        assert_int_equal(d.empty_since, NOW);
        assert_int_equal(d.recheck_s, RACKS_EMPTY_S);
}

/* failure: the controller restarts within that day -> the day does not begin again */
static void an_empty_rack_is_deleted_a_day_later_despite_restarts(void **state) {
        (void)state;
        struct compute_domain cd = domain("", LESS_THAN_A_DAY_AGO);
        struct racks_facts f = { .wanted = true, .confirmed = true };
        struct racks_decision d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_KEEP);
        assert_int_equal(d.recheck_s, 1);
        cd.rack_empty = DAY_AGO;
        assert_int_equal(decided(&cd, f).step, RACKS_DELETE);
}

/* failure: a rack's Nodes are gone but a claim exists -> its ComputeDomain stays */
static void a_rack_is_never_deleted_under_a_claim(void **state) {
        (void)state;
        struct compute_domain cd = domain("", DAY_AGO);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .wanted = true, .claimed = true, .confirmed = true }).step,
                RACKS_KEEP);
        assert_int_equal(decided(&cd, (struct racks_facts){ .wanted = true }).step, RACKS_ASK);
}

/* failure: a cache is stale -> no rack's ComputeDomain is deleted */
static void a_stale_cache_never_deletes_a_rack(void **state) {
        (void)state;
        struct compute_domain cd = domain("", DAY_AGO);
        assert_int_equal(
                decided(&cd, (struct racks_facts){ .wanted = true, .confirmed = true, .stale = true }).step,
                RACKS_PAUSE);
        cd = domain("n0,n1", NULL);
        assert_int_equal(
                decided(&cd,
                        (struct racks_facts){ .nodes = gone, .n_nodes = 2, .wanted = true, .stale = true })
                        .step,
                RACKS_PAUSE);
}

/* No other change queues the rack again. */
/* failure: a node changes its rack while a cache is stale -> its old rack is checked again */
static void nodes_that_only_a_stale_cache_shows_are_checked_again(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_facts f = { .nodes = gone, .n_nodes = 2, .wanted = true, .stale = true };
        struct racks_decision d = decided(&cd, f);
        assert_int_equal(d.step, RACKS_PAUSE);
        assert_string_equal(d.nodes, "n0,n1");
        /* And if another node of the list belongs to the rack. */
        const struct racks_node mixed[] = { gone[0], both[1] };
        f.nodes = mixed;
        assert_int_equal(decided(&cd, f).step, RACKS_PAUSE);
        f.nodes = gone;
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

/* failure: a namespace's label is removed -> its rack ComputeDomains are deleted when unused */
static void an_unwanted_computedomain_of_a_rack_is_deleted_when_unused(void **state) {
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

/* failure: a person copies a rack's ComputeDomain -> the copy is not deleted */
static void a_copy_made_by_a_person_is_left_unchanged(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", DAY_AGO);
        struct racks_facts f = { .confirmed = true };
        cd.rack_uid = "of-the-original";
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        cd.rack_uid = NULL;
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        f.wanted = true; /* in a namespace with racks it counts as the rack's ComputeDomain */
        assert_int_equal(decided(&cd, f).step, RACKS_NOTE);
}

/* failure: the recorded time is invalid or in the future -> the day begins now */
static void an_invalid_time_begins_the_day_now(void **state) {
        (void)state;
        static const char *const texts[] = { "",
                                             "yesterday",
                                             "2099-01-01T00:00:00Z",
                                             "1969-01-01T00:00:00Z",
                                             "1970-01-01T00:00:00Z",
                                             "2025-11-22T08:26:41Z" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct compute_domain cd = domain("", texts[i]);
                struct racks_decision d =
                        decided(&cd, (struct racks_facts){ .wanted = true, .confirmed = true });
                assert_int_equal(d.step, RACKS_NOTE);
                assert_int_equal(d.empty_since, NOW);
        }
        struct compute_domain cd = domain("", NOW_TEXT);
        assert_int_equal(decided(&cd, (struct racks_facts){ .wanted = true }).step, RACKS_KEEP);
        cd = domain("", "1970-01-01T00:00:01Z");
        assert_int_equal(decided(&cd, (struct racks_facts){ .wanted = true }).empty_since, 1);
}

static void only_a_computedomain_made_by_the_controller_belongs_to_a_rack(void **state) {
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

/* Somebody has deleted the ComputeDomain in the driver's namespace, which listed the nodes, while the nodes
 * were down. */
/* failure: the ComputeDomain that lists a rack's nodes is deleted while they are down -> other namespaces
 * keep theirs */
static void a_rack_whose_node_list_is_lost_may_be_down(void **state) {
        (void)state;
        struct compute_domain cd = domain("n0,n1", NULL);
        struct racks_facts f = { .wanted = true, .confirmed = true, .lost = true };
        assert_int_equal(decided(&cd, f).step, RACKS_KEEP);
        cd.rack_empty = DAY_AGO; /* the rack was empty before */
        cd.rack_nodes = "";
        assert_int_equal(decided(&cd, f).step, RACKS_DELETE);
        f.nodes = both;
        f.n_nodes = 2;
        assert_int_equal(decided(&cd, f).step, RACKS_NOTE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_check_finds_every_wrong_deletion),
                cmocka_unit_test(nodes_that_join_are_written_down_once),
                cmocka_unit_test(a_rebooting_rack_keeps_its_computedomain),
                cmocka_unit_test(the_time_is_recorded_when_the_last_node_is_gone),
                cmocka_unit_test(an_empty_rack_is_deleted_a_day_later_despite_restarts),
                cmocka_unit_test(a_rack_is_never_deleted_under_a_claim),
                cmocka_unit_test(a_stale_cache_never_deletes_a_rack),
                cmocka_unit_test(nodes_that_only_a_stale_cache_shows_are_checked_again),
                cmocka_unit_test(a_node_that_comes_back_ends_the_day),
                cmocka_unit_test(an_unwanted_computedomain_of_a_rack_is_deleted_when_unused),
                cmocka_unit_test(a_copy_made_by_a_person_is_left_unchanged),
                cmocka_unit_test(an_invalid_time_begins_the_day_now),
                cmocka_unit_test(only_a_computedomain_made_by_the_controller_belongs_to_a_rack),
                cmocka_unit_test(a_rack_whose_node_list_is_lost_may_be_down),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
