/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "rules/rollout.h"

enum { MAX = 200, NOW = 10000 };

static struct rollout_daemon list[MAX];
static enum rollout_choice choices[MAX];
static size_t n_list;

static struct rollout_daemon *add(size_t n, struct rollout_daemon d) {
        struct rollout_daemon *first = &list[n_list];
        for (size_t i = 0; i < n; i++)
                list[n_list++] = d;
        return first;
}

#define OLD                                                                                                  \
        (struct rollout_daemon) {                                                                            \
                .outdated = true, .node_ready = true, .idle = true, .reported = true, .imex_starts = true,   \
                .started = 1                                                                                 \
        }
#define NEW(age)                                                                                             \
        (struct rollout_daemon) {                                                                            \
                .node_ready = true, .idle = true, .reported = true, .imex_starts = true,                     \
                .started = NOW - (age)                                                                       \
        }
#define CRASHING                                                                                             \
        (struct rollout_daemon) {                                                                            \
                .node_ready = true, .idle = true, .crashing = true                                           \
        }

static struct rollout make(void) {
        struct rollout r;
        rollout_make(list, n_list, NOW, choices, &r);
        return r;
}

static size_t chosen(enum rollout_choice c) {
        size_t n = 0;
        for (size_t i = 0; i < n_list; i++)
                n += choices[i] == c;
        return n;
}

static int begin(void **state) {
        n_list = 0;
        memset(list, 0, sizeof list);
        return 0;
}

static void a_new_template_is_tried_on_one_idle_node(void **state) {
        add(50, OLD);
        list[0].idle = false;
        struct rollout r = make();
        assert_false(r.proven);
        assert_int_equal(r.n_outdated, 50);
        assert_int_equal(r.n_busy, 1);
        assert_int_equal(choices[0], ROLLOUT_BUSY);
        assert_int_equal(choices[1], ROLLOUT_REPLACE);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        assert_int_equal(chosen(ROLLOUT_WAIT), 48);
        assert_int_equal(r.recheck_s, 0);
}

static void the_second_daemon_waits_until_the_first_has_run_for_a_minute(void **state) {
        add(50, OLD);
        struct rollout_daemon *first = add(1, NEW(59));
        struct rollout r = make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        assert_int_equal(r.recheck_s, 1);
        first->started = 0;
        assert_int_equal(make().recheck_s, 0);
        first->started = NOW - ROLLOUT_HEALTHY_S;
        r = make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 4); /* a tenth of 51 */
        assert_false(r.proven);
}

static void a_daemon_that_has_not_reported_or_whose_imex_does_not_start_is_not_healthy(void **state) {
        add(50, OLD);
        struct rollout_daemon *first = add(1, NEW(1000));
        first->reported = false;
        assert_int_equal(make().recheck_s, 0);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        *first = NEW(1000);
        first->imex_starts = false;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        *first = NEW(1000);
        first->started = 0; /* unknown */
        assert_false(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
}

static void the_rollout_is_decided_again_when_the_first_daemon_may_be_healthy(void **state) {
        for (int64_t first = 10; first <= 11; first++) {
                n_list = 0;
                add(1, NEW(first));
                add(1, NEW(21 - first));
                assert_int_equal(make().recheck_s, ROLLOUT_HEALTHY_S - 11);
        }
}

/* The sanitizer sees a read behind the end of the lists. */
static void no_list_is_read_beyond_its_end(void **state) {
        struct rollout_daemon *one = xnew_n(struct rollout_daemon, 1);
        enum rollout_choice *choice = xnew_n(enum rollout_choice, 1);
        struct rollout r;
        *one = OLD;
        rollout_make(one, 1, NOW, choice, &r);
        assert_int_equal(*choice, ROLLOUT_REPLACE);
        free(one);
        free(choice);
}

static void a_tenth_is_not_exceeded_until_all_of_it_is_healthy(void **state) {
        add(90, OLD);
        add(9, NEW(100));
        struct rollout_daemon *last = add(1, NEW(10));
        assert_false(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        *last = NEW(60);
        assert_true(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 90);
}

/* In any order in which Pods are created and crash. */
static void a_crashing_image_reaches_at_most_a_tenth(void **state) {
        for (size_t nodes = 1; nodes < MAX; nodes += 7) {
                size_t tenth = nodes / 10 > 1 ? nodes / 10 : 1, reached = 0, turns = 0;
                n_list = 0;
                add(nodes, OLD);
                do {
                        make();
                        reached = 0;
                        for (size_t i = 0; i < nodes; i++) {
                                if (choices[i] == ROLLOUT_REPLACE)
                                        list[i] = CRASHING;
                                reached += !list[i].outdated;
                        }
                } while (++turns < nodes + 2);
                assert_int_equal(reached, tenth);
                assert_int_equal(make().n_crashing, tenth);
        }
}

/* failure: a daemon that is replaced does not end -> after ten minutes the rollout continues [upgrade] */
static void a_daemon_that_does_not_end_stops_no_rollout(void **state) {
        add(30, OLD);
        list[0].removed = true;
        assert_int_equal(make().n_crashing, 0);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        list[0].hangs = true;
        assert_int_equal(make().n_crashing, 1);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        /* A pod may use it for weeks. */
        list[0].idle = false;
        assert_int_equal(make().n_crashing, 0);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
}

static void an_image_that_crashes_on_one_broken_node_reaches_the_others(void **state) {
        add(1, CRASHING);
        add(40, OLD);
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        list[1] = NEW(60);
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 2);
        list[2] = list[3] = list[4] = NEW(60);
        assert_true(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 36);
}

static void a_rollout_stops_when_more_than_a_tenth_crash(void **state) {
        add(60, OLD);
        add(30, NEW(600));
        add(9, CRASHING);
        assert_true(make().proven);
        add(1, CRASHING);
        assert_true(make().proven);
        add(1, CRASHING);
        assert_false(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        assert_int_equal(make().n_crashing, 11);
}

static void a_daemon_of_an_earlier_template_that_crashes_is_replaced_at_once(void **state) {
        add(20, OLD);
        add(1, NEW(1));
        list[4].crashing = list[7].crashing = true;
        make();
        assert_int_equal(choices[4], ROLLOUT_REPLACE);
        assert_int_equal(choices[7], ROLLOUT_REPLACE);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 2);
        list[7].idle = false;
        make();
        assert_int_equal(choices[7], ROLLOUT_BUSY);
}

/* Two upgrades in a row, both to images that crash. */
static void the_newest_template_is_tried_on_a_crashing_daemon(void **state) {
        add(4, OLD);
        list[2].crashing = true;
        make();
        assert_int_equal(choices[2], ROLLOUT_REPLACE);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        list[2] = CRASHING;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
}

static void nodes_that_are_not_ready_are_skipped_and_not_waited_for(void **state) {
        add(30, OLD);
        list[0].node_ready = false;
        add(1, CRASHING)->node_ready = false;
        add(1, OLD)->removed = true;
        list[31].node_ready = false;
        struct rollout r = make();
        assert_int_equal(choices[0], ROLLOUT_SKIP);
        assert_int_equal(choices[30], ROLLOUT_KEEP);
        assert_int_equal(choices[31], ROLLOUT_SKIP);
        assert_int_equal(choices[1], ROLLOUT_REPLACE);
        assert_int_equal(r.n_outdated, 29);
        assert_int_equal(r.n_crashing, 0);
}

/* This includes daemons that the DaemonSet controller creates on new nodes. */
static void daemons_on_new_nodes_count_towards_the_tenth(void **state) {
        add(20, OLD);
        add(3, NEW(5));
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        for (size_t i = 20; i < 23; i++)
                list[i] = NEW(70);
        assert_true(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 20);
}

static void a_daemon_with_a_requested_mark_is_replaced_first(void **state) {
        add(50, OLD);
        list[0].idle = false;
        make();
        assert_int_equal(choices[1], ROLLOUT_REPLACE);
        list[1].asked = true;
        list[0].idle = true;
        make();
        assert_int_equal(choices[0], ROLLOUT_WAIT);
        assert_int_equal(choices[1], ROLLOUT_REPLACE);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
}

static void the_next_daemon_waits_while_one_is_being_replaced(void **state) {
        add(50, OLD);
        list[0].removed = true;
        assert_int_equal(make().n_busy, 0);
        assert_int_equal(choices[0], ROLLOUT_KEEP);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
}

/* etcd was restored, and its Pod exists again. Its earlier report does not count. */
static void a_daemon_with_an_unprepared_claim_is_replaced_at_once_and_proves_nothing(void **state) {
        add(2, OLD);
        add(1, NEW(ROLLOUT_HEALTHY_S));
        list[0].spent = list[2].spent = true;
        list[0].idle = false;
        struct rollout r = make();
        assert_false(r.proven);
        assert_int_equal(choices[0], ROLLOUT_REPLACE);
        assert_int_equal(choices[1], ROLLOUT_WAIT);
        assert_int_equal(choices[2], ROLLOUT_REPLACE);
        list[0].removed = true;
        make();
        assert_int_equal(choices[0], ROLLOUT_KEEP);
}

/* The pod that it serves may run for weeks, and new pods elsewhere may wait for fresh daemons. */
static void the_rollout_does_not_wait_for_a_terminating_daemon_that_serves(void **state) {
        add(3, OLD);
        list[0].removed = true;
        list[0].idle = false;
        make();
        assert_int_equal(choices[0], ROLLOUT_KEEP);
        assert_int_equal(choices[1], ROLLOUT_REPLACE);
        assert_int_equal(choices[2], ROLLOUT_WAIT);
        list[0].outdated = false; /* it can prove the newest template like any other */
        struct rollout r = make();
        assert_true(r.proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 2);
}

static void used_daemons_are_replaced_at_once_while_the_template_is_proven(void **state) {
        add(10, NEW(100));
        list[3].fresh_wanted = list[4].fresh_wanted = list[5].fresh_wanted = true;
        list[4].idle = false;
        assert_true(make().proven);
        assert_int_equal(choices[3], ROLLOUT_REPLACE);
        assert_int_equal(choices[4], ROLLOUT_BUSY);
        assert_int_equal(choices[5], ROLLOUT_REPLACE);
        assert_int_equal(chosen(ROLLOUT_KEEP), 7);
}

/* failure: more than a tenth of the daemons crash on their hosts -> used daemons are replaced, a tenth at a
 * time */
static void used_daemons_are_replaced_although_others_crash(void **state) {
        add(3, CRASHING);
        add(17, NEW(600));
        list[4].fresh_wanted = list[5].fresh_wanted = list[6].fresh_wanted = true;
        assert_false(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 2);
        list[4].removed = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        list[4] = NEW(5);
        list[4].reported = false;
        list[5].removed = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        assert_int_equal(choices[6], ROLLOUT_WAIT);
        list[4].reported = true;
        list[4].started = 0;
        make();
        assert_int_equal(choices[6], ROLLOUT_WAIT);
        list[4].started = 1;
        make();
        assert_int_equal(choices[6], ROLLOUT_REPLACE);
}

/* failure: a tenth of the daemons crash during a rollout -> used daemons wait, because the template can still
 * be proven */
static void used_daemons_wait_while_a_tenth_crashes_in_a_rollout(void **state) {
        add(10, OLD);
        add(1, CRASHING);
        add(1, NEW(3))->fresh_wanted = true;
        make();
        assert_int_equal(choices[11], ROLLOUT_WAIT);
        add(1, CRASHING);
        make();
        assert_int_equal(choices[11], ROLLOUT_REPLACE);
}

/* failure: the leader changes -> used daemons are replaced at once, because the template is not new
 * [upgrade] */
static void a_used_daemon_is_replaced_before_the_new_leader_has_seen_healthy_ones(void **state) {
        add(10, NEW(3));
        list[3].fresh_wanted = list[4].fresh_wanted = true;
        assert_false(make().proven);
        assert_int_equal(choices[3], ROLLOUT_REPLACE);
        assert_int_equal(choices[4], ROLLOUT_WAIT);
}

/* failure: 18 nodes leave a ComputeDomain after less than a minute -> their daemons are replaced at once */
static void used_daemons_are_replaced_at_once_after_they_have_served(void **state) {
        add(18, NEW(3));
        for (size_t i = 0; i < 18; i++)
                list[i].served = list[i].fresh_wanted = true;
        assert_false(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 18);
        for (size_t i = 0; i < 17; i++)
                list[i].removed = true;
        make();
        assert_int_equal(choices[17], ROLLOUT_REPLACE);
        list[17].removed = true;
        list[16] = NEW(3); /* it has not served yet, and proves nothing */
        list[16].fresh_wanted = true;
        make();
        assert_int_equal(choices[16], ROLLOUT_WAIT);
}

/* failure: a daemon serves and crashes -> it proves nothing, also while it serves in a rollout [upgrade] */
static void a_daemon_that_has_served_brings_its_template_to_no_other_node(void **state) {
        add(20, OLD);
        struct rollout_daemon *first = add(1, NEW(3));
        first->served = first->fresh_wanted = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        n_list = 0;
        add(18, NEW(3));
        list[0].served = list[0].crashing = list[1].crashing = true;
        list[2].fresh_wanted = list[3].fresh_wanted = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        list[1].crashing = false;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
        list[1].served = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 2);
}

/* failure: daemons are used and left during a rollout -> they prove the template before they are replaced
 * [upgrade] */
static void a_used_daemon_first_proves_the_template_of_a_rollout(void **state) {
        add(10, OLD);
        struct rollout_daemon *first = add(1, NEW(59));
        first->fresh_wanted = true;
        make();
        assert_int_equal(chosen(ROLLOUT_REPLACE), 0);
        first->started = NOW - ROLLOUT_HEALTHY_S;
        assert_true(make().proven);
        assert_int_equal(chosen(ROLLOUT_REPLACE), 11);
}

/* The image starts, and crashes later. */
static void used_daemons_of_a_crashing_image_bring_it_to_no_other_node(void **state) {
        add(40, OLD)->fresh_wanted = true;
        add(6, CRASHING);
        struct rollout_daemon *used = add(5, NEW(600));
        for (size_t i = 0; i < 5; i++) {
                used[i].fresh_wanted = true;
                make();
                assert_int_equal(choices[46 + i], ROLLOUT_REPLACE);
                assert_int_equal(chosen(ROLLOUT_REPLACE), 1);
                used[i] = CRASHING;
        }
        assert_int_equal(make().n_crashing, 11);
}

static void a_cluster_without_daemons_has_no_rollout(void **state) {
        struct rollout r = make();
        assert_false(r.proven);
        assert_int_equal(r.n_outdated, 0);
        assert_int_equal(r.recheck_s, 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup(name, begin)
        const struct CMUnitTest tests[] = {
                T(a_new_template_is_tried_on_one_idle_node),
                T(the_second_daemon_waits_until_the_first_has_run_for_a_minute),
                T(a_daemon_that_has_not_reported_or_whose_imex_does_not_start_is_not_healthy),
                T(the_rollout_is_decided_again_when_the_first_daemon_may_be_healthy),
                T(no_list_is_read_beyond_its_end),
                T(a_tenth_is_not_exceeded_until_all_of_it_is_healthy),
                T(a_crashing_image_reaches_at_most_a_tenth),
                T(a_daemon_that_does_not_end_stops_no_rollout),
                T(an_image_that_crashes_on_one_broken_node_reaches_the_others),
                T(a_rollout_stops_when_more_than_a_tenth_crash),
                T(a_daemon_of_an_earlier_template_that_crashes_is_replaced_at_once),
                T(the_newest_template_is_tried_on_a_crashing_daemon),
                T(nodes_that_are_not_ready_are_skipped_and_not_waited_for),
                T(daemons_on_new_nodes_count_towards_the_tenth),
                T(a_daemon_with_a_requested_mark_is_replaced_first),
                T(the_next_daemon_waits_while_one_is_being_replaced),
                T(a_daemon_with_an_unprepared_claim_is_replaced_at_once_and_proves_nothing),
                T(the_rollout_does_not_wait_for_a_terminating_daemon_that_serves),
                T(used_daemons_are_replaced_at_once_while_the_template_is_proven),
                T(used_daemons_are_replaced_although_others_crash),
                T(used_daemons_wait_while_a_tenth_crashes_in_a_rollout),
                T(a_used_daemon_is_replaced_before_the_new_leader_has_seen_healthy_ones),
                T(used_daemons_are_replaced_at_once_after_they_have_served),
                T(a_daemon_that_has_served_brings_its_template_to_no_other_node),
                T(a_used_daemon_first_proves_the_template_of_a_rollout),
                T(used_daemons_of_a_crashing_image_bring_it_to_no_other_node),
                T(a_cluster_without_daemons_has_no_rollout),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
