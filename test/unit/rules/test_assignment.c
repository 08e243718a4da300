/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment: which node gets which index, how an epoch ends, and when an index is free. */
#include "assignment_world.h"
#include "render/objects.h"

enum { BODY = 1 << 20 };

/* Another Pod with another claim, which has seen the object. */
static void succeed(struct world *w, struct assignment_node *n) {
        int64_t *left = arena_alloc(w->a, sizeof *left);
        *left = n->report.epoch;
        n->report = (struct assignment_report){ .pod_uid = "pod-2",
                                                .claim = "claim-2",
                                                .boot_id = n->report.boot_id,
                                                .object = OBJECT,
                                                .left = left,
                                                .n_left = 1,
                                                .seen = w->out.epoch };
}

/* ---- new assignments ---- */

static void an_assignment_names_claim_and_boot_of_its_daemon(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->wanted = "d";
        step(w);
        const struct fabric_assignment *x = of(w, "d", "n0");
        assert_non_null(x);
        assert_state(x, "");
        assert_int_equal(x->index, 0);
        assert_int_equal(x->epoch, 11);
        assert_string_equal(x->claim, "claim-n0");
        assert_string_equal(x->boot_id, "boot-n0");
        assert_string_equal(x->ip, "ip-n0");
        step(w);
        assert_false(w->out.changed);
}

static void a_node_without_a_daemon_that_can_take_it_gets_none(void **state) {
        struct world *w = *state;
        add_domain(w, "d");
        for (int i = 0; i < 10; i++)
                add_node(w, arena_printf(w->a, "n%d", i))->wanted = "d";
        w->nodes[0].report.pod_uid = NULL;
        w->nodes[1].ending = true;
        w->nodes[2].dead = true;
        w->nodes[3].trust = ASSIGNMENT_TRUST_RESERVE;
        w->nodes[4].trust = ASSIGNMENT_TRUST_NONE;
        w->nodes[5].boot_id = "a later boot";
        w->nodes[6].unprepared = w->nodes[6].report.claim;
        w->nodes[7].remove = w->nodes[7].report.pod_uid;
        w->in.removals = (struct fabric_removal[]){ { "n8", "pod-n8" } };
        w->in.n_removals = 1;
        step(w);
        for (int i = 0; i < 9; i++)
                assert_null(of(w, "d", w->nodes[i].name));
        assert_non_null(of(w, "d", "n9"));
}

static void with_fresh_pods_a_daemon_that_has_served_gets_no_other_domain(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->wanted = "d";
        n->report.served = true;
        w->in.fresh_pod_per_domain = true;
        step(w);
        assert_null(of(w, "d", "n0"));
        succeed(w, n);
        step(w);
        assert_non_null(of(w, "d", "n0"));
}

/* failure: the fabric object does not exist yet -> nothing is assigned */
static void nothing_is_assigned_before_the_fabric_object_exists(void **state) {
        struct world *w = *state;
        add_node(w, "n0")->wanted = "d";
        add_domain(w, "d");
        w->nodes[0].report.object = "";
        w->in.object = NULL;
        w->in.epoch = 0;
        step(w);
        assert_int_equal(w->out.n_domains, 0);
        assert_int_equal(w->out.recount, 0);
}

static void a_new_node_gets_the_index_that_has_been_free_for_longest(void **state) {
        struct world *w = *state;
        w->in.slots = 2;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        step(w);
        leave(w, n);
        step(w);
        assert_null(of(w, "d", "n0"));
        n->wanted = "d";
        step(w);
        assert_int_equal(of(w, "d", "n0")->index, 1); /* never used */
}

/* ---- the end of an assignment ---- */

/* failure: a slow watch does not show a claim -> its assignment stays */
static void a_claim_that_a_cache_does_not_show_keeps_its_assignment(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        step(w);
        assert_state(of(w, "d", "n0"), "");
        n->released = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving"); /* until there is proof */
        n->wanted = "d";
        step(w);
        assert_state(of(w, "d", "n0"), ""); /* as before */
        assert_int_equal(of(w, "d", "n0")->epoch, 11);
}

static void a_deleted_domain_ends_although_claims_exist(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        w->domains[0].ending = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Ending");
        leave(w, n);
        step(w);
        assert_null(of(w, "d", "n0"));
        w->domains[0].gone = true;
        step(w);
        assert_int_equal(w->out.n_domains, 0);
}

/* failure: a watch does not show a cut-off node's daemon -> its index stays taken [cut-off] */
static void a_missing_report_of_a_daemon_frees_nothing(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        n->report = (struct assignment_report){ 0 }; /* the API server no longer has its Pod */
        n->expected = false;
        for (int i = 0; i < 3; i++)
                step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        assert_int_equal(of(w, "d", "n0")->index, 0);
}

/* Each proof frees the index if no claim is left. */
/* failure: a daemon ends without a report -> only proof that it has ended frees its index */
static void a_proof_frees_the_index_of_a_node_without_claims(void **state) {
        for (int proof = 0; proof < 6; proof++) {
                struct world *w = world_new();
                struct assignment_node *n = running(w);
                n->wanted = NULL;
                n->released = true;
                if (proof == 0)
                        leave(w, n);
                if (proof == 1)
                        succeed(w, n);
                if (proof == 2)
                        n->unprepared = "claim-n0";
                if (proof == 3)
                        n->boot_id = "a later boot";
                if (proof == 4)
                        n->dead = true;
                if (proof == 5)
                        n->moved = true;
                step(w);
                if (of(w, "d", "n0"))
                        fail_msg("proof %d", proof);
                world_free(w);
        }
}

/* It ends the epoch, but not the membership: the successor keeps its index in a full IMEX domain. */
/* failure: a force-deleted or rebooted daemon has ended while claims remain -> its index is reserved for the
 * next */
static void a_proof_reserves_the_index_of_a_node_with_claims(void **state) {
        for (int proof = 1; proof < 5; proof++) {
                struct world *w = world_new();
                w->in.slots = 1;
                struct assignment_node *n = running(w);
                if (proof == 1)
                        succeed(w, n);
                if (proof == 2)
                        n->unprepared = "claim-n0";
                if (proof == 3)
                        n->boot_id = "a later boot";
                if (proof == 4)
                        n->dead = true;
                add_node(w, "n1")->wanted = "d";
                step(w);
                const struct fabric_assignment *x = of(w, "d", "n0");
                assert_non_null(x);
                assert_int_equal(x->index, 0);
                if (proof == 1) {
                        assert_string_equal(x->claim, "claim-2");
                        assert_int_equal(x->epoch, 12);
                        assert_state(x, "");
                } else {
                        assert_state(x, "Reserved");
                        assert_null(x->claim);
                        assert_null(x->ip);
                }
                assert_null(of(w, "d", "n1")); /* no index is free */
                if (proof == 2) {
                        succeed(w, n);
                        step(w);
                        assert_state(of(w, "d", "n0"), "");
                        assert_int_equal(of(w, "d", "n0")->epoch, 12);
                        n->wanted = NULL;
                        n->released = true;
                }
                world_free(w);
        }
}

/* failure: an index is reserved, and the claims are gone -> it is free */
static void a_reservation_is_freed_when_the_claims_are_gone(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->unprepared = "claim-n0";
        n->wanted = NULL; /* a cache does not show the claim */
        step(w);
        assert_state(of(w, "d", "n0"), "Reserved");
        n->released = true;
        step(w);
        assert_null(of(w, "d", "n0"));
}

/* failure: a stale cache shows an earlier Pod's report -> it does not count as the next daemon's */
static void a_report_of_an_earlier_pod_does_not_count_for_its_successor(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        succeed(w, n);
        step(w);
        obey(w, n);
        step(w);
        /* A stale cache shows the earlier Pod with its last report. */
        n->report = (struct assignment_report){ .pod_uid = "pod-n0",
                                                .claim = "claim-n0",
                                                .boot_id = n->report.boot_id,
                                                .object = OBJECT,
                                                .domain = "d",
                                                .index = 0,
                                                .epoch = 11,
                                                .seen = 11 };
        step(w);
        assert_string_equal(of(w, "d", "n0")->claim, "claim-2");
        assert_int_equal(of(w, "d", "n0")->epoch, 12);
}

/* failure: a node's slice is missing -> its daemon's report reserves an index, and frees none */
static void without_a_slice_a_report_only_reserves_an_index(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        leave(w, n);
        n->trust = ASSIGNMENT_TRUST_RESERVE;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        struct assignment_node *other = add_node(w, "n1");
        other->trust = ASSIGNMENT_TRUST_RESERVE;
        other->report.domain = "d";
        other->report.index = 7;
        other->report.epoch = 12;
        step(w);
        assert_int_equal(of(w, "d", "n1")->index, 7);
}

/* failure: a daemon's token reports another partition than its slice -> the report does not count [tenants]
 * */
static void a_report_that_the_slice_contradicts_does_not_count(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->trust = ASSIGNMENT_TRUST_NONE;
        n->report.domain = "d";
        n->report.epoch = 500;
        n->report.seen = 500;
        n->report.object = "another";
        step(w);
        assert_int_equal(w->out.n_domains, 0);
        assert_int_equal(w->out.epoch, 10);
        assert_int_equal(w->out.recount, 0);
}

/* ---- an address is in one IMEX domain at a time ---- */

/* failure: a node changes its IMEX domain -> its address is published after it has left the first */
static void a_node_that_changes_its_domain_shows_its_address_after_it_has_left(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        add_domain(w, "e");
        n->wanted = "e";
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        assert_null(of(w, "d", "n0")->ip);
        assert_state(of(w, "e", "n0"), "");
        assert_null(of(w, "e", "n0")->ip);
        leave(w, n);
        step(w);
        assert_null(of(w, "d", "n0"));
        assert_string_equal(of(w, "e", "n0")->ip, "ip-n0");
}

/* ---- removals ---- */

/* failure: an idle daemon is to be removed -> it is marked and gets no assignment [upgrade] */
static void an_idle_daemon_is_marked_and_gets_no_assignment(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->remove = "pod-n0";
        step(w);
        assert_int_equal(w->out.n_removals, 1);
        assert_string_equal(w->out.removals[0].pod_uid, "pod-n0");
        n->remove = NULL; /* the controller no longer wants it, but the mark stays */
        n->wanted = "d";
        step(w);
        assert_int_equal(w->out.n_removals, 1);
        assert_null(of(w, "d", "n0"));
        succeed(w, n);
        step(w);
        assert_int_equal(w->out.n_removals, 0);
        assert_non_null(of(w, "d", "n0"));
}

/* failure: a daemon in use is to be removed -> it is not marked [upgrade] */
static void a_daemon_that_serves_is_not_marked(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->remove = "pod-n0";
        step(w);
        assert_int_equal(w->out.n_removals, 0);
        n->report.ready = false; /* its IMEX has never been READY */
        step(w);
        assert_int_equal(w->out.n_removals, 1);
}

static void a_daemon_that_never_reported_is_marked(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->report = (struct assignment_report){ 0 };
        n->remove = "pod-2";
        step(w);
        assert_int_equal(w->out.n_removals, 1);
        n->dead = true;
        n->remove = NULL;
        step(w);
        assert_int_equal(w->out.n_removals, 0);
}

/* ---- bounds ---- */

/* failure: a daemon's token reports huge epochs -> epochs are not used up [tenants] */
static void a_node_cannot_use_up_the_epochs(void **state) {
        static const int64_t lies[] = { INT64_MAX, INT64_MAX - 1, 10 + DAEMON_REPORT_EPOCHS_AHEAD + 1 };
        for (size_t i = 0; i < 2 * ARRAY_LEN(lies); i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "evil");
                add_domain(w, "d");
                if (i % 2) {
                        n->report.seen = lies[i / 2];
                } else {
                        n->report.domain = "d";
                        n->report.epoch = lies[i / 2];
                }
                add_node(w, "n1")->wanted = "d";
                step(w);
                assert_int_equal(w->out.epoch, 11);
                assert_non_null(of(w, "d", "n1"));
                assert_null(of(w, "d", "evil"));
                world_free(w);
        }
}

/* failure: epochs are used up -> nothing is assigned */
static void the_last_epoch_is_not_assigned(void **state) {
        struct world *w = *state;
        w->in.epoch = INT64_MAX;
        add_node(w, "n0")->wanted = "d";
        add_domain(w, "d");
        step(w);
        assert_int_equal(w->out.epoch, INT64_MAX);
        assert_int_equal(w->out.n_domains, 0);
}

/* failure: a daemon's token reports an impossible index -> no index is blocked [tenants] */
static void an_impossible_index_blocks_no_other(void **state) {
        static const int64_t lies[] = { SLOTS, -1, IMEX_SLOTS_MAX, INT64_MAX, INT64_MIN };
        for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "evil");
                add_domain(w, "d");
                n->report.domain = "d";
                n->report.index = lies[i];
                n->report.epoch = 9;
                step(w);
                for (size_t k = 0; k < w->out.n_domains; k++)
                        for (size_t j = 0; j < w->out.domains[k].n_assignments; j++)
                                assert_true(fabric_is_leaving(&w->out.domains[k].assignments[j]));
                world_free(w);
        }
}

/* failure: the standing domain has no index left -> the nodes without one are named [standing] */
static void nodes_without_an_index_in_the_standing_domain_are_named(void **state) {
        struct world *w = *state;
        w->in.slots = 1;
        running(w);
        w->domains[0].is_standing = true;
        add_node(w, "n1")->wanted = "d";
        step(w);
        assert_int_equal(w->out.n_full, 1);
        assert_string_equal(w->out.full[0], "n1");
        assert_int_equal(w->out.slots, 1);
}

/* A tenant deletes and recreates ComputeDomains faster than their IMEX domains are removed from the
 * object. */
/* failure: tenants recreate ComputeDomains quickly -> the fabric object has room for new ones [tenants] */
static void the_fabric_object_has_room_after_many_domains(void **state) {
        struct world *w = *state;
        struct fabric_domain *old = arena_alloc(w->a, ASSIGNMENT_DOMAINS_MAX * sizeof *old);
        for (int i = 0; i < ASSIGNMENT_DOMAINS_MAX; i++) {
                char *ns = arena_alloc(w->a, 64), *name = arena_alloc(w->a, 254);
                memset(ns, 'b', 63);
                memset(name, 'a', 253);
                old[i] = (struct fabric_domain){
                        .owner = { "ComputeDomain", ns, name,
                                   arena_printf(w->a, "aaaaaaaa-0000-4000-8000-%012d", i) },
                        .imex.infix = "0123456789",
                        .imex.slots = SLOTS,
                        .imex.port = 28000
                };
        }
        w->in.old = old;
        w->in.n_old = ASSIGNMENT_DOMAINS_MAX;
        add_node(w, "n0")->wanted = "d";
        add_domain(w, "d");
        step(w);
        assert_int_equal(w->out.n_domains, ASSIGNMENT_DOMAINS_MAX);
        assert_non_null(of(w, "d", "n0"));
        _cleanup_(buf_done) struct buf b = BUF_INIT(BODY);
        struct compute_domain_fabric was = { .o.meta = { .name = "c.1", .uid = "u", .rv = "1" } }, f = was;
        f.domains = w->out.domains;
        f.n_domains = w->out.n_domains;
        f.epoch = w->out.epoch;
        objects_fabric(&f, &was, &b);
        assert_false(b.failed);
}

/* failure: tenants create thousands of ComputeDomains -> unused IMEX domains are dropped [tenants] */
static void a_domain_without_assignments_is_dropped_when_it_is_idle(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        leave(w, n);
        step(w);
        assert_int_equal(w->out.n_domains, 1);
        w->domains[0].idle = true;
        step(w);
        assert_int_equal(w->out.n_domains, 0);
}

/* ---- the check ---- */

/* failure: two nodes would get one index -> the object is not written, and DecisionWrong reports it */
static void the_check_finds_every_wrong_assignment(void **state) {
        struct world *w = *state;
        struct fabric_assignment two[] = { { .node = "n0", .index = 1, .epoch = 11 },
                                           { .node = "n1", .index = 1, .epoch = 12 } };
        struct fabric_assignment other[] = { { .node = "n0", .index = 0, .epoch = 13 } };
        struct fabric_domain d[] = {
                { .owner.uid = "d", .imex.slots = 2, .assignments = two, .n_assignments = 2 },
                { .owner.uid = "e", .imex.slots = 2, .assignments = other, .n_assignments = 1 }
        };
        struct assignment out = { .domains = d, .n_domains = 1 };
        add_node(w, "n0");
        add_node(w, "n1");
        assert_non_null(strstr(assignment_check(&w->in, &out, w->a), "gives index 1"));
        two[1].state = "Leaving"; /* and this one is new */
        assert_non_null(assignment_check(&w->in, &out, w->a));
        two[1].index = 2;
        assert_null(assignment_check(&w->in, &out, w->a));
        two[1].state = NULL;
        assert_non_null(strstr(assignment_check(&w->in, &out, w->a), "slots"));
        two[1].index = 0;
        two[1].node = "n0";
        assert_non_null(strstr(assignment_check(&w->in, &out, w->a), "twice"));
        two[1].node = "n1";
        out.n_domains = 2;
        assert_non_null(strstr(assignment_check(&w->in, &out, w->a), "active in domains"));
        other[0].node = "n2";
        assert_null(assignment_check(&w->in, &out, w->a));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(an_assignment_names_claim_and_boot_of_its_daemon),
                T(a_node_without_a_daemon_that_can_take_it_gets_none),
                T(with_fresh_pods_a_daemon_that_has_served_gets_no_other_domain),
                T(nothing_is_assigned_before_the_fabric_object_exists),
                T(a_new_node_gets_the_index_that_has_been_free_for_longest),
                T(a_claim_that_a_cache_does_not_show_keeps_its_assignment),
                T(a_deleted_domain_ends_although_claims_exist),
                T(a_missing_report_of_a_daemon_frees_nothing),
                T(a_proof_frees_the_index_of_a_node_without_claims),
                T(a_proof_reserves_the_index_of_a_node_with_claims),
                T(a_reservation_is_freed_when_the_claims_are_gone),
                T(a_report_of_an_earlier_pod_does_not_count_for_its_successor),
                T(without_a_slice_a_report_only_reserves_an_index),
                T(a_report_that_the_slice_contradicts_does_not_count),
                T(a_node_that_changes_its_domain_shows_its_address_after_it_has_left),
                T(an_idle_daemon_is_marked_and_gets_no_assignment),
                T(a_daemon_that_serves_is_not_marked),
                T(a_daemon_that_never_reported_is_marked),
                T(a_node_cannot_use_up_the_epochs),
                T(the_last_epoch_is_not_assigned),
                T(an_impossible_index_blocks_no_other),
                T(nodes_without_an_index_in_the_standing_domain_are_named),
                T(the_fabric_object_has_room_after_many_domains),
                T(a_domain_without_assignments_is_dropped_when_it_is_idle),
                T(the_check_finds_every_wrong_assignment),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
