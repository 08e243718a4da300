/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment_facts: missing objects, and several objects. */
#include "assignment_facts_world.h"

#define DOMAIN_2 "aaaaaaaa-0000-4000-8000-000000000002"

/* The object lists the standing domain of the partition, with or without the node. */
static void add_standing(struct world *w, const char *state, size_t n_assignments) {
        struct fabric_domain *d = &w->more_domains[0];
        char uid[37];
        fabric_standing_uid(CLIQUE, uid);
        w->more_assignments[0] = w->assignment;
        w->more_assignments[0].state = state;
        w->more_assignments[0].epoch = 8;
        *d = w->domain;
        d->owner = (struct fabric_owner){ "ComputeDomainFabric", NULL, CLIQUE, arena_strdup(w->a, uid) };
        d->assignments = w->more_assignments;
        d->n_assignments = n_assignments;
}

static void a_partition_without_an_object_has_facts(void **state) {
        struct world *w = *state;
        w->no_object = true;
        const struct assignment_node *n = node_facts(w);
        assert_string_equal(n->wanted, DOMAIN);
        assert_string_equal(n->report.domain, DOMAIN);
        assert_null(w->facts.input.object);
        assert_int_equal(w->facts.input.n_old, 0);
        assert_int_equal(w->facts.input.n_domains, 1);
        w->slice = NULL; /* nothing else confirms the report */
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->has_node = false;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->has_node = true;
        w->node.clique_id = CLIQUE; /* the annotation on the Node outlives object and slice */
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_RESERVE);
}

static void of_two_equally_old_pods_the_name_decides(void **state) {
        struct world *w = *state;
        add_pod(w, "p0", 100, report_of(w, CLAIM_2, ""));
        assert_string_equal(node_facts(w)->report.pod_uid, "p1");
        w->pods[1].pod.o.meta.created = 101;
        assert_string_equal(node_facts(w)->report.pod_uid, "p0");
        w->pods[1].pod.o.meta.created = 100;
        w->pods[1].pod.o.meta.name = w->pods[1].pod.o.meta.uid = "p2";
        assert_string_equal(node_facts(w)->report.pod_uid, "p2");
}

static void left_epochs_of_all_earlier_pods_count(void **state) {
        struct world *w = *state;
        w->pods[0].report = report_of(w, CLAIM, ",\"left\":\"3,4\"");
        add_pod(w, "p2", 200, report_of(w, CLAIM_2, ""));
        add_pod(w, "p3", 300, report_of(w, CLAIM_2, ",\"left\":\"5\""));
        const struct assignment_node *n = node_facts(w);
        assert_string_equal(n->report.pod_uid, "p3");
        assert_int_equal(n->n_more_left, 2);
        w->pods[1].report = report_of(w, CLAIM_2, ",\"left\":\"6\"");
        n = node_facts(w);
        assert_int_equal(n->n_more_left, 3);
        assert_int_equal(n->more_left[0], 3);
        assert_int_equal(n->more_left[2], 6);
}

static void a_daemon_is_expected_where_one_may_run(void **state) {
        struct world *w = *state;
        w->node.imex_daemon = NULL;
        assert_true(node_facts(w)->expected);
        w->pods[0].pod.phase = "Failed";
        assert_false(node_facts(w)->expected);
        w->n_pods = 0;
        assert_false(node_facts(w)->expected);
        w->node.imex_daemon = "true";
        assert_true(node_facts(w)->expected);
        w->has_node = false;
        assert_false(node_facts(w)->expected);
}

static void a_daemon_pod_may_have_no_address_yet(void **state) {
        struct world *w = *state;
        w->pods[0].pod.n_ips = 0;
        assert_string_equal(node_facts(w)->ip, "");
}

static void a_daemon_that_has_seen_no_object_has_not_moved(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        w->pods[0].report = arena_printf(w->a, "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT
                                               "\",\"fabricUID\":\"\",\"seen\":0}");
        assert_false(node_facts(w)->moved);
        w->pods[0].report = NULL;
        assert_false(node_facts(w)->moved);
}

static void the_newest_plugin_pod_that_has_reported_counts(void **state) {
        struct world *w = *state;
        w->plugins[0].unprepared = CLAIM;
        w->plugins[0].o.meta.created = 200;
        w->plugins[1].unprepared = CLAIM_2;
        w->plugins[1].o.meta.created = 100;
        w->plugins[2].o.meta.created = 300; /* it has not reported yet */
        w->n_plugins = 3;
        assert_string_equal(node_facts(w)->unprepared, CLAIM);
        w->plugins[1].o.meta.created = 199;
        assert_string_equal(node_facts(w)->unprepared, CLAIM);
        w->plugins[1].o.meta.created = 200; /* now the later one in the list counts */
        assert_string_equal(node_facts(w)->unprepared, CLAIM_2);
        w->n_plugins = 0;
        assert_null(node_facts(w)->unprepared);
}

/* A boot ID of another node's assignment, or a missing one, causes no question about this node. */
static void every_recorded_boot_of_the_node_must_have_ended(void **state) {
        struct world *w = *state;
        w->node.boot_id = BOOT_2;
        w->pods[0].report = report_with(w, CLAIM, BOOT_2, "");
        w->more_assignments[0] = w->assignment;
        w->more_assignments[0].node = "n2";
        w->more_assignments[1] = w->assignment;
        w->more_assignments[1].boot_id = NULL;
        w->domain.assignments = w->more_assignments;
        w->domain.n_assignments = 2;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
        assert_string_equal(w->asked, "");
        w->more_assignments[0].node = "n1";
        assert_null(node_facts(w)->boot_id);
        assert_string_equal(w->asked, "boot n1 " BOOT "\n"); /* no other question was asked */
        assert_false(node_facts(w)->doubtful);               /* the daemon has reported since */
        w->n_pods = 0;
        assert_null(node_facts(w)->boot_id);
        assert_false(node_facts(w)->doubtful);
        w->confirms = true;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
        w->node.boot_id = NULL;
        assert_null(node_facts(w)->boot_id);
        w->node.boot_id = BOOT_2;
        w->confirms = false;
        w->more_assignments[0].node = "n2";
        w->more_assignments[1].boot_id = BOOT;
        assert_null(node_facts(w)->boot_id);
        assert_string_equal(w->asked, "boot n1 " BOOT "\n");
        w->domain.n_assignments = 1;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
}

static void the_boot_that_a_report_names_must_have_ended(void **state) {
        struct world *w = *state;
        w->node.boot_id = BOOT_2;
        w->object.n_domains = 0;
        assert_null(node_facts(w)->boot_id);
        assert_string_equal(w->asked, "boot n1 " BOOT "\n");
        w->confirms = true;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
        w->confirms = false;
        w->n_pods = 0;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
}

static void a_claim_of_an_unknown_computedomain_does_not_count(void **state) {
        struct world *w = *state;
        w->has_cd = false;
        w->confirms = true;
        assert_null(node_facts(w)->wanted);
        assert_true(node_facts(w)->released);
}

/* The node has claims of several ComputeDomains. It stays in the IMEX domain that it need not leave. */
static void a_node_that_is_listed_twice_is_in_the_domain_that_it_need_not_leave(void **state) {
        struct world *w = *state;
        add_standing(w, "Leaving", 1);
        w->more_domains[1] = w->domain;
        w->object.domains = w->more_domains;
        w->object.n_domains = 2;
        w->n_allocations = 0;
        assert_false(node_facts(w)->released);
        assert_string_equal(w->asked, "claim " DOMAIN " n1\n");
        w->more_domains[1].n_assignments = 0; /* only the IMEX domain that it leaves lists it */
        assert_true(node_facts(w)->released);
        assert_string_equal(w->asked, "");
}

/* The isolation was changed to `channel` while the node was in the IMEX domain of a ComputeDomain. */
static void
an_assignment_of_another_isolation_ends_before_the_domain_that_stands_takes_the_node(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        w->is_standing = w->other_mode = true;
        w->n_allocations = 0;
        assert_null(node_facts(w)->wanted);
        assert_false(w->facts.input.nodes[0].released);
        w->confirms = true;
        assert_string_equal(node_facts(w)->wanted, standing);
        w->has_node = false;
        assert_null(node_facts(w)->wanted);
}

static void a_node_without_a_slice_stays_in_the_standing_domain(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        add_standing(w, NULL, 1);
        w->object.domains = w->more_domains;
        w->is_standing = w->other_mode = true;
        w->n_allocations = 0;
        w->slice = NULL;
        assert_string_equal(node_facts(w)->wanted, standing);
        w->node.unschedulable = true;
        assert_null(node_facts(w)->wanted);
        assert_false(node_facts(w)->released);
        w->slice = CLIQUE;
        assert_true(node_facts(w)->released); /* it is cordoned */
        w->has_node = false;
        assert_false(node_facts(w)->released); /* it is not known whether it was cordoned */
}

static void each_domain_is_named_once_and_idle_only_without_assignments(void **state) {
        struct world *w = *state;
        add_standing(w, NULL, 0);
        w->more_domains[1] = w->domain;
        w->object.domains = w->more_domains;
        w->object.n_domains = 2;
        w->pods[0].report = report_of(w, CLAIM, ",\"assignment\":\"" CLIQUE "/" DOMAIN_2 "/4/9\"");
        w->n_allocations = 0;
        w->stale = true;
        node_facts(w);
        assert_int_equal(w->facts.input.n_domains, 3);
        assert_true(w->facts.input.domains[0].is_standing && w->facts.input.domains[0].idle);
        assert_false(w->facts.input.domains[1].is_standing || w->facts.input.domains[1].idle);
        assert_string_equal(w->facts.input.domains[2].owner.uid, DOMAIN_2);
        assert_false(w->facts.input.domains[2].gone);
        assert_null(w->facts.input.domains[2].owner.name);
        assert_true(w->facts.pause);
        w->is_busy = true;
        w->n_allocations = 1; /* no other end is paused */
        node_facts(w);
        assert_false(w->facts.input.domains[0].idle);
        assert_true(w->facts.pause);
        /* An entry whose owner is a partition is a standing domain, even with the name of another
         * partition. */
        w->more_domains[0].owner.uid = "cccccccc-0000-8000-8000-000000000001";
        node_facts(w);
        assert_true(w->facts.input.domains[0].is_standing);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_partition_without_an_object_has_facts),
                T(of_two_equally_old_pods_the_name_decides),
                T(left_epochs_of_all_earlier_pods_count),
                T(a_daemon_is_expected_where_one_may_run),
                T(a_daemon_pod_may_have_no_address_yet),
                T(a_daemon_that_has_seen_no_object_has_not_moved),
                T(the_newest_plugin_pod_that_has_reported_counts),
                T(every_recorded_boot_of_the_node_must_have_ended),
                T(the_boot_that_a_report_names_must_have_ended),
                T(a_claim_of_an_unknown_computedomain_does_not_count),
                T(a_node_that_is_listed_twice_is_in_the_domain_that_it_need_not_leave),
                T(an_assignment_of_another_isolation_ends_before_the_domain_that_stands_takes_the_node),
                T(a_node_without_a_slice_stays_in_the_standing_domain),
                T(each_domain_is_named_once_and_idle_only_without_assignments),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
