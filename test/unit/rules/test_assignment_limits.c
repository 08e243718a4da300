/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment with the first and the last index, epoch and node. test_assignment_bounds.c has the other
 * limits. */
#include "assignment_objects.h"

/* FNV-1a of "a" is 0xe40c292c; the port has its upper bits. */
static void the_port_depends_on_the_infix(void **state) {
        assert_int_equal(assignment_port("a"), ASSIGNMENT_PORT_FIRST + 0xe40);
        assert_int_not_equal(assignment_port("b"), assignment_port("a"));
}

static void reports_at_the_bounds_of_epochs_and_indices_count(void **state) {
        static const struct {
                int64_t epoch, index;
                bool counts;
        } rows[] = { { 0, 3, true },
                     { -1, 3, false },
                     { 10 + DAEMON_REPORT_EPOCHS_AHEAD, 3, true },
                     { 11 + DAEMON_REPORT_EPOCHS_AHEAD, 3, false },
                     { 9, -1, false },
                     { 9, IMEX_SLOTS_MAX - 1, true },
                     { 9, IMEX_SLOTS_MAX, false } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct world *w = world_new();
                struct assignment_node *n = add_node(w, "n0");
                add_domain(w, "d");
                n->report.domain = "d";
                n->report.epoch = rows[i].epoch;
                n->report.index = rows[i].index;
                add_node(w, "n1")->report.seen = 10;
                step(w);
                if (!of(w, "d", "n0") == rows[i].counts)
                        fail_msg("row %zu", i);
                world_free(w);
        }
        (void)state;
}

/* The bound itself does not exceed the largest number. */
static void an_epoch_above_a_bound_near_the_largest_number_does_not_count(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        w->in.epoch = INT64_MAX - 1 - DAEMON_REPORT_EPOCHS_AHEAD;
        n->report.domain = "d";
        n->report.epoch = INT64_MAX;
        step(w);
        assert_null(of(w, "d", "n0"));
}

static void an_epoch_of_1_that_two_nodes_have_seen_is_a_base(void **state) {
        struct world *w = *state;
        the_object_is_lost(w);
        add_runner(w, "n0", 5, 1 + DAEMON_REPORT_EPOCHS_AHEAD);
        add_node(w, "n1")->report.seen = 1;
        step(w);
        assert_int_equal(of(w, "d", "n0")->index, 5);
}

static void the_epochs_below_the_last_one_are_assigned(void **state) {
        for (int i = 0; i < 2; i++) {
                struct world *w = world_new();
                add_node(w, "n0")->wanted = "d";
                add_domain(w, "d");
                w->in.epoch = INT64_MAX - 2 + i;
                step(w);
                assert_int_equal(w->out.n_domains, i == 0);
                world_free(w);
        }
        (void)state;
}

static void the_next_epoch_of_a_node_overtakes_the_listed_one(void **state) {
        struct world *w = *state;
        struct fabric_assignment x = listed("n0", 3, 15, NULL);
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        write_object(w, &x, 1);
        n->wanted = "d";
        n->report.domain = "d";
        n->report.index = 4;
        n->report.epoch = 16;
        step(w);
        assert_int_equal(of(w, "d", "n0")->epoch, 16);
        assert_int_equal(of(w, "d", "n0")->index, 4);
        assert_int_not_equal(w->out.recount, 0); /* the object lacked the epoch */
}

/* etcd was restored: the object lists a higher epoch than it states. */
static void the_last_epoch_of_the_last_domain_is_not_given_again(void **state) {
        struct world *w = *state;
        struct fabric_assignment x = listed("n0", 0, 9, NULL),
                                 y[] = { listed("n1", 0, 11, NULL), listed("n2", 1, 12, NULL) };
        add_node(w, "n0");
        add_node(w, "n1");
        add_node(w, "n2");
        struct fabric_domain d[] = {
                { .owner.uid = "d", .imex.slots = 2, .assignments = &x, .n_assignments = 1 },
                { .owner.uid = "e", .imex.slots = 2, .assignments = y, .n_assignments = 2 }
        };
        w->in.old = d;
        w->in.n_old = 2;
        w->in.epoch = 11;
        step(w);
        assert_int_equal(w->out.epoch, 12);
}

static void a_sign_of_a_restore_on_the_last_node_starts_a_recount(void **state) {
        struct world *w = *state;
        add_node(w, "n0")->report.seen = 10;
        struct assignment_node *n = add_node(w, "n1");
        step(w);
        assert_int_equal(w->out.recount, 0);
        n->report.object = "another object";
        step(w);
        assert_int_equal(w->out.recount, 11);
        n->report.object = OBJECT;
        n->report.seen = w->nodes[0].report.seen = n->report.recount = w->nodes[0].report.recount = 11;
        step(w);
        assert_int_equal(w->out.recount, 0);
        n->report.seen = 12; /* one more than the object and the other node know */
        step(w);
        assert_int_equal(w->out.recount, 13);
}

/* Nothing is left of the reservation in this write. */
static void a_node_whose_reservation_yields_gets_another_index_at_once(void **state) {
        struct world *w = *state;
        struct fabric_assignment list[] = { listed("n1", 0, 15, NULL),
                                            { .node = "n0", .index = 0, .epoch = 14, .state = "Reserved" } };
        add_node(w, "n0")->wanted = "d";
        add_node(w, "n1")->wanted = "d";
        add_domain(w, "d");
        list[0].claim = "claim-n1";
        list[0].boot_id = "boot-n1";
        write_object(w, list, 2);
        step(w);
        assert_int_equal(of(w, "d", "n1")->index, 0);
        assert_int_equal(of(w, "d", "n0")->index, 1);
}

static void assignments_are_listed_by_index_and_name(void **state) {
        static const char *const wanted[] = { "n4", "n3", "n2", "n0", "n1" };
        for (int order = 0; order < 2; order++) {
                struct world *w = world_new();
                struct fabric_assignment list[] = { listed("n1", 7, 15, "Leaving"),
                                                    listed("n0", 7, 14, "Leaving"), listed("n2", 6, 13, NULL),
                                                    listed("n3", 1, 12, NULL), listed("n4", 0, 11, NULL) };
                struct fabric_assignment reversed[] = { list[4], list[3], list[2], list[1], list[0] };
                for (int i = 0; i < 5; i++) {
                        struct assignment_node *n = add_node(w, arena_printf(w->a, "n%d", i));
                        n->report.claim = "claim-n0";
                        n->report.boot_id = "boot-n0";
                }
                add_domain(w, "d");
                write_object(w, order ? reversed : list, ARRAY_LEN(list));
                step(w);
                assert_int_equal(w->out.domains[0].n_assignments, ARRAY_LEN(wanted));
                for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
                        assert_string_equal(w->out.domains[0].assignments[i].node, wanted[i]);
                world_free(w);
        }
        (void)state;
}

static void a_change_of_the_last_assignment_is_a_change(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        assert_false(w->out.changed);
        n->wanted = NULL;
        n->released = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        assert_true(w->out.changed);
        step(w);
        assert_false(w->out.changed);
}

static void a_node_that_is_leaving_the_last_domain_shows_its_address_there_only(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        add_domain(w, "e");
        other->wanted = "e";
        step(w);
        obey(w, other);
        other->wanted = "d";
        step(w);
        assert_state(of(w, "e", "n1"), "Leaving");
        assert_null(of(w, "d", "n1")->ip);
        leave(w, other);
        step(w);
        assert_string_equal(of(w, "d", "n1")->ip, "ip-n1");
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
}

/* The object was restored. It lists an assignment that the node is leaving, but not the one that the node
 * runs now. The controller's cache shows an earlier report of the node. */
/* failure: a fabric object is restored while a cache is stale -> it gives no address in two ComputeDomains
 * [etcd] */
static void a_recount_adds_no_address_before_the_node_answers(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        n->wanted = NULL;
        n->released = true;
        step(w);
        assert_state(of(w, "d", "n0"), "Leaving");
        w->in.rolled_back = true;
        n->wanted = "d";
        n->released = false;
        step(w);
        assert_state(of(w, "d", "n0"), "");
        assert_null(of(w, "d", "n0")->ip);
        step(w);
        assert_null(of(w, "d", "n0")->ip);
        n->report.recount = w->out.recount;
        n->report.object = "another object";
        step(w);
        assert_null(of(w, "d", "n0")->ip);
        n->report.object = OBJECT;
        step(w);
        assert_int_equal(w->out.recount, 0);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
}

/* failure: a fabric object is deleted or restored -> addresses that peers use stay listed [etcd] */
static void a_recount_removes_no_address(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w);
        w->in.rolled_back = true;
        step(w);
        assert_int_not_equal(w->out.recount, 0);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
        w->in.object = NULL;
        w->in.old = NULL;
        w->in.n_old = 0;
        step(w);
        assert_int_not_equal(w->out.recount, 0);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
        w->in.object = "another object";
        step(w);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
}

/* The peers of a node connect to each address that the object shows. */
/* failure: a node without a claim reports an assignment in another tenant's IMEX domain -> its address is not
 * published [tenants] */
static void a_report_without_a_claim_publishes_no_address(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        other->report.domain = "d";
        other->report.index = 5;
        other->report.epoch = other->report.seen = w->in.epoch;
        other->report.recount = INT64_MAX; /* it has answered each recount */
        for (int i = 0; i < 3; i++) {
                step(w);
                assert_state(of(w, "d", "n1"), "");
                assert_null(of(w, "d", "n1")->ip);
                assert_string_equal(of(w, "d", "n0")->ip, n->ip);
                n->report.recount = w->out.recount;
        }
        assert_int_equal(w->out.recount, 0);
        w->in.object = NULL; /* the next object gets the addresses of its predecessor */
        w->in.old = NULL;
        w->in.n_old = 0;
        step(w);
        assert_null(of(w, "d", "n1")->ip);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
}

/* failure: a lost fabric object lacks a daemon's assignment -> its peers see its address when its claim is
 * known [etcd] */
static void the_address_is_published_when_the_claim_is_known(void **state) {
        struct world *w = *state;
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->report.domain = "d";
        n->report.index = 5;
        n->report.epoch = n->report.seen = w->in.epoch;
        step(w);
        n->report.recount = w->out.recount;
        step(w);
        assert_state(of(w, "d", "n0"), "");
        assert_int_equal(of(w, "d", "n0")->index, 5);
        assert_null(of(w, "d", "n0")->ip);
        n->wanted = "d";
        step(w);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
        n->wanted = NULL; /* not released yet: its peers continue */
        step(w);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
}

/* failure: a node reports ever more IMEX domains -> the fabric object lists few of them, and other nodes
 * continue [tenants] */
static void reports_add_a_limited_number_of_domains_of_a_node(void **state) {
        struct world *w = *state;
        struct assignment_node *n = running(w), *other = add_node(w, "n1");
        for (int i = 0; i < 2 * ASSIGNMENT_NODE_MAX; i++) {
                other->report.domain = arena_printf(w->a, "x-%d", i);
                other->report.epoch = w->in.epoch + 1;
                other->report.recount = INT64_MAX;
                step(w);
                n->report.recount = w->out.recount;
        }
        assert_int_equal(w->out.n_domains, 1 + ASSIGNMENT_NODE_MAX);
        assert_string_equal(of(w, "d", "n0")->ip, n->ip);
        other->report.domain = "x-3"; /* a listed one still counts */
        other->report.epoch = of(w, "x-3", "n1")->epoch;
        step(w);
        step(w);
        assert_int_equal(w->out.recount, 0);
        struct assignment_node *third = add_node(w, "n2");
        third->wanted = "d";
        step(w);
        assert_non_null(of(w, "d", "n2"));
}

/* failure: the fabric object does not exist yet -> the standing domain is not reported as full [standing] */
static void a_standing_domain_without_an_object_is_not_full(void **state) {
        struct world *w = *state;
        w->in.object = NULL;
        w->in.epoch = 0;
        add_domain(w, "d")->is_standing = true;
        add_node(w, "n0")->wanted = "d";
        w->nodes[0].report.object = "";
        step(w);
        assert_int_equal(w->out.n_full, 0);
        assert_int_equal(w->out.slots, 0);
}

static void a_daemon_that_reports_no_claim_has_no_assignment(void **state) {
        struct world *w = *state;
        running(w);
        struct assignment_node *n = add_node(w, "n1");
        n->report.claim = NULL;
        n->report.ready = true;
        n->remove = n->report.pod_uid;
        step(w);
        assert_int_equal(w->out.n_removals, 1);
}

/* The sanitizer sees a read behind the end of the lists. */
static void no_list_is_read_beyond_its_end(void **state) {
        struct world *w = *state;
        struct fabric_domain *old = xnew_n(struct fabric_domain, 1);
        struct fabric_assignment *list = xnew_n(struct fabric_assignment, 1);
        struct assignment_domain *domains = xnew_n(struct assignment_domain, 1);
        add_runner(w, "n0", 3, 15);
        add_node(w, "n1")->wanted = "d";
        add_domain(w, "d");
        list[0] = listed("n1", 3, 12, "Leaving");
        write_object(w, list, 1);
        *old = *w->in.old;
        *domains = w->domains[0];
        domains->owner.uid = "e";
        w->in.old = old;
        w->in.domains = domains;
        w->in.fresh_pod_per_domain = true;
        assignment_make(&w->in, w->a, &w->out);
        assert_null(assignment_check(&w->in, &w->out, w->a));
        assert_non_null(of(w, "d", "n0"));
        w->nodes[0].report = (struct assignment_report){
                .pod_uid = "pod-n0", .claim = "claim-n0", .boot_id = "boot-n0", .object = OBJECT
        };
        assignment_make(&w->in, w->a, &w->out);
        assert_int_equal(w->out.recount, 0);
        free(old);
        free(list);
        free(domains);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(the_port_depends_on_the_infix),
                T(reports_at_the_bounds_of_epochs_and_indices_count),
                T(an_epoch_above_a_bound_near_the_largest_number_does_not_count),
                T(an_epoch_of_1_that_two_nodes_have_seen_is_a_base),
                T(the_epochs_below_the_last_one_are_assigned),
                T(the_next_epoch_of_a_node_overtakes_the_listed_one),
                T(the_last_epoch_of_the_last_domain_is_not_given_again),
                T(a_sign_of_a_restore_on_the_last_node_starts_a_recount),
                T(a_node_whose_reservation_yields_gets_another_index_at_once),
                T(assignments_are_listed_by_index_and_name),
                T(a_change_of_the_last_assignment_is_a_change),
                T(a_node_that_is_leaving_the_last_domain_shows_its_address_there_only),
                T(a_recount_adds_no_address_before_the_node_answers),
                T(a_recount_removes_no_address),
                T(reports_add_a_limited_number_of_domains_of_a_node),
                T(a_report_without_a_claim_publishes_no_address),
                T(the_address_is_published_when_the_claim_is_known),
                T(a_standing_domain_without_an_object_is_not_full),
                T(a_daemon_that_reports_no_claim_has_no_assignment),
                T(no_list_is_read_beyond_its_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
