/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment with fabric objects that may lack assignments: after a restore of etcd, a recount collects
 * what runs. */
#include "assignment_world.h"

/* failure: any sign shows that the fabric object was restored -> a recount starts [etcd] */
static void each_sign_of_a_restore_starts_a_recount(void **state) {
        for (int sign = 0; sign < 6; sign++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0"), *other = add_node(w, "n1");
                add_domain(w, "d");
                other->wanted = "d";
                if (sign == 0)
                        n->report.object = "another";
                if (sign == 1)
                        n->report.seen = 12;
                if (sign == 2) {
                        n->report.domain = "d";
                        n->report.epoch = 9;
                        n->report.index = 3;
                }
                if (sign == 3)
                        w->in.rolled_back = true;
                if (sign == 4)
                        w->in.copy = true;
                if (sign == 5) {
                        w->in.object = NULL;
                        other->report.object = "";
                }
                step(w);
                if (!w->out.recount)
                        fail_msg("sign %d", sign);
                assert_int_equal(w->out.recount, w->out.epoch);
                assert_null(of(w, "d", "n1"));
                w->in.copy = false;
                w->in.object = OBJECT;
                n->report.object = other->report.object = OBJECT;
                other->report.recount = w->out.recount;
                step(w);
                assert_int_equal(w->out.n_silent, 1);
                assert_string_equal(w->out.silent[0], "n0");
                assert_null(of(w, "d", "n1"));
                n->report.recount = w->out.recount;
                step(w);
                assert_int_equal(w->out.recount, 0);
                assert_non_null(of(w, "d", "n1"));
                if (sign == 2)
                        assert_int_equal(of(w, "d", "n0")->index, 3);
                step(w);
                assert_int_equal(w->out.recount, 0);
                world_free(w);
        }
}

/* failure: a node is off, and nothing was restored -> assignments continue without it */
static void a_partition_without_signs_of_a_restore_waits_for_no_node(void **state) {
        struct world *w = *state;
        struct assignment_node *off = running(w);
        off->report = (struct assignment_report){ 0 };
        add_node(w, "n1")->wanted = "d";
        step(w);
        assert_int_equal(w->out.recount, 0);
        assert_int_equal(of(w, "d", "n1")->index, 1);
}

/* After a new version of the object, the proof that freed an index is missing until the API server confirms
 * it again. */
static void an_ended_assignment_is_not_entered_again_before_its_end_is_confirmed(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        n->wanted = NULL;
        n->released = n->dead = true;
        step(w);
        assert_null(of(w, "d", "n0"));
        n->dead = false;
        n->doubtful = true;
        other->wanted = "d";
        step(w);
        assert_false(w->out.changed || w->out.recount);
        assert_null(of(w, "d", "n1")); /* the node may still run with this index */
        n->doubtful = false;
        n->dead = true;
        step(w);
        assert_non_null(of(w, "d", "n1"));
        assert_int_equal(w->out.recount, 0);
        /* The API server contradicts the cache. */
        n->dead = false;
        step(w);
        assert_true(fabric_is_active(of(w, "d", "n1")));
        assert_int_equal(of(w, "d", "n0")->index, 0);
        assert_true(w->out.recount > 0);
}

/* failure: a node is proven gone -> no recount waits for it [etcd] */
static void a_recount_waits_for_no_node_that_is_proven_gone(void **state) {
        struct world *w = *state;
        struct assignment_node *off = running(w);
        off->report = (struct assignment_report){ 0 };
        w->in.rolled_back = true;
        step(w);
        step(w);
        assert_int_equal(w->out.n_silent, 1);
        off->dead = true;
        step(w);
        assert_int_equal(w->out.recount, 0);
}

/* failure: a Node was deleted shortly before a recount -> the recount lasts while its IMEX may run [etcd] */
static void a_recount_lasts_while_daemons_of_deleted_nodes_may_run(void **state) {
        struct world *w = *state;
        w->in.rolled_back = w->in.settling = true;
        step(w);
        step(w);
        assert_int_not_equal(w->out.recount, 0);
        w->in.settling = false;
        step(w);
        assert_int_equal(w->out.recount, 0);
}

/* failure: the fabric object is deleted after a Node vanished -> nothing is assigned while it may run [etcd]
 * */
static void a_new_object_assigns_nothing_while_a_vanished_node_may_run(void **state) {
        struct world *w = *state;
        add_domain(w, "d");
        add_node(w, "n0")->wanted = "d";
        w->in.vanished = true;
        step(w);
        assert_true(w->out.unsure);
        assert_null(of(w, "d", "n0"));
        w->in.vanished = false;
        step(w);
        assert_non_null(of(w, "d", "n0"));
}

/* failure: etcd is restored again during a recount -> another recount starts [etcd] */
static void a_second_restore_starts_another_recount(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        w->in.rolled_back = true;
        step(w);
        int64_t first = w->out.recount;
        n->report.recount = first;
        w->in.rolled_back = true;
        step(w);
        assert_true(w->out.recount > first);
        step(w);
        assert_int_equal(w->out.n_silent, 1);
}

/* failure: a backup is from an earlier recount, whose answers still exist -> another recount starts [etcd] */
static void a_restore_into_an_earlier_recount_starts_another_one(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0"), *other = add_node(w, "n1"), *third = add_node(w, "n2");
        add_domain(w, "d");
        other->wanted = "d";
        w->in.epoch = w->in.recount = 11;
        n->report.recount = other->report.recount = third->report.recount = 11;
        n->report.seen = third->report.seen = 12;
        step(w);
        assert_int_equal(w->out.recount, 13);
        assert_int_equal(w->out.n_silent, 3);
        assert_string_equal(w->out.ahead, "n0"); /* the first of both */
        assert_null(of(w, "d", "n1"));
        n->report.recount = other->report.recount = third->report.recount = 13;
        step(w);
        assert_int_equal(w->out.recount, 0);
        assert_null(w->out.ahead);
        assert_non_null(of(w, "d", "n1"));
}

/* failure: fabric object and daemon differ -> what the daemon runs counts [etcd] */
static void a_running_assignment_counts_more_than_the_object(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->report.index = 5; /* an index from an object that was restored since */
        step(w);
        assert_int_equal(of(w, "d", "n0")->index, 5);
        struct assignment_node *other = add_node(w, "n1");
        other->wanted = "d";
        other->report.domain = "d";
        other->report.index = 5;
        other->report.epoch = 11;
        step(w);
        /* Both nodes run with the index: the second one leaves. */
        assert_state(of(w, "d", "n0"), "");
        assert_state(of(w, "d", "n1"), "Leaving");
}

/* Otherwise each new version of the object would give the index to the other node, because the API server has
 * not confirmed the boot for this version yet. */
static void a_doubtful_report_takes_no_index_from_a_node_that_runs_with_it(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        other->wanted = "d";
        other->report.domain = "d";
        other->report.index = n->report.index;
        other->report.epoch = 11;
        step(w);
        assert_state(of(w, "d", "n0"), "");
        assert_state(of(w, "d", "n1"), "Leaving");
        n->doubtful = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        assert_state(of(w, "d", "n1"), "");
}

/* The object was restored. It lists an earlier IMEX domain of the node as active, but the node has no claim
 * of it. */
/* failure: a stale leader assigns a node to another IMEX domain -> what its daemon runs counts */
static void a_running_assignment_counts_more_than_another_listed_domain(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        const struct fabric_domain *was = w->in.old;
        size_t n_was = w->in.n_old;
        add_domain(w, "e");
        n->wanted = "e";
        step(w);
        leave(w, n);
        n->report.left = NULL; /* the object no longer lists it, so the daemon does not list it, either */
        n->report.n_left = 0;
        n->report.domain = "e";
        n->report.epoch = of(w, "e", "n0")->epoch;
        n->report.ready = true;
        step(w);
        w->in.old = was;
        w->in.n_old = n_was;
        n->wanted = NULL;
        step(w);
        assert_true(fabric_is_leaving(of(w, "d", "n0")));
        assert_true(fabric_is_active(of(w, "e", "n0")));
}

/* failure: a restored fabric object has an earlier assignment -> the one that a daemon runs replaces it
 * [etcd] */
static void an_overtaken_assignment_is_not_listed(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->report.epoch = 15;
        n->report.index = 4;
        step(w);
        assert_int_equal(of(w, "d", "n0")->epoch, 15);
        assert_int_equal(of(w, "d", "n0")->index, 4);
        assert_int_equal(w->out.domains[0].n_assignments, 1);
}

/* failure: a leader assigns before it notices a restore of etcd -> no epoch is listed twice [etcd] */
static void an_epoch_that_runs_in_another_domain_is_not_listed(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        add_domain(w, "e");
        n->report.domain = "e"; /* in an object that was newer than the restored one */
        step(w);
        assert_null(of(w, "d", "n0"));
        assert_int_equal(of(w, "e", "n0")->epoch, n->report.epoch);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(each_sign_of_a_restore_starts_a_recount),
                T(a_partition_without_signs_of_a_restore_waits_for_no_node),
                T(an_ended_assignment_is_not_entered_again_before_its_end_is_confirmed),
                T(a_recount_waits_for_no_node_that_is_proven_gone),
                T(a_recount_lasts_while_daemons_of_deleted_nodes_may_run),
                T(a_new_object_assigns_nothing_while_a_vanished_node_may_run),
                T(a_second_restore_starts_another_recount),
                T(a_restore_into_an_earlier_recount_starts_another_one),
                T(a_running_assignment_counts_more_than_the_object),
                T(a_doubtful_report_takes_no_index_from_a_node_that_runs_with_it),
                T(a_running_assignment_counts_more_than_another_listed_domain),
                T(an_overtaken_assignment_is_not_listed),
                T(an_epoch_that_runs_in_another_domain_is_not_listed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
