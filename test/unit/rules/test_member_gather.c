/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "model/daemon_report.h"
#include "rules/member_gather.h"

#define BOOT "bbbbbbbb-8f4e-4f0e-9f0a-000000000001"
#define OTHER_BOOT "bbbbbbbb-8f4e-4f0e-9f0a-000000000002"
#define CLAIM "cccccccc-8f4e-4f0e-9f0a-000000000001"
#define FABRIC "ffffffff-8f4e-4f0e-9f0a-000000000001"

enum { MOST = 4 };

/* The facts of one ComputeDomain, UID_A. */
struct world {
        struct arena *a;
        struct allocation claims[MOST];
        size_t n_claims;
        struct fabric_assignment assignments[MOST];
        struct fabric_domain domain;
        struct compute_domain_fabric fabric;
        struct node node; /* each node is like this one */
        bool no_node;
        const char *clique;
        struct daemon_pod daemon; /* each daemon is like this one */
        bool has_daemon;
};

static const struct node *node_of(void *u, const char *name) {
        struct world *w = u;
        return w->no_node ? NULL : &w->node;
}

static const char *clique_of(void *u, const char *node) {
        struct world *w = u;
        return w->clique;
}

static const struct daemon_pod *daemon_of(void *u, const char *node) {
        struct world *w = u;
        return w->has_daemon ? &w->daemon : NULL;
}

static const struct compute_domain_fabric *fabric_of(void *u, const char *clique) {
        struct world *w = u;
        return clique && *clique ? &w->fabric : NULL;
}

static void each_fabric(void *u, const char *domain_uid, member_fabric_fn *fn, void *v) {
        struct world *w = u;
        assert_string_equal(domain_uid, UID_A);
        fn(v, &w->fabric);
}

static void each_allocation(void *u, const char *domain_uid, member_allocation_fn *fn, void *v) {
        struct world *w = u;
        assert_string_equal(domain_uid, UID_A);
        for (size_t i = 0; i < w->n_claims; i++)
                fn(v, &w->claims[i]);
}

static struct member_source source(struct world *w) {
        return (struct member_source){ node_of,     clique_of,       daemon_of, fabric_of,
                                       each_fabric, each_allocation, w };
}

static size_t gathered(struct world *w, const struct member_facts **ret) {
        struct member_source s = source(w);
        return member_gather(&s, UID_A, "ns", w->a, ret);
}

static struct member_facts only(struct world *w) {
        const struct member_facts *list;
        assert_int_equal(gathered(w, &list), 1);
        return list[0];
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->a = arena_new(4096);
        w->clique = CLIQUE_1;
        w->node.boot_id = BOOT;
        w->domain =
                (struct fabric_domain){ .owner.uid = UID_A, .assignments = w->assignments, .imex.slots = 2 };
        w->fabric = (struct compute_domain_fabric){ .o.meta = { .name = CLIQUE_1, .uid = FABRIC },
                                                    .table_of = FABRIC,
                                                    .domains = &w->domain,
                                                    .n_domains = 1 };
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

static void claim_on(struct world *w, const char *node, const char *ns) {
        w->claims[w->n_claims++] = (struct allocation){ .ns = ns, .node = node, .domain_uid = UID_A };
}

static void list(struct world *w, const char *node, int64_t epoch, const char *state) {
        w->assignments[w->domain.n_assignments++] =
                (struct fabric_assignment){ .node = node, .index = 0, .epoch = epoch, .state = state };
}

/* The daemon reports that it is in this ComputeDomain with this epoch; NULL: in none. */
static void report(struct world *w, const char *uid, int64_t epoch, int64_t seen, const char *boot) {
        struct daemon_report r = { .claim = CLAIM,
                                   .boot_id = boot,
                                   .fabric = FABRIC,
                                   .has_assignment = uid,
                                   .seen = seen,
                                   .waits_for = "",
                                   .imex_version = "" };
        struct buf b = BUF_INIT(4096);
        if (uid) {
                snprintf(r.assignment.clique_id, sizeof r.assignment.clique_id, "%s", CLIQUE_1);
                snprintf(r.assignment.domain_uid, sizeof r.assignment.domain_uid, "%s", uid);
                r.assignment.epoch = epoch;
        }
        daemon_report_render(&r, &b);
        w->daemon.report = arena_strndup(w->a, b.p, b.n);
        w->has_daemon = true;
        buf_done(&b);
}

static void a_node_with_several_entries_is_one_member(void **state) {
        struct world *w = *state;
        const struct member_facts *all;
        claim_on(w, "n2", "ns");
        claim_on(w, "n1", "ns");
        claim_on(w, "n2", "ns");
        list(w, "n2", 3, "Leaving");
        list(w, "n2", 7, NULL);
        assert_int_equal(gathered(w, &all), 2);
        assert_string_equal(all[0].name, "n1");
        assert_true(all[0].wanted);
        assert_null(all[0].assignment);
        assert_null(all[0].fabric);
        assert_string_equal(all[1].name, "n2");
        assert_true(all[1].wanted);
        assert_int_equal(all[1].assignment->epoch, 7); /* the active one counts */
        assert_string_equal(all[1].fabric, CLIQUE_1);
        assert_string_equal(all[1].clique, CLIQUE_1);
        assert_ptr_equal(all[1].node, &w->node);
}

static void without_claims_and_assignments_there_is_no_member(void **state) {
        struct world *w = *state;
        const struct member_facts *all;
        claim_on(w, "n1", "another");
        assert_int_equal(gathered(w, &all), 0);
        list(w, "n1", 3, "Leaving");
        list(w, "n1", 7, NULL);
        assert_false(only(w).wanted);
        w->fabric.table_of = "an older object"; /* such an object lists no assignments */
        assert_int_equal(gathered(w, &all), 0);
}

static void a_member_has_joined_when_its_daemon_reports_the_assignment(void **state) {
        struct world *w = *state;
        list(w, "n1", 7, NULL);
        assert_null(only(w).pod);
        report(w, UID_A, 7, 7, BOOT);
        struct member_facts x = only(w);
        assert_ptr_equal(x.pod, &w->daemon.pod);
        assert_true(x.joined && x.seen && !x.busy);
        report(w, UID_A, 6, 6, BOOT);
        x = only(w);
        assert_true(!x.joined && !x.seen && !x.busy);
        report(w, NULL, 0, 7, BOOT);
        x = only(w);
        assert_true(!x.joined && x.seen && !x.busy);
        report(w, NULL, 0, 8, BOOT);
        assert_true(only(w).seen);
        report(w, UID_B, 7, 7, BOOT);
        x = only(w);
        assert_true(!x.joined && x.seen && x.busy);
        w->daemon.report = "{}"; /* cannot be decoded */
        x = only(w);
        assert_true(x.pod && !x.joined && !x.seen && !x.busy && !x.other_boot);
        w->daemon.report = NULL;
        x = only(w);
        assert_true(x.pod && !x.joined && !x.seen && !x.busy && !x.other_boot);
}

static void a_report_without_an_assignment_in_the_fabric_object(void **state) {
        struct world *w = *state;
        claim_on(w, "n1", "ns");
        report(w, UID_A, 7, 7, BOOT);
        struct member_facts x = only(w);
        assert_true(!x.joined && !x.seen && !x.busy);
}

static void a_report_of_another_boot_is_recognized(void **state) {
        struct world *w = *state;
        claim_on(w, "n1", "ns");
        report(w, UID_A, 7, 7, OTHER_BOOT);
        assert_string_equal(only(w).other_boot, OTHER_BOOT);
        w->node.boot_id = NULL; /* the Node does not state its boot */
        assert_null(only(w).other_boot);
        w->no_node = true;
        assert_null(only(w).other_boot);
        assert_null(only(w).node);
        w->no_node = false;
        w->node.boot_id = OTHER_BOOT;
        assert_null(only(w).other_boot);
}

static void a_node_without_a_daemon_may_be_occupied_by_another_computedomain(void **state) {
        struct world *w = *state;
        claim_on(w, "n1", "ns");
        assert_false(only(w).occupied);
        w->node.domain_uid = UID_A;
        assert_false(only(w).occupied);
        w->node.domain_uid = UID_B;
        assert_true(only(w).occupied);
        w->no_node = true;
        assert_false(only(w).occupied);
        w->no_node = false;
        report(w, NULL, 0, 0, BOOT); /* the daemon, and not the label, shows whether the node is free */
        assert_false(only(w).occupied);
}

static void a_partition_without_a_free_index_is_full(void **state) {
        struct world *w = *state;
        const struct member_facts *all;
        claim_on(w, "n9", "ns");
        assert_false(only(w).full);
        list(w, "n1", 3, NULL);
        assert_int_equal(gathered(w, &all), 2);
        assert_false(all[1].full);
        list(w, "n2", 4, NULL);
        assert_int_equal(gathered(w, &all), 3);
        assert_string_equal(all[2].name, "n9");
        assert_true(all[2].full);
        assert_false(all[0].full); /* it has an index */
        w->domain.owner.uid = UID_B;
        assert_false(only(w).full);
        w->clique = NULL;
        assert_false(only(w).full);
}

static void assigned_nodes_have_an_entry_for_each_assignment(void **state) {
        struct world *w = *state;
        struct member_source s = source(w);
        const struct member_facts *all;
        claim_on(w, "n9", "ns");
        assert_int_equal(member_gather_assigned(&s, UID_A, w->a, &all), 0);
        list(w, "n2", 3, "Leaving");
        list(w, "n1", 4, NULL);
        assert_int_equal(member_gather_assigned(&s, UID_A, w->a, &all), 2);
        assert_string_equal(all[0].name, "n2");
        assert_int_equal(all[0].assignment->epoch, 3);
        assert_string_equal(all[1].fabric, CLIQUE_1);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_node_with_several_entries_is_one_member),
                T(without_claims_and_assignments_there_is_no_member),
                T(a_member_has_joined_when_its_daemon_reports_the_assignment),
                T(a_report_without_an_assignment_in_the_fabric_object),
                T(a_report_of_another_boot_is_recognized),
                T(a_node_without_a_daemon_may_be_occupied_by_another_computedomain),
                T(a_partition_without_a_free_index_is_full),
                T(assigned_nodes_have_an_entry_for_each_assignment),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
