/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/decision: which assignments a daemon accepts, keeps, leaves, and reports as left. */
#include "decision_world.h"

/* ---- which assignments it accepts ---- */

/* failure: several assignments list a node -> only the one with the daemon's claim and boot starts IMEX */
static void a_daemon_accepts_the_assignment_with_its_claim_and_boot(void **state) {
        struct world *w = *state;

        assert_int_equal(decide(w), DECISION_ENTER);
        assert_string_equal(w->d.assignment.domain, UID_A);
        assert_int_equal(w->d.assignment.index, 2);
        assert_int_equal(w->d.assignment.epoch, 5);
        assert_int_equal(w->d.assignment.imex.port, 28001);
        assert_int_equal(w->d.memory.closed, 5);
        assert_int_equal(w->d.memory.seen, 9);
        assert_int_equal(w->d.memory.n_left, 0);
}

static void another_assignment_never_runs_and_is_reported_as_left(void **state) {
        struct world *w = *state;
        static const struct {
                const char *claim, *boot_id, *state;
                int64_t closed;
        } cases[] = {
                { "another", BOOT, NULL, 0 }, /* of an earlier daemon of the node */
                { NULL, BOOT, NULL, 0 },      { CLAIM, "another", NULL, 0 }, /* from before the last reboot */
                { CLAIM, NULL, NULL, 0 },     { CLAIM, BOOT, "Leaving", 0 },
                { CLAIM, BOOT, "Ending", 0 }, { CLAIM, BOOT, NULL, 5 }, /* the daemon has left it */
                { CLAIM, BOOT, NULL, 7 },
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->in_a[0].claim = cases[i].claim;
                w->in_a[0].boot_id = cases[i].boot_id;
                w->in_a[0].state = cases[i].state;
                w->memory.closed = cases[i].closed;
                if (decide(w) != DECISION_STAY)
                        fail_msg("case %zu", i);
                assert_left(w, 5);
                assert_int_equal(w->d.memory.closed, i == 7 ? 7 : 5);
        }
}

/* A controller that does not know about the restore may assign what another node, which cannot report, still
 * has. */
/* failure: a daemon notices a restore of etcd -> it accepts no assignment and demands a recount [etcd] */
static void after_a_restore_a_daemon_accepts_nothing_and_demands_a_recount(void **state) {
        struct world *w = *state;

        w->in.restored = true;
        w->memory.seen = 9; /* equal to the object's, which the controller has increased again since */
        assert_int_equal(decide(w), DECISION_STAY);
        assert_left(w, 5);
        assert_int_equal(w->d.memory.closed, 5);
        assert_int_equal(w->d.memory.seen, 10);
        proceed(w, DECISION_IMEX_NONE);
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.seen, 10); /* once is enough, ... */
        w->fabric.epoch = 10;
        decide(w);
        assert_int_equal(w->d.memory.seen, 11); /* ... until the object has passed it without a recount */
        w->fabric.recount = 4; /* a recount that began earlier proves nothing, and ends first */
        decide(w);
        assert_int_equal(w->d.memory.seen, 10);
        w->fabric.recount = 0;
        decide(w);
        proceed(w, DECISION_IMEX_NONE);
        w->in.restored = false;
        assert_int_equal(decide(w), DECISION_STAY); /* an epoch that it has reported as left never runs */
        w->in_a[0].epoch = 12;
        assert_int_equal(decide(w), DECISION_ENTER);
}

static void after_a_restore_imex_continues(void **state) {
        struct world *w = *state;

        serve(w);
        w->in.restored = true;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
        assert_string_equal(w->d.memory.now.domain, UID_A);
}

/* The fabric object does not list it any longer, so it is not reported. Then a restore brings it back. */
/* failure: a restore lists an epoch that the daemon has left -> the daemon never accepts it again [etcd] */
static void a_left_epoch_is_never_taken(void **state) {
        struct world *w = *state;

        w->in_a[0].state = "Leaving";
        assert_int_equal(decide(w), DECISION_STAY);
        assert_left(w, 5);
        proceed(w, DECISION_IMEX_NONE);
        w->domains[0].n_assignments = 0;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
        proceed(w, DECISION_IMEX_NONE);
        w->in_a[0].state = NULL;
        w->domains[0].n_assignments = 1;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_left(w, 5);
        w->in_a[0].epoch = 6;
        assert_int_equal(decide(w), DECISION_ENTER);
}

static void the_next_assignment_is_not_reported_as_left(void **state) {
        struct world *w = *state;

        serve(w);
        w->in_a[0].state = "Leaving";
        w->in_b[0] = assignment("n0", 0, 6);
        w->domains[1].n_assignments = 1;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
        w->in.use = IMEX_USE_NONE;
        w->in.withdrawn = true;
        assert_int_equal(decide(w), DECISION_LEAVE);
        proceed(w, DECISION_IMEX_ENDED);
        assert_int_equal(decide(w), DECISION_FORGET);
        proceed(w, DECISION_IMEX_NONE);
        assert_int_equal(decide(w), DECISION_ENTER);
        assert_string_equal(w->d.assignment.domain, UID_B);
        assert_left(w, 5);
}

/* A damaged or manually created fabric object. */
/* failure: a damaged fabric object lists the running epoch in another IMEX domain -> it is never reported as
 * left */
static void the_epoch_that_runs_is_never_left(void **state) {
        struct world *w = *state;

        serve(w);
        w->domains[0].n_assignments = 0;
        w->in_b[0] = assignment("n0", 0, 5);
        w->domains[1].n_assignments = 1;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
}

static void a_report_has_a_limit_of_epochs(void **state) {
        struct world *w = *state;
        struct fabric_assignment many[DAEMON_REPORT_LEFT_MAX + 10];

        for (int i = 0; i < DAEMON_REPORT_LEFT_MAX + 10; i++) {
                many[i] = assignment("n0", 0, 10 + i);
                many[i].claim = "another";
        }
        w->domains[0].assignments = many;
        w->domains[0].n_assignments = ARRAY_LEN(many);
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, DAEMON_REPORT_LEFT_MAX);
        assert_int_equal(w->d.memory.closed, 10 + DAEMON_REPORT_LEFT_MAX + 9);
}

/* failure: an assignment has an impossible index, name or port -> the daemon does not accept it */
static void an_impossible_assignment_is_not_taken(void **state) {
        struct world *w = *state;
        struct fabric_domain good = w->domains[0];

        for (int i = 0; i < 8; i++) {
                w->domains[0] = good;
                w->in_a[0] = assignment("n0", i == 0 ? 4 : i == 1 ? -1 : 2, 5);
                if (i == 2)
                        w->domains[0].owner.uid = "../x";
                if (i == 3)
                        w->domains[0].imex.infix = "a/b";
                if (i == 4)
                        w->domains[0].imex.port = 0;
                if (i == 5)
                        w->domains[0].imex.port = 65536;
                if (i == 6)
                        w->domains[0].imex.slots = 0;
                if (i == 7)
                        w->domains[0].imex.slots = IMEX_SLOTS_MAX + 1;
                if (decide(w) != DECISION_STAY)
                        fail_msg("case %d", i);
                assert_non_null(strstr(w->d.why, "invalid"));
                assert_int_equal(w->d.memory.n_left, 0);
        }
}

static void a_reserved_index_is_neither_taken_nor_left(void **state) {
        struct world *w = *state;

        w->in_a[0] = (struct fabric_assignment){ .node = "n0", .index = 2, .epoch = 5, .state = "Reserved" };
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
}

static void epochs_that_the_object_no_longer_lists_are_not_reported(void **state) {
        struct world *w = *state;

        w->memory.left = (int64_t[]){ 3, 4 };
        w->memory.n_left = 2;
        w->domains[0].n_assignments = 0;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_int_equal(w->d.memory.n_left, 0);
}

static void the_earlier_of_two_assignments_is_accepted(void **state) {
        struct world *w = *state;

        w->in_b[0] = assignment("n0", 0, 4);
        w->domains[1].n_assignments = 1;
        assert_int_equal(decide(w), DECISION_ENTER);
        assert_string_equal(w->d.assignment.domain, UID_B);
        w->in_b[0].epoch = 6;
        assert_int_equal(decide(w), DECISION_ENTER);
        assert_string_equal(w->d.assignment.domain, UID_A);
}

/* No epoch up to the later one is accepted again. */
static void an_accepted_epoch_may_be_lower_than_a_left_one(void **state) {
        struct world *w = *state;

        w->in_b[0] = assignment("n0", 0, 6);
        w->in_b[0].claim = "another";
        w->domains[1].n_assignments = 1;
        assert_int_equal(decide(w), DECISION_ENTER);
        assert_int_equal(w->d.assignment.epoch, 5);
        assert_left(w, 6);
        assert_int_equal(w->d.memory.closed, 6);
}

static void without_the_object_nothing_starts_and_nothing_is_forgotten(void **state) {
        struct world *w = *state;

        w->memory.left = (int64_t[]){ 3 };
        w->memory.n_left = 1;
        w->in.fabric = NULL;
        assert_int_equal(decide(w), DECISION_STAY);
        assert_left(w, 3);
        assert_string_equal(w->d.why, "the fabric object of the partition does not exist yet");
}

/* failure: a node is idle -> its daemon reports whether an index or a claim is missing [standing] */
static void an_idle_node_reports_whether_it_lacks_an_index_or_a_claim(void **state) {
        struct world *w = *state;
        struct condition full = { .type = FABRIC_DOMAIN_FULL, .status = "True" };

        w->fabric.conditions = &full;
        w->fabric.n_conditions = 1;
        w->domains[0].n_assignments = 0;
        decide(w);
        assert_non_null(strstr(w->d.why, "DomainFull"));
        full.status = "False";
        decide(w);
        assert_string_equal(w->d.why, "no IMEX domain needs this node");
}

/* failure: one node has seen a far higher epoch than the fabric object has -> its daemon advises to
 * reboot the node [etcd] */
static void a_node_that_has_seen_a_far_higher_epoch_reports_it(void **state) {
        struct world *w = *state;

        w->domains[0].n_assignments = 0;
        for (int far = 0; far < 2; far++) {
                w->memory.seen = w->fabric.epoch + DAEMON_REPORT_EPOCHS_AHEAD + far;
                decide(w);
                assert_int_equal(strstr(w->d.why, "until it reboots") != NULL, far);
                assert_int_equal(w->d.needs_reboot, far);
        }
}

/* failure: the node of a running IMEX has seen a far higher epoch -> IMEX continues, and its daemon advises a
 * reboot [etcd] */
static void a_running_node_that_has_seen_a_far_higher_epoch_reports_it(void **state) {
        struct world *w = *state;

        w->domains[0].n_assignments = 0;
        w->memory.now = (struct decision_assignment){ UID_A, 2, 5, w->domains[0].imex };
        w->memory.closed = 5;
        w->memory.ready = true;
        w->in.imex = DECISION_IMEX_READY;
        for (int far = 0; far < 2; far++) {
                w->memory.seen = w->fabric.epoch + DAEMON_REPORT_EPOCHS_AHEAD + far;
                assert_int_equal(decide(w), DECISION_STAY);
                assert_int_equal(strstr(w->d.why, "until it reboots") != NULL, far);
                assert_int_equal(strstr(w->d.why, "IMEX continues") != NULL, !far);
                assert_int_equal(w->d.needs_reboot, far);
        }
        w->domains[0].n_assignments = 1; /* its assignment counts */
        decide(w);
        assert_false(w->d.needs_reboot);
}

static void a_recount_and_the_highest_epoch_are_remembered(void **state) {
        struct world *w = *state;

        w->fabric.recount = 9;
        decide(w);
        assert_int_equal(w->d.memory.recount, 9);
        w->memory.recount = 12;
        w->memory.seen = 20;
        decide(w);
        assert_int_equal(w->d.memory.recount, 12);
        assert_int_equal(w->d.memory.seen, 20);
}

/* ---- what stops IMEX ---- */

/* ---- the other nodes ---- */

/* failure: a peer is leaving -> its address is no longer used */
static void peers_have_an_index_and_a_leaving_peer_has_no_address(void **state) {
        struct world *w = *state;
        struct imex_peer *peers;
        size_t n;

        w->in_a[1] = assignment("n1", 0, 6);
        w->in_a[2] = assignment("n2", 1, 7);
        w->in_a[2].state = "Leaving";
        w->domains[0].n_assignments = 3;
        serve(w);
        assert_true(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
        assert_int_equal(n, 2);
        assert_string_equal(peers[0].node, "n1");
        assert_string_equal(peers[0].ip, "10.0.0.1");
        assert_string_equal(peers[1].node, "n2");
        assert_string_equal(peers[1].ip, "");
        w->in_a[2] = (struct fabric_assignment){ .node = "n2", .index = 1, .epoch = 7, .state = "Reserved" };
        assert_true(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
        assert_int_equal(n, 2);
        assert_string_equal(peers[1].boot_id, "");
        assert_string_equal(peers[1].ip, "");
        /* Another node has its index now. */
        w->in_a[2].index = 0;
        assert_true(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
        assert_int_equal(n, 1);
        w->fabric.table_of = "another";
        assert_false(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
}

/* A damaged or manually created fabric object. */
static void the_first_of_two_peers_with_one_index_or_name_counts(void **state) {
        struct world *w = *state;
        struct imex_peer *peers;
        size_t n;

        w->in_a[1] = assignment("n1", 0, 6);
        w->in_a[2] = assignment("n1", 1, 7);
        w->domains[0].n_assignments = 3;
        serve(w);
        assert_true(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
        assert_int_equal(n, 1);
        assert_int_equal(peers[0].index, 0);
        w->in_a[2] = assignment("n2", 2, 7); /* our own index */
        assert_true(decision_peers(&w->fabric, "n0", &w->memory.now, w->a, &peers, &n));
        assert_int_equal(n, 1);
}

/* ---- memory ---- */

static void a_left_epoch_replaces_the_lowest_one_at_the_limit(void **state) {
        struct world *w = *state;
        int64_t many[DAEMON_REPORT_LEFT_MAX];
        struct decision_memory m;

        for (int i = 0; i < DAEMON_REPORT_LEFT_MAX; i++)
                many[i] = 100 + i;
        serve(w);
        w->memory.left = many;
        w->memory.n_left = 2;
        w->memory.closed = 101;
        decision_left(&w->memory, w->a, &m);
        assert_int_equal(m.n_left, 3);
        assert_int_equal(m.left[1], 101);
        assert_int_equal(m.left[2], 5);
        assert_int_equal(m.closed, 101);
        w->memory.n_left = DAEMON_REPORT_LEFT_MAX;
        w->memory.now.epoch = 1000;
        many[0] = 110;
        many[10] = 100; /* the lowest need not be the first */
        decision_left(&w->memory, w->a, &m);
        assert_int_equal(m.n_left, DAEMON_REPORT_LEFT_MAX);
        assert_int_equal(m.left[0], 110);
        assert_int_equal(m.left[10], 111);
        assert_int_equal(m.left[DAEMON_REPORT_LEFT_MAX - 2], 100 + DAEMON_REPORT_LEFT_MAX - 1);
        assert_int_equal(m.left[DAEMON_REPORT_LEFT_MAX - 1], 1000);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_daemon_accepts_the_assignment_with_its_claim_and_boot),
                T(another_assignment_never_runs_and_is_reported_as_left),
                T(after_a_restore_a_daemon_accepts_nothing_and_demands_a_recount),
                T(after_a_restore_imex_continues),
                T(a_left_epoch_is_never_taken),
                T(the_next_assignment_is_not_reported_as_left),
                T(the_epoch_that_runs_is_never_left),
                T(a_report_has_a_limit_of_epochs),
                T(an_impossible_assignment_is_not_taken),
                T(a_reserved_index_is_neither_taken_nor_left),
                T(epochs_that_the_object_no_longer_lists_are_not_reported),
                T(the_earlier_of_two_assignments_is_accepted),
                T(an_accepted_epoch_may_be_lower_than_a_left_one),
                T(without_the_object_nothing_starts_and_nothing_is_forgotten),
                T(an_idle_node_reports_whether_it_lacks_an_index_or_a_claim),
                T(a_node_that_has_seen_a_far_higher_epoch_reports_it),
                T(a_running_node_that_has_seen_a_far_higher_epoch_reports_it),
                T(a_recount_and_the_highest_epoch_are_remembered),
                T(peers_have_an_index_and_a_leaving_peer_has_no_address),
                T(the_first_of_two_peers_with_one_index_or_name_counts),
                T(a_left_epoch_replaces_the_lowest_one_at_the_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
