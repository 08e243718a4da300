/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment at its limits: objects that were edited by hand, missing facts, reports with impossible
 * numbers, and a full object. */
#include "assignment_objects.h"

/* ---- unknown facts prove nothing ---- */

/* failure: an assignment lacks its claim or boot ID -> it does not end for that reason */
static void an_assignment_without_claim_or_boot_id_does_not_end_by_their_absence(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        struct fabric_assignment x = { .node = "n0", .index = 2, .epoch = 15 };
        add_domain(w, "d");
        write_object(w, &x, 1);
        n->wanted = "d";
        n->boot_id = "boot-n0";
        n->unprepared = "claim-before";
        step(w);
        assert_state(of(w, "d", "n0"), "");
        assert_int_equal(of(w, "d", "n0")->epoch, 15);
        n->wanted = NULL;
        n->released = true;
        step(w);
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
}

static void an_epoch_that_another_pod_of_the_node_has_left_has_ended(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        n->report = (struct assignment_report){ .pod_uid = "pod-2", .claim = "claim-2", .object = OBJECT };
        n->more_left = (int64_t[]){ 5, of(w, "d", "n0")->epoch };
        n->n_more_left = 1;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        n->n_more_left = 2;
        step(w);
        assert_null(of(w, "d", "n0"));
}

static void an_assignment_stays_while_neither_claims_nor_a_report_are_seen(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->report = (struct assignment_report){ 0 };
        step(w);
        assert_state(of(w, "d", "n0"), "");
}

static void a_doubtful_node_gets_no_assignment(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        other->wanted = "d";
        other->doubtful = true;
        step(w);
        assert_null(of(w, "d", "n1"));
        other->doubtful = false;
        n->doubtful = true; /* the object lists what it runs, so no answer is needed */
        step(w);
        assert_false(w->out.unsure);
        assert_non_null(of(w, "d", "n1"));
}

static void a_node_without_an_address_is_listed_without_one(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->wanted = "d";
        n->ip = "";
        step(w);
        assert_non_null(of(w, "d", "n0"));
        assert_null(of(w, "d", "n0")->ip);
}

/* failure: a node's report does not count during a recount -> the recount waits for it [etcd] */
static void a_recount_waits_for_a_node_whose_report_does_not_count(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        w->in.rolled_back = true;
        step(w);
        n->report.recount = w->out.recount;
        n->trust = ASSIGNMENT_TRUST_NONE;
        step(w);
        assert_int_equal(w->out.n_silent, 1);
        n->trust = ASSIGNMENT_TRUST_RESERVE;
        step(w);
        assert_int_equal(w->out.recount, 0);
}

/* The object was restored, and only an idle daemon reports that it has seen a later epoch. The object takes
 * over this epoch at once, so the sign would be lost later. */
/* failure: any daemon has seen a later epoch than the fabric object -> a recount starts [etcd] */
static void a_later_epoch_on_any_node_is_a_sign_of_a_restore(void **state) {
        for (int i = 0; i < 4; i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0"), *silent = add_node(w, "n1");
                add_domain(w, "d");
                n->wanted = "d";
                n->report.seen = 12;
                n->dead = i == 1;
                n->doubtful = i == 2;
                if (i != 3)
                        n->trust = ASSIGNMENT_TRUST_RESERVE;
                silent->report = (struct assignment_report){ 0 };
                step(w);
                if (!w->out.recount)
                        fail_msg("case %d", i);
                n->dead = n->doubtful = false;
                n->trust = ASSIGNMENT_TRUST_FULL;
                n->report.recount = w->out.recount;
                step(w);
                assert_null(of(w, "d", "n0"));
                assert_int_equal(w->out.n_silent, 1);
                assert_string_equal(w->out.silent[0], "n1");
                world_free(w);
        }
        (void)state;
}

/* ---- reports of ended epochs ---- */

/* failure: a daemon reports an epoch that has ended -> it is not entered again */
static void an_ended_epoch_is_not_entered_again(void **state) {
        static const int64_t left = 9;
        for (int proof = 0; proof < 4; proof++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0");
                add_domain(w, "d");
                add_node(w, "n1")->wanted = "d";
                n->report.domain = "d";
                n->report.index = 2;
                n->report.epoch = 9;
                if (proof == 0)
                        n->unprepared = n->report.claim;
                if (proof == 1)
                        n->boot_id = "a later boot";
                if (proof == 2)
                        n->dead = true;
                if (proof == 3) { /* the report contradicts itself: a left epoch never runs again */
                        n->report.left = &left;
                        n->report.n_left = 1;
                }
                step(w);
                if (of(w, "d", "n0") || w->out.recount)
                        fail_msg("proof %d", proof);
                assert_int_equal(of(w, "d", "n1")->index, 0);
                world_free(w);
        }
        (void)state;
}

/* failure: a report names an epoch as running and left -> it has ended */
static void an_epoch_that_a_report_names_as_running_and_left_has_ended(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        n->report.left = &n->report.epoch;
        n->report.n_left = 1;
        step(w);
        assert_null(of(w, "d", "n0"));
}

/* The object was restored. It reserves an index with which another node may run. */
/* failure: a restored fabric object reserves an index that another node may run -> the reservation ends
 * [etcd] */
static void a_reservation_yields_to_a_node_that_may_run_with_its_index(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = {
                { .node = "n0", .index = 1, .epoch = 15, .state = "Reserved" },
                { .node = "n1", .index = 1, .epoch = 16, .claim = "claim-n1", .boot_id = "boot-n1" }
        };
        add_node(w, "n0")->wanted = "d";
        add_node(w, "n1")->wanted = "d";
        add_domain(w, "d");
        write_object(w, list, 2);
        step(w);
        assert_state(of(w, "d", "n1"), "");
        assert_int_equal(of(w, "d", "n1")->epoch, 16);
        assert_int_equal(of(w, "d", "n0")->index, 0);
}

static void the_address_belongs_to_the_daemon_with_the_assignment(void **state) {
        struct world *w = *state;
        struct fabric_assignment x = listed("n0", 1, 15, NULL);
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        write_object(w, &x, 1);
        n->wanted = "d";
        step(w);
        assert_string_equal(of(w, "d", "n0")->ip, "ip-n0");
        n->report.claim = "claim-2"; /* its successor has not reported yet that the epoch has ended */
        step(w);
        assert_int_equal(of(w, "d", "n0")->epoch, 15);
        assert_null(of(w, "d", "n0")->ip);
}

static void indices_that_are_freed_together_are_reused_in_their_order(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = { listed("n0", 0, 15, "Leaving"), listed("n1", 1, 14, NULL) };
        add_domain(w, "d");
        write_object(w, list, 2);
        for (int i = 0; i < 2; i++) {
                struct assignment_node *n = add_node(w, list[i].node);
                n->released = n->dead = true;
        }
        step(w);
        assert_int_equal(w->out.domains[0].n_assignments, 0);
        assert_string_equal(w->out.domains[0].freed, "0,1");
}

/* ---- IMEX domains ---- */

static void a_running_assignment_of_an_unknown_domain_is_entered(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        n->report.domain = "unknown";
        n->report.index = 4;
        n->report.epoch = 9;
        step(w);
        assert_int_equal(of(w, "unknown", "n0")->index, 4);
        assert_string_equal(w->out.domains[0].owner.kind, "ComputeDomain");
        assert_int_equal(w->out.domains[0].imex.slots, SLOTS);
}

/* Independently of what its nodes run or report. */
static void the_names_and_the_port_of_a_new_domain_follow_from_its_uid(void **state) {
        for (int i = 0; i < 3; i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0");
                char infix[IMEX_INFIX_SIZE];
                if (i < 2)
                        add_domain(w, "d");
                if (i == 0) {
                        n->wanted = "d";
                } else {
                        n->report.domain = "d";
                        n->report.epoch = 9;
                }
                step(w);
                assert_int_equal(w->out.n_domains, 1);
                imex_infix("d", infix);
                assert_string_equal(w->out.domains[0].imex.infix, infix);
                assert_int_equal(w->out.domains[0].imex.port, assignment_port(infix));
                world_free(w);
        }
        (void)state;
}

/* An object of an earlier version may lack it. */
static void a_domain_that_is_listed_without_an_infix_gets_none(void **state) {
        struct world *w = *state;
        struct fabric_assignment x = listed("n0", 1, 15, NULL);
        struct fabric_domain d = { .owner = { "ComputeDomain", "ns", "d", "d" },
                                   .imex = { "", SLOTS, 28001 } };
        d.assignments = &x;
        d.n_assignments = 1;
        add_node(w, "n0")->wanted = "d";
        add_node(w, "n1")->wanted = "d";
        add_domain(w, "d");
        write_object(w, &x, 1);
        w->in.old = &d;
        step(w);
        assert_non_null(of(w, "d", "n1"));
        assert_string_equal(w->out.domains[0].imex.infix, "");
        assert_int_equal(w->out.domains[0].imex.port, 28001);
}

static void a_node_that_is_wanted_in_an_unknown_domain_gets_no_assignment(void **state) {
        struct world *w = *state;
        add_node(w, "n0")->wanted = "unknown";
        step(w);
        assert_int_equal(w->out.n_domains, 0);
        assert_false(w->out.changed);
}

static void a_domain_whose_owner_does_not_exist_ends_its_assignments(void **state) {
        struct world *w = *state;
        running(w);
        w->domains[0].gone = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Ending");
}

static void the_standing_domain_is_removed_with_its_last_node(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        w->domains[0].is_standing = true;
        n->wanted = NULL;
        n->released = true;
        leave(w, n);
        step(w);
        assert_int_equal(w->out.n_domains, 0);
}

static void only_nodes_that_could_take_an_index_are_named_when_none_is_free(void **state) {
        struct world *w = *state;
        w->in.slots = 1;
        running(w);
        w->domains[0].is_standing = true;
        add_node(w, "n1"); /* not wanted */
        struct assignment_node *n = add_node(w, "n2");
        n->wanted = "d";
        n->ending = true;
        step(w);
        assert_int_equal(w->out.n_full, 0);
        n->ending = false;
        step(w);
        assert_int_equal(w->out.n_full, 1);
        assert_string_equal(w->out.full[0], "n2");
}

/* Tenants have filled the object. Running IMEX domains are still listed. */
static void a_full_object_takes_only_running_domains(void **state) {
        struct world *w = *state;
        struct fabric_domain *old = arena_alloc(w->a, ASSIGNMENT_DOMAINS_MAX * sizeof *old);
        struct fabric_assignment x = listed("n0", 0, 15, "Leaving");
        for (int i = 0; i < ASSIGNMENT_DOMAINS_MAX; i++)
                old[i] = (struct fabric_domain){ .owner = { "ComputeDomain", "ns", "x",
                                                            arena_printf(w->a, "x-%d", i) },
                                                 .imex.infix = "x",
                                                 .imex.slots = SLOTS,
                                                 .imex.port = 28000,
                                                 .assignments = &x,
                                                 .n_assignments = 1 };
        w->in.old = old;
        w->in.n_old = ASSIGNMENT_DOMAINS_MAX;
        w->in.epoch = 20;
        add_node(w, "n0");
        add_node(w, "n1")->wanted = "d";
        add_domain(w, "d");
        struct assignment_node *n = add_node(w, "n2");
        n->report.domain = "e";
        n->report.epoch = 16;
        step(w);
        assert_int_equal(w->out.n_refused, 1);
        assert_null(of(w, "d", "n1"));
        assert_non_null(of(w, "e", "n2"));
        assert_int_equal(w->out.n_domains, ASSIGNMENT_DOMAINS_MAX + 1);
}

/* ---- numbers ---- */

/* failure: a report has an impossible epoch -> it does not count [tenants] */
static void a_report_with_an_impossible_epoch_does_not_count(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->report.domain = "d";
        n->report.epoch = -1;
        step(w);
        assert_int_equal(w->out.n_domains, 0);
        assert_int_equal(w->out.recount, 0);
}

static void without_a_free_epoch_no_recount_begins(void **state) {
        struct world *w = *state;
        add_node(w, "n0");
        w->in.epoch = INT64_MAX;
        w->in.rolled_back = true;
        step(w);
        assert_int_equal(w->out.recount, 0);
        assert_int_equal(w->out.epoch, INT64_MAX);
}

/* failure: the fabric object has an impossible index -> its node leaves */
static void a_node_with_an_impossible_index_leaves(void **state) {
        static const int64_t indices[] = { -1, SLOTS };
        for (size_t i = 0; i < ARRAY_LEN(indices); i++) {
                struct world *w = world_new();
                struct fabric_assignment x = listed("n0", indices[i], 15, NULL);
                add_node(w, "n0")->wanted = "d";
                add_domain(w, "d");
                write_object(w, &x, 1);
                step(w);
                assert_state(of(w, "d", "n0"), "Leaving");
                world_free(w);
        }
        (void)state;
}

/* failure: the fabric object lists a node twice -> one assignment stays */
static void a_node_that_is_listed_twice_in_a_domain_keeps_one_assignment(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = { listed("n0", 1, 15, NULL), listed("n0", 2, 16, NULL) };
        add_node(w, "n0")->wanted = "d";
        add_domain(w, "d");
        write_object(w, list, 2);
        step(w);
        assert_int_equal(w->out.domains[0].n_assignments, 1);
        assert_int_equal(of(w, "d", "n0")->index, 1);
}

/* failure: an entry of a fabric object names no node -> it is dropped, and the other entries stay */
static void an_entry_without_a_node_is_dropped(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = { listed("", 1, 15, NULL), listed("n0", 2, 16, NULL) };
        add_node(w, "n0")->wanted = "d";
        add_domain(w, "d");
        write_object(w, list, 2);
        step(w);
        assert_int_equal(w->out.domains[0].n_assignments, 1);
        assert_int_equal(of(w, "d", "n0")->index, 2);
}

/* failure: a false report put another claim into an assignment -> the daemon that runs it gets it back
 * [tenants] */
static void an_assignment_belongs_to_the_daemon_that_runs_it(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        struct fabric_assignment list[] = { listed("n0", 2, 16, NULL) };
        list[0].claim = "another";
        list[0].boot_id = n->report.boot_id;
        n->wanted = n->report.domain = "d";
        n->report.index = 2;
        n->report.epoch = 16;
        n->report.ready = true;
        add_domain(w, "d");
        write_object(w, list, 1);
        step(w);
        assert_string_equal(of(w, "d", "n0")->claim, n->report.claim);
        assert_int_equal(of(w, "d", "n0")->epoch, 16);
}

/* ---- epochs that false reports have raised ---- */

/* The object was deleted after false reports had raised its epochs by this number. */
#define RAISED (3 * DAEMON_REPORT_EPOCHS_AHEAD)

/* failure: a daemon's token raises the epochs, then the fabric object is lost -> what the other nodes run
 * stays [tenants] */
static void epochs_that_two_nodes_have_seen_count_after_the_object_was_lost(void **state) {
        static const int64_t lies[] = { 0, 1, RAISED - 1, RAISED + DAEMON_REPORT_EPOCHS_AHEAD + 2,
                                        INT64_MAX };
        for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
                struct world *w = world_new();
                the_object_is_lost(w);
                add_node(w, "evil")->report.seen = lies[i];
                add_runner(w, "n0", 5, RAISED);
                add_runner(w, "n1", 7, RAISED + 1);
                step(w);
                assert_int_equal(of(w, "d", "n0")->index, 5);
                assert_int_equal(of(w, "d", "n1")->index, 7);
                assert_int_equal(of(w, "d", "n1")->epoch, RAISED + 1);
                assert_true(w->out.epoch > RAISED && w->out.epoch < RAISED + 10);
                world_free(w);
        }
        (void)state;
}

/* Regardless of how many reports of others are low, and of what the node reports. */
static void one_node_does_not_move_the_bound(void **state) {
        static const int64_t lies[] = { 10 + DAEMON_REPORT_EPOCHS_AHEAD + 1, RAISED, INT64_MAX };
        for (size_t i = 0; i < 2 * ARRAY_LEN(lies); i++) {
                struct world *w = world_new();
                struct assignment_node *evil = add_node(w, "evil");
                add_domain(w, "d");
                for (int k = 0; k < 3; k++)
                        add_node(w, arena_printf(w->a, "n%d", k))->report.seen = 10;
                if (i % 2) {
                        evil->report.seen = lies[i / 2];
                } else {
                        evil->report.domain = "d";
                        evil->report.epoch = lies[i / 2];
                }
                step(w);
                assert_int_equal(w->out.epoch, 10);
                assert_int_equal(w->out.recount, 0);
                assert_int_equal(w->out.n_domains, 0);
                world_free(w);
        }
        (void)state;
}

static void two_nodes_move_the_bound(void **state) {
        struct world *w = *state;
        add_domain(w, "d");
        add_node(w, "n0")->report.seen = RAISED;
        add_node(w, "n1")->report.seen = RAISED + DAEMON_REPORT_EPOCHS_AHEAD;
        add_node(w, "n2");
        step(w);
        assert_int_equal(w->out.recount, RAISED + DAEMON_REPORT_EPOCHS_AHEAD + 1);
}

static void a_report_that_does_not_count_is_no_witness(void **state) {
        for (int i = 0; i < 2; i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0");
                add_node(w, "n1")->report.seen = n->report.seen = RAISED;
                if (i == 0)
                        n->trust = ASSIGNMENT_TRUST_NONE;
                else
                        n->report.pod_uid = NULL;
                add_node(w, "n2");
                step(w);
                assert_int_equal(w->out.epoch, 10);
                world_free(w);
        }
        (void)state;
}

/* The partition has no other node, or all other nodes are new. */
static void a_running_assignment_of_a_single_node_counts_after_the_object_was_lost(void **state) {
        for (int others = 0; others < 3; others++) {
                struct world *w = world_new();
                the_object_is_lost(w);
                add_runner(w, "n0", 5, RAISED);
                for (int i = 0; i < others; i++)
                        add_node(w, arena_printf(w->a, "n%d", i + 1))->report.object = "";
                step(w);
                assert_int_equal(of(w, "d", "n0")->index, 5);
                assert_int_equal(of(w, "d", "n0")->epoch, RAISED);
                world_free(w);
        }
        (void)state;
}

/* After the object has given an epoch, a node that has seen none is a witness, too. */
static void a_node_that_has_seen_no_epoch_is_a_witness_of_an_object_with_epochs(void **state) {
        struct world *w = *state;
        add_node(w, "n0")->report.seen = RAISED;
        add_node(w, "n1");
        step(w);
        assert_int_equal(w->out.epoch, 10);
}

static void a_single_node_cannot_use_up_the_epochs(void **state) {
        static const struct {
                int64_t seen, epoch;
        } rows[] = {
                { ASSIGNMENT_EPOCH_ALONE, ASSIGNMENT_EPOCH_ALONE + 1 },
                { ASSIGNMENT_EPOCH_ALONE + 1, 10 },
                { INT64_MAX, 10 },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct world *w = world_new();
                add_node(w, "n0")->report.seen = rows[i].seen;
                step(w);
                assert_int_equal(w->out.epoch, rows[i].epoch);
                world_free(w);
        }
        (void)state;
}

/* Its daemon would report each assignment as left, and the object would be written in a loop. failure: a node
 * alone has seen a far higher epoch than all others -> it gets no assignment until it reboots [etcd] */
static void a_daemon_that_has_seen_an_epoch_that_does_not_count_gets_no_assignment(void **state) {
        for (int i = 0; i < 2; i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0");
                add_domain(w, "d");
                n->wanted = "d";
                if (i)
                        n->report.epoch = RAISED;
                else
                        n->report.seen = RAISED;
                add_node(w, "n1")->wanted = "d";
                step(w);
                assert_null(of(w, "d", "n0"));
                assert_non_null(of(w, "d", "n1"));
                assert_int_equal(w->out.epoch, 11);
                step(w);
                assert_false(w->out.changed);
                world_free(w);
        }
        (void)state;
}

/* If two nodes report, the lower epoch counts. */
static void a_node_that_lies_hides_what_the_only_other_node_runs(void **state) {
        struct world *w = *state;
        the_object_is_lost(w);
        add_node(w, "evil")->report.seen = 1;
        add_runner(w, "n1", 7, RAISED);
        step(w);
        assert_null(of(w, "d", "n1"));
        w->in.object = OBJECT;
        w->in.recount = 0;
        step(w);
        assert_null(of(w, "d", "n1"));
        assert_true(w->out.epoch < 10);
}

/* ---- a fresh Pod for each IMEX domain, and removals ---- */

/* Its report is late: it shows an earlier epoch in the IMEX domain to which the node returns. */
static void a_daemon_that_has_served_a_domain_may_serve_it_again(void **state) {
        struct world *w = *state;
        struct fabric_assignment x = { .node = "n0", .index = 3, .epoch = 15, .state = "Reserved" };
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        write_object(w, &x, 1);
        w->in.fresh_pod_per_domain = true;
        n->wanted = "d";
        n->report.domain = "d";
        n->report.epoch = 14;
        n->report.served = true;
        step(w);
        assert_state(of(w, "d", "n0"), "");
        assert_int_equal(of(w, "d", "n0")->index, 3);
        assert_int_equal(of(w, "d", "n0")->epoch, 21);
}

/* Its report is late: it does not show the assignment in which IMEX may be READY by now. */
/* failure: a watch of Pods lags while a node changes -> it gets no other IMEX domain until it reports */
static void a_daemon_that_may_have_served_gets_no_other_domain_until_it_reports(void **state) {
        static const int64_t left[] = { 15 };
        struct world *w = *state;
        struct fabric_assignment x = {
                .node = "n0", .index = 3, .epoch = 15, .claim = "claim-n0", .boot_id = "boot-n0"
        };
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        write_object(w, &x, 1);
        add_domain(w, "e");
        w->in.fresh_pod_per_domain = true;
        n->wanted = "e";
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        assert_null(of(w, "e", "n0"));
        n->report.left = left;
        n->report.n_left = 1;
        step(w);
        assert_non_null(of(w, "e", "n0"));
}

/* Its report is from before the end of its assignment. */
static void a_daemon_whose_assignment_has_ended_is_marked(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        other->wanted = "d";
        step(w);
        n->wanted = NULL;
        n->released = true;
        n->unprepared = "claim-n0";
        n->remove = "pod-n0";
        step(w);
        assert_null(of(w, "d", "n0"));
        assert_non_null(of(w, "d", "n1"));
        assert_int_equal(w->out.n_removals, 1);
}

static void a_mark_is_removed_when_no_daemon_is_expected_on_the_node(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        n->remove = "pod-n0";
        step(w);
        n->remove = NULL;
        n->expected = false;
        step(w);
        assert_int_equal(w->out.n_removals, 0);
}

static void a_mark_for_another_pod_or_node_is_a_change(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0"), *other = add_node(w, "n1");
        n->remove = "pod-n0";
        step(w);
        step(w);
        assert_false(w->out.changed);
        n->remove = "pod-2";
        step(w);
        assert_true(w->out.changed);
        n->remove = NULL;
        n->expected = false;
        other->remove = "pod-n1";
        step(w);
        assert_int_equal(w->out.n_removals, 1);
        assert_string_equal(w->out.removals[0].node, "n1");
        assert_true(w->out.changed);
}

/* ---- the check ---- */

/* Two nodes may have one index only if both had it before, or run with it. */
static void the_check_knows_the_assignments_of_the_old_object(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = { listed("n0", 1, 15, NULL), listed("n1", 1, 16, "Leaving") };
        struct fabric_domain d = {
                .owner.uid = "d", .imex.slots = 2, .assignments = list, .n_assignments = ARRAY_LEN(list)
        };
        struct fabric_assignment before[] = { list[0], list[1] };
        struct assignment out = { .domains = &d, .n_domains = 1 };
        add_node(w, "n0");
        add_node(w, "n1");
        write_object(w, before, 2);
        assert_null(assignment_check(&w->in, &out, w->a));
        before[0].epoch = 14;
        assert_non_null(assignment_check(&w->in, &out, w->a));
        before[0].epoch = 15;
        before[1].epoch = 14;
        assert_non_null(assignment_check(&w->in, &out, w->a));
        w->in.n_nodes = 0; /* without any facts about the nodes */
        before[1].epoch = 16;
        assert_null(assignment_check(&w->in, &out, w->a));
        list[0].index = -1;
        assert_non_null(strstr(assignment_check(&w->in, &out, w->a), "slots"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(an_assignment_without_claim_or_boot_id_does_not_end_by_their_absence),
                T(an_epoch_that_another_pod_of_the_node_has_left_has_ended),
                T(an_assignment_stays_while_neither_claims_nor_a_report_are_seen),
                T(a_doubtful_node_gets_no_assignment),
                T(a_node_without_an_address_is_listed_without_one),
                T(a_recount_waits_for_a_node_whose_report_does_not_count),
                T(a_later_epoch_on_any_node_is_a_sign_of_a_restore),
                T(an_ended_epoch_is_not_entered_again),
                T(an_epoch_that_a_report_names_as_running_and_left_has_ended),
                T(a_reservation_yields_to_a_node_that_may_run_with_its_index),
                T(the_address_belongs_to_the_daemon_with_the_assignment),
                T(indices_that_are_freed_together_are_reused_in_their_order),
                T(a_running_assignment_of_an_unknown_domain_is_entered),
                T(the_names_and_the_port_of_a_new_domain_follow_from_its_uid),
                T(a_domain_that_is_listed_without_an_infix_gets_none),
                T(a_node_that_is_wanted_in_an_unknown_domain_gets_no_assignment),
                T(a_domain_whose_owner_does_not_exist_ends_its_assignments),
                T(the_standing_domain_is_removed_with_its_last_node),
                T(only_nodes_that_could_take_an_index_are_named_when_none_is_free),
                T(a_full_object_takes_only_running_domains),
                T(a_report_with_an_impossible_epoch_does_not_count),
                T(without_a_free_epoch_no_recount_begins),
                T(a_node_with_an_impossible_index_leaves),
                T(a_node_that_is_listed_twice_in_a_domain_keeps_one_assignment),
                T(an_entry_without_a_node_is_dropped),
                T(an_assignment_belongs_to_the_daemon_that_runs_it),
                T(epochs_that_two_nodes_have_seen_count_after_the_object_was_lost),
                T(one_node_does_not_move_the_bound),
                T(two_nodes_move_the_bound),
                T(a_report_that_does_not_count_is_no_witness),
                T(a_running_assignment_of_a_single_node_counts_after_the_object_was_lost),
                T(a_node_that_has_seen_no_epoch_is_a_witness_of_an_object_with_epochs),
                T(a_single_node_cannot_use_up_the_epochs),
                T(a_daemon_that_has_seen_an_epoch_that_does_not_count_gets_no_assignment),
                T(a_node_that_lies_hides_what_the_only_other_node_runs),
                T(a_daemon_that_has_served_a_domain_may_serve_it_again),
                T(a_daemon_that_may_have_served_gets_no_other_domain_until_it_reports),
                T(a_daemon_whose_assignment_has_ended_is_marked),
                T(a_mark_is_removed_when_no_daemon_is_expected_on_the_node),
                T(a_mark_for_another_pod_or_node_is_a_change),
                T(the_check_knows_the_assignments_of_the_old_object),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
