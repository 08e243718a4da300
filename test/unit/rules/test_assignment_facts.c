/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment_facts: the facts from cached objects and answers of the API server. */
#include "assignment_facts_world.h"

static void a_report_has_the_facts_that_were_written(void **state) {
        struct world *w = *state;
        const struct assignment_node *n = node_facts(w);
        assert_int_equal(n->trust, ASSIGNMENT_TRUST_FULL);
        assert_string_equal(n->report.pod_uid, "p1");
        assert_string_equal(n->report.claim, CLAIM);
        assert_string_equal(n->report.domain, DOMAIN);
        assert_int_equal(n->report.index, 3);
        assert_int_equal(n->report.epoch, 7);
        assert_true(n->report.ready);
        assert_string_equal(n->ip, "10.0.0.1");
        assert_string_equal(n->wanted, DOMAIN);
        assert_true(n->expected);
        assert_false(n->ending || n->dead || n->moved || n->released);
        assert_string_equal(w->asked, "");
}

static void an_unreadable_report_does_not_count(void **state) {
        struct world *w = *state;
        w->pods[0].report = "{\"claimUID\":\"no\"}";
        assert_null(node_facts(w)->report.pod_uid);
        assert_true(node_facts(w)->expected);
}

/* Its assignment is listed until there is proof that it has ended. */
/* failure: a daemon's Pod has failed with a READY report -> it is not ready, and keeps its assignment */
static void a_daemon_whose_pod_has_failed_is_not_ready_and_keeps_its_assignment(void **state) {
        struct world *w = *state;
        w->pods[0].pod.phase = "Failed";
        const struct assignment_node *n = node_facts(w);
        assert_false(n->report.ready);
        assert_string_equal(n->report.domain, DOMAIN);
        assert_int_equal(n->report.index, 3);
        assert_int_equal(n->report.epoch, 7);
        assert_string_equal(n->ip, ""); /* another Pod may get it */
}

/* failure: a daemon reports a partition that its slice does not confirm -> the report does not count in full
 * [tenants] */
static void a_report_counts_as_far_as_the_slice_confirms_it(void **state) {
        struct world *w = *state;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_FULL);
        w->object.n_domains = 0;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_FULL);
        w->slice = ELSEWHERE;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->slice = "";
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->slice = NULL;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        static const char *members[] = { "n1" };
        w->object.members = members;
        w->object.n_members = 1;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_RESERVE);
        w->object.n_members = 0;
        w->node.gpu_clique = CLIQUE; /* a label that another client may have written */
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->node.clique_id = ELSEWHERE;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->node.clique_id = CLIQUE;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_RESERVE);
}

/* failure: a node changes its partition while its pods run -> the old partition waits only for its report */
static void a_listed_node_in_another_partition_answers_a_recount(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        const struct assignment_node *n = node_facts(w);
        assert_int_equal(n->trust, ASSIGNMENT_TRUST_RESERVE);
        assert_string_equal(n->report.domain, DOMAIN);
        assert_string_equal(n->report.object, OBJECT);
        assert_false(n->moved);
        w->slice = NULL;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_RESERVE);
}

/* The sanitizer sees a read behind the end of the list. */
static void the_report_of_a_node_without_slice_and_assignment_does_not_count(void **state) {
        struct world *w = *state;
        struct fabric_assignment *list = xnew_n(struct fabric_assignment, 1);
        *list = w->assignment;
        list->node = "n2";
        w->domain.assignments = list;
        w->slice = ELSEWHERE;
        assert_int_equal(node_facts(w)->trust, ASSIGNMENT_TRUST_NONE);
        free(list);
}

static void left_epochs_of_an_earlier_pod_count_and_its_assignment_does_not(void **state) {
        struct world *w = *state;
        w->pods[0].report = report_of(w, CLAIM, ",\"left\":\"3,4\"");
        add_pod(w, "p2", 200, report_of(w, CLAIM_2, ",\"left\":\"7\""));
        const struct assignment_node *n = node_facts(w);
        assert_string_equal(n->report.pod_uid, "p2");
        assert_string_equal(n->report.claim, CLAIM_2);
        assert_null(n->report.domain);
        assert_int_equal(n->report.left[0], 7);
        assert_int_equal(n->n_more_left, 2);
        assert_false(n->ending);
        /* In any order of the Pods. */
        struct daemon_pod first = w->pods[0];
        w->pods[0] = w->pods[1];
        w->pods[1] = first;
        n = node_facts(w);
        assert_string_equal(n->report.pod_uid, "p2");
        assert_int_equal(n->n_more_left, 2);
}

static void a_daemon_ends_when_its_pod_is_deleted_or_replaced_or_not_selected(void **state) {
        struct world *w = *state;
        w->pods[0].pod.o.meta.deleted = 150;
        assert_true(node_facts(w)->ending);
        w->pods[0].pod.o.meta.deleted = 0;
        add_pod(w, "p2", 200, NULL);
        assert_true(node_facts(w)->ending);
        w->n_pods = 1;
        w->node.imex_daemon = NULL;
        assert_true(node_facts(w)->ending);
        w->node.imex_daemon = "true";
        w->pods[0].report = report_of(w, CLAIM, ",\"assignment\":\"" ELSEWHERE "/" DOMAIN "/3/7\"");
        assert_true(node_facts(w)->ending); /* it must leave another partition first */
}

/* failure: a Node is gone or out of service in a cache -> it counts as dead only after confirmation
 * [powered-off] */
static void a_powered_off_node_counts_as_dead_only_after_confirmation(void **state) {
        struct world *w = *state;
        w->taint.key = "node.kubernetes.io/out-of-service";
        w->node.taints = &w->taint;
        w->node.n_taints = 1;
        assert_false(node_facts(w)->dead);
        assert_non_null(strstr(w->asked, "node n1 -\n"));
        w->confirms = true;
        assert_true(node_facts(w)->dead);
        w->has_node = false;
        assert_false(node_facts(w)->dead); /* not missing for a minute yet */
        w->node_missing = true;
        assert_true(node_facts(w)->dead);
        w->stale = true;
        assert_false(node_facts(w)->dead);
        w->stale = false;
        w->confirms = false;
        assert_false(node_facts(w)->dead);
}

/* failure: a cache shows another boot -> it counts only after confirmation [rebooted] */
static void another_boot_counts_only_after_confirmation(void **state) {
        struct world *w = *state;
        w->node.boot_id = BOOT_2;
        assert_null(node_facts(w)->boot_id);
        assert_non_null(strstr(w->asked, "boot n1 " BOOT "\n"));
        w->confirms = true;
        assert_string_equal(node_facts(w)->boot_id, BOOT_2);
        /* A stale cache shows the boot before the recorded one. */
        w->confirms = false;
        w->node.boot_id = BOOT;
        w->assignment.boot_id = BOOT_2;
        w->pods[0].report = report_with(w, CLAIM, BOOT_2, "");
        assert_null(node_facts(w)->boot_id);
}

/* The API server has the Node of the backup until the kubelet has written its status again. */
/* failure: etcd is restored to before a reboot -> no Node disproves the report of the running boot [etcd] */
static void during_a_recount_a_node_does_not_prove_that_the_reported_boot_is_over(void **state) {
        struct world *w = *state;
        w->confirms = true;
        w->pods[0].report = report_with(w, CLAIM, BOOT_2, ",\"assignment\":\"" CLIQUE "/" DOMAIN "/3/7\"");
        assert_false(node_facts(w)->doubtful);
        w->object.recount = 8;
        assert_true(node_facts(w)->doubtful);
        assert_null(node_facts(w)->boot_id);
        w->object.recount = 0;
        w->rolled_back = true;
        assert_true(node_facts(w)->doubtful);
        w->node.boot_id = w->assignment.boot_id = BOOT_2;
        assert_false(node_facts(w)->doubtful);
}

static void a_node_is_doubtful_until_the_api_server_has_confirmed_its_end(void **state) {
        struct world *w = *state;
        assert_false(node_facts(w)->doubtful);
        w->node.boot_id = BOOT_2;
        assert_true(node_facts(w)->doubtful);
        w->confirms = true;
        assert_false(node_facts(w)->doubtful);
        w->node.boot_id = BOOT;
        w->taint.key = "node.kubernetes.io/out-of-service";
        w->node.taints = &w->taint;
        w->node.n_taints = 1;
        assert_false(node_facts(w)->doubtful);
        w->confirms = false;
        assert_true(node_facts(w)->doubtful);
        w->has_node = false; /* for less than a minute */
        assert_false(node_facts(w)->doubtful);
        w->node_missing = true;
        assert_true(node_facts(w)->doubtful);
}

/* failure: a plugin reports an unprepared daemon claim without a slice -> the report does not count [tenants]
 * */
static void a_plugins_report_counts_where_its_slice_confirms_the_partition(void **state) {
        struct world *w = *state;
        w->plugins[0].unprepared = CLAIM;
        assert_string_equal(node_facts(w)->unprepared, CLAIM);
        w->slice = NULL;
        assert_null(node_facts(w)->unprepared);
}

/* failure: a node changes its partition -> its old assignment ends when its daemon serves the new one */
static void a_daemon_that_serves_another_partition_has_left_this_one(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        w->pods[0].report = report_of(w, CLAIM, "");
        assert_false(node_facts(w)->moved); /* it still watches this object */
        w->pods[0].report = arena_printf(w->a, "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT
                                               "\",\"fabricUID\":\"" OTHER_OBJECT "\",\"seen\":0}");
        assert_true(node_facts(w)->moved);
        w->slice = CLIQUE;
        assert_false(node_facts(w)->moved);
}

static void epochs_seen_in_the_object_of_another_partition_do_not_count(void **state) {
        struct world *w = *state;
        w->pods[0].report =
                arena_printf(w->a, "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT
                                   "\",\"fabricUID\":\"" OTHER_OBJECT "\",\"seen\":900,\"recount\":8}");
        assert_string_equal(node_facts(w)->report.object, OTHER_OBJECT);
        w->pods[0].pod.clique_id = CLIQUE;
        assert_string_equal(node_facts(w)->report.object, OTHER_OBJECT);
        assert_int_equal(node_facts(w)->report.seen, 900);
        w->pods[0].pod.clique_id = ELSEWHERE;
        assert_null(node_facts(w)->report.object);
        assert_int_equal(node_facts(w)->report.seen, 0);
        assert_int_equal(node_facts(w)->report.recount, 0);
        assert_string_equal(node_facts(w)->report.pod_uid, "p1");
}

static void a_claim_counts_only_for_a_computedomain_of_its_namespace(void **state) {
        struct world *w = *state;
        assert_string_equal(node_facts(w)->wanted, DOMAIN);
        w->allocations[0].ns = "another";
        w->confirms = true;
        assert_null(node_facts(w)->wanted);
        w->allocations[0].ns = "ns";
        w->other_mode = true;
        assert_null(node_facts(w)->wanted);
}

static void a_node_of_another_partition_leaves_this_one(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        assert_null(node_facts(w)->wanted);
        assert_true(node_facts(w)->released);
        assert_string_equal(w->asked, "");
        w->object.n_domains = 0;
        assert_false(node_facts(w)->released);
        w->slice = ""; /* the slice names no other partition */
        assert_string_equal(node_facts(w)->wanted, DOMAIN);
}

/* failure: a slow watch shows no claim of a node -> it leaves only after confirmation */
static void a_node_is_released_only_after_confirmation(void **state) {
        struct world *w = *state;
        w->n_allocations = 0;
        assert_false(node_facts(w)->released);
        assert_string_equal(w->asked, "claim " DOMAIN " n1\n");
        w->confirms = true;
        assert_true(node_facts(w)->released);
        assert_false(w->facts.pause);
        w->stale = true;
        assert_false(node_facts(w)->released);
        assert_true(w->facts.pause);
}

/* failure: a stale cache shows an earlier report of a daemon -> its Pod does not count as fresh */
static void a_stale_report_does_not_prove_that_a_pod_is_fresh(void **state) {
        struct world *w = *state;
        w->stale = true;
        assert_true(node_facts(w)->report.served);
        assert_false(w->facts.pause);
        w->fresh_pods = true;
        assert_true(node_facts(w)->report.served);
        assert_true(w->facts.pause);
        w->stale = false;
        assert_false(node_facts(w)->report.served);
        assert_false(w->facts.pause);
}

/* failure: a cache lacks a ComputeDomain -> it counts as deleted only after confirmation */
static void a_domain_is_deleted_only_after_confirmation(void **state) {
        struct world *w = *state;
        w->has_cd = false;
        w->n_allocations = 0;
        node_facts(w);
        assert_false(w->facts.input.domains[0].gone);
        w->confirms = true;
        node_facts(w);
        assert_true(w->facts.input.domains[0].gone);
        assert_false(w->facts.pause);
        w->stale = true;
        node_facts(w);
        assert_false(w->facts.input.domains[0].gone);
}

static void a_node_is_in_the_standing_domain_until_it_is_cordoned_and_unused(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        w->is_standing = w->other_mode = true; /* each ComputeDomain has only an assigned channel */
        w->object.n_domains = 0;
        w->pods[0].report = report_of(w, CLAIM, "");
        w->n_allocations = 0;
        assert_string_equal(node_facts(w)->wanted, standing);
        w->node.unschedulable = true;
        assert_null(node_facts(w)->wanted);
        w->n_allocations = 1;
        assert_string_equal(node_facts(w)->wanted, standing);
        w->slice = NULL; /* without a slice, its partition is unknown */
        assert_null(node_facts(w)->wanted);
        w->slice = ""; /* it has no NVLink */
        assert_null(node_facts(w)->wanted);
}

/* And the standing domain does not count as one of a deleted ComputeDomain. */
static void without_a_standing_domain_its_nodes_are_released(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        w->n_allocations = 0;
        w->domain.owner = (struct fabric_owner){ "ComputeDomainFabric", NULL, CLIQUE, standing };
        w->pods[0].report =
                report_of(w, CLAIM, arena_printf(w->a, ",\"assignment\":\"" CLIQUE "/%s/3/7\"", standing));
        assert_true(node_facts(w)->released);
        assert_string_equal(w->asked, "");
        w->slice = NULL;
        assert_true(node_facts(w)->released);
        w->confirms = true;
        w->object.n_domains = 0; /* the object was lost */
        node_facts(w);
        assert_int_equal(w->facts.input.n_domains, 1);
        assert_true(w->facts.input.domains[0].is_standing);
        assert_false(w->facts.input.domains[0].gone);
        w->object.n_domains = 1;
        w->is_standing = true;
        w->node.unschedulable = true;
        assert_false(node_facts(w)->released); /* without a slice the node stays as it is */
}

/* failure: somebody creates a fabric object from an old copy -> it is recognized as a copy [etcd] */
static void a_copy_of_a_fabric_object_is_recognized(void **state) {
        struct world *w = *state;
        node_facts(w);
        assert_false(w->facts.input.copy);
        w->object.table_of = OTHER_OBJECT;
        node_facts(w);
        assert_true(w->facts.input.copy);
        w->object.table_of = NULL; /* just created */
        node_facts(w);
        assert_false(w->facts.input.copy);
}

/* ---- missing objects, and several objects ---- */

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_report_has_the_facts_that_were_written),
                T(an_unreadable_report_does_not_count),
                T(a_daemon_whose_pod_has_failed_is_not_ready_and_keeps_its_assignment),
                T(a_report_counts_as_far_as_the_slice_confirms_it),
                T(a_listed_node_in_another_partition_answers_a_recount),
                T(the_report_of_a_node_without_slice_and_assignment_does_not_count),
                T(left_epochs_of_an_earlier_pod_count_and_its_assignment_does_not),
                T(a_daemon_ends_when_its_pod_is_deleted_or_replaced_or_not_selected),
                T(a_powered_off_node_counts_as_dead_only_after_confirmation),
                T(another_boot_counts_only_after_confirmation),
                T(during_a_recount_a_node_does_not_prove_that_the_reported_boot_is_over),
                T(a_node_is_doubtful_until_the_api_server_has_confirmed_its_end),
                T(a_plugins_report_counts_where_its_slice_confirms_the_partition),
                T(a_daemon_that_serves_another_partition_has_left_this_one),
                T(epochs_seen_in_the_object_of_another_partition_do_not_count),
                T(a_claim_counts_only_for_a_computedomain_of_its_namespace),
                T(a_node_of_another_partition_leaves_this_one),
                T(a_node_is_released_only_after_confirmation),
                T(a_stale_report_does_not_prove_that_a_pod_is_fresh),
                T(a_domain_is_deleted_only_after_confirmation),
                T(a_node_is_in_the_standing_domain_until_it_is_cordoned_and_unused),
                T(without_a_standing_domain_its_nodes_are_released),
                T(a_copy_of_a_fabric_object_is_recognized),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
