/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment_facts: what cached objects and answers of the API server come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rules/assignment_facts.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define ELSEWHERE "3f7c1b2a-1111-2222-3333-444455556666.2"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define OTHER_OBJECT "00000000-0000-4000-8000-000000000002"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"
#define CLAIM "dddddddd-0000-4000-8000-000000000001"
#define CLAIM_2 "dddddddd-0000-4000-8000-000000000002"
#define BOOT "bbbbbbbb-0000-4000-8000-000000000001"
#define BOOT_2 "bbbbbbbb-0000-4000-8000-000000000002"

/* A partition with the node "n1", whose caches a test changes. */
struct world {
        struct arena *a;
        struct compute_domain_fabric object;
        struct fabric_domain domain;
        struct fabric_assignment assignment;
        struct node node;
        struct taint taint;
        bool has_node, node_gone, stale, stands, other_mode;
        const char *slice; /* NULL: there is none */
        struct daemon_pod pods[2];
        size_t n_pods;
        struct plugin_pod plugin;
        struct compute_domain cd;
        bool has_cd;
        struct grant grants[2];
        size_t n_grants;
        const char *removes;
        bool confirms; /* the API server answers no to each question */
        char asked[300];
        struct assignment_facts facts;
};

static const struct node *get_node(void *u, const char *name) {
        struct world *w = u;
        return w->has_node && streq(name, "n1") ? &w->node : NULL;
}

static bool is_node_gone(void *u, const char *name) {
        return ((struct world *)u)->node_gone;
}

static const char *get_slice(void *u, const char *node) {
        return ((struct world *)u)->slice;
}

static const char *get_fabric(void *u, const char *clique) {
        return streq(clique, ELSEWHERE) ? OTHER_OBJECT : NULL;
}

static void each_daemon(void *u, const char *node, assignment_daemon_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_pods; i++)
                fn(v, &w->pods[i]);
}

static void each_plugin(void *u, const char *node, assignment_plugin_fn *fn, void *v) {
        fn(v, &((struct world *)u)->plugin);
}

static void each_grant(void *u, const char *node, assignment_grant_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_grants; i++)
                fn(v, &w->grants[i]);
}

static const struct compute_domain *get_domain(void *u, const char *uid) {
        struct world *w = u;
        return w->has_cd && streq(uid, DOMAIN) ? &w->cd : NULL;
}

static bool takes(void *u, const struct compute_domain *cd, const char *current) {
        return !((struct world *)u)->other_mode;
}

static bool is_idle(void *u, const struct fabric_domain *d) {
        return true;
}

static const char *get_removal(void *u, const char *node) {
        return ((struct world *)u)->removes;
}

static bool is_absent(void *u, enum assignment_question q, const char *name, const char *other) {
        static const char *const words[] = { "node", "boot", "claim", "domain" };
        struct world *w = u;
        size_t n = strlen(w->asked);
        snprintf(w->asked + n, sizeof w->asked - n, "%s %s %s\n", words[q], name, str_or(other, "-"));
        return w->confirms;
}

static const char *report_with(struct world *w, const char *claim, const char *boot, const char *more) {
        return arena_printf(w->a, "{\"claimUID\":\"%s\",\"bootID\":\"%s\",\"fabricUID\":\"" OBJECT "\",\"seen\":7%s}", claim,
                            boot, more);
}

static const char *report_of(struct world *w, const char *claim, const char *more) {
        return report_with(w, claim, BOOT, more);
}

static struct daemon_pod *add_pod(struct world *w, const char *uid, int64_t created, const char *report) {
        struct daemon_pod *p = &w->pods[w->n_pods++];
        static struct pod_ip ip = { "10.0.0.1" };
        *p = (struct daemon_pod){ .report = report };
        p->pod.o.meta = (struct kube_meta){ .ns = "driver", .name = uid, .uid = uid, .rv = "1", .created = created };
        p->pod.node = "n1";
        p->pod.phase = "Running";
        p->pod.ips = &ip;
        p->pod.n_ips = 1;
        return p;
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->a = arena_new(4096);
        w->assignment = (struct fabric_assignment){ .node = "n1", .index = 3, .epoch = 7, .claim = CLAIM, .boot_id = BOOT };
        w->domain = (struct fabric_domain){ .owner = { "ComputeDomain", "ns", "cd", DOMAIN },
                                            .infix = "0123456789",
                                            .slots = 18,
                                            .port = 28001,
                                            .assignments = &w->assignment,
                                            .n_assignments = 1 };
        w->object = (struct compute_domain_fabric){ .o.meta = { .name = CLIQUE, .uid = OBJECT, .rv = "5" },
                                                    .table_of = OBJECT,
                                                    .epoch = 7,
                                                    .domains = &w->domain,
                                                    .n_domains = 1 };
        w->node = (struct node){ .o.meta = { .name = "n1", .uid = "n1", .rv = "1" }, .imex_agent = "true", .boot_id = BOOT };
        w->has_node = w->has_cd = true;
        w->slice = CLIQUE;
        w->cd.o.meta = (struct kube_meta){ .ns = "ns", .name = "cd", .uid = DOMAIN, .rv = "1" };
        w->grants[0] = (struct grant){ .claim_uid = "c", .ns = "ns", .domain_uid = DOMAIN, .node = "n1" };
        w->n_grants = 1;
        add_pod(w, "p1", 100, NULL);
        w->pods[0].report = report_of(w, CLAIM,
                                      ",\"assignment\":\"" CLIQUE "/" DOMAIN "/3/7\",\"infix\":\"0123456789\",\"ready\":true");
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

/* What is known of the node. */
static const struct assignment_node *look(struct world *w) {
        static const char *const names[] = { "n1" };
        const struct assignment_source s = { .clique = CLIQUE, .object = &w->object, .names = names, .n_names = 1,
                                             .stands = w->stands, .stale = w->stale, .slots = 18, .node = get_node,
                                             .node_gone = is_node_gone, .slice = get_slice, .fabric = get_fabric,
                                             .daemons = each_daemon, .plugins = each_plugin, .grants = each_grant,
                                             .domain = get_domain, .takes = takes, .idle = is_idle,
                                             .removes = get_removal, .absent = is_absent, .u = w };
        w->asked[0] = '\0';
        assignment_facts_make(&s, w->a, &w->facts);
        assert_int_equal(w->facts.input.n_nodes, 1);
        return &w->facts.input.nodes[0];
}

static void a_report_is_read_as_it_was_written(void **state) {
        struct world *w = *state;
        const struct assignment_node *n = look(w);
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

static void a_report_that_cannot_be_read_says_nothing(void **state) {
        struct world *w = *state;
        w->pods[0].report = "{\"claimUID\":\"no\"}";
        assert_null(look(w)->report.pod_uid);
        assert_true(look(w)->expected);
}

static void a_report_counts_as_far_as_the_slice_confirms_it(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->slice = "";
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->slice = NULL;
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_NONE);
        static const char *members[] = { "n1" };
        w->object.members = members;
        w->object.n_members = 1;
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_RESERVE);
        w->object.n_members = 0;
        w->node.gpu_clique = CLIQUE; /* a label that somebody else wrote */
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_NONE);
        w->node.gpu_clique_ours = CLIQUE;
        assert_int_equal(look(w)->trust, ASSIGNMENT_TRUST_RESERVE);
}

static void what_an_earlier_pod_left_counts_and_what_it_ran_does_not(void **state) {
        struct world *w = *state;
        w->pods[0].report = report_of(w, CLAIM, ",\"left\":\"3,4\"");
        add_pod(w, "p2", 200, report_of(w, CLAIM_2, ",\"left\":\"7\""));
        const struct assignment_node *n = look(w);
        assert_string_equal(n->report.pod_uid, "p2");
        assert_string_equal(n->report.claim, CLAIM_2);
        assert_null(n->report.domain);
        assert_int_equal(n->report.left[0], 7);
        assert_int_equal(n->n_more_left, 2);
        assert_false(n->ending);
        /* In whatever order they are found. */
        struct daemon_pod first = w->pods[0];
        w->pods[0] = w->pods[1];
        w->pods[1] = first;
        n = look(w);
        assert_string_equal(n->report.pod_uid, "p2");
        assert_int_equal(n->n_more_left, 2);
}

static void a_daemon_ends_when_its_pod_is_deleted_or_replaced_or_not_selected(void **state) {
        struct world *w = *state;
        w->pods[0].pod.o.meta.deleted = 150;
        assert_true(look(w)->ending);
        w->pods[0].pod.o.meta.deleted = 0;
        add_pod(w, "p2", 200, NULL);
        assert_true(look(w)->ending);
        w->n_pods = 1;
        w->node.imex_agent = NULL;
        assert_true(look(w)->ending);
        w->node.imex_agent = "true";
        w->pods[0].report = report_of(w, CLAIM, ",\"assignment\":\"" ELSEWHERE "/" DOMAIN "/3/7\"");
        assert_true(look(w)->ending); /* it leaves another partition first */
}

static void a_node_is_dead_only_when_the_api_server_confirms_it(void **state) {
        struct world *w = *state;
        w->taint.key = "node.kubernetes.io/out-of-service";
        w->node.taints = &w->taint;
        w->node.n_taints = 1;
        assert_false(look(w)->dead);
        assert_non_null(strstr(w->asked, "node n1 -\n"));
        w->confirms = true;
        assert_true(look(w)->dead);
        w->has_node = false;
        assert_false(look(w)->dead); /* not yet for a minute */
        w->node_gone = true;
        assert_true(look(w)->dead);
        w->stale = true;
        assert_false(look(w)->dead);
        w->stale = false;
        w->confirms = false;
        assert_false(look(w)->dead);
}

static void another_boot_counts_only_when_the_api_server_confirms_it(void **state) {
        struct world *w = *state;
        w->node.boot_id = BOOT_2;
        assert_null(look(w)->boot_id);
        assert_non_null(strstr(w->asked, "boot n1 " BOOT "\n"));
        w->confirms = true;
        assert_string_equal(look(w)->boot_id, BOOT_2);
        /* A stale cache shows the boot of before the one that is written. */
        w->confirms = false;
        w->node.boot_id = BOOT;
        w->assignment.boot_id = BOOT_2;
        w->pods[0].report = report_with(w, CLAIM, BOOT_2, "");
        assert_null(look(w)->boot_id);
}

static void a_node_is_doubtful_until_the_api_server_has_confirmed_its_end(void **state) {
        struct world *w = *state;
        assert_false(look(w)->doubtful);
        w->node.boot_id = BOOT_2;
        assert_true(look(w)->doubtful);
        w->confirms = true;
        assert_false(look(w)->doubtful);
        w->node.boot_id = BOOT;
        w->taint.key = "node.kubernetes.io/out-of-service";
        w->node.taints = &w->taint;
        w->node.n_taints = 1;
        assert_false(look(w)->doubtful);
        w->confirms = false;
        assert_true(look(w)->doubtful);
        w->has_node = false; /* for less than a minute */
        assert_false(look(w)->doubtful);
        w->node_gone = true;
        assert_true(look(w)->doubtful);
}

static void the_plugins_word_counts_where_its_slice_confirms_the_partition(void **state) {
        struct world *w = *state;
        w->plugin.unprepared = CLAIM;
        assert_string_equal(look(w)->unprepared, CLAIM);
        w->slice = NULL;
        assert_null(look(w)->unprepared);
}

static void a_daemon_that_serves_another_partition_has_left_this_one(void **state) {
        struct world *w = *state;
        w->slice = ELSEWHERE;
        w->pods[0].report = report_of(w, CLAIM, "");
        assert_false(look(w)->moved); /* it sees this object yet */
        w->pods[0].report = arena_printf(w->a, "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT "\",\"fabricUID\":\"" OTHER_OBJECT "\",\"seen\":0}");
        assert_true(look(w)->moved);
        w->slice = CLIQUE;
        assert_false(look(w)->moved);
}

static void what_a_daemon_has_seen_of_another_partitions_object_counts_for_nothing_here(void **state) {
        struct world *w = *state;
        w->pods[0].report = arena_printf(w->a,
                                         "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT
                                         "\",\"fabricUID\":\"" OTHER_OBJECT "\",\"seen\":900,\"recount\":8}");
        assert_string_equal(look(w)->report.object, OTHER_OBJECT);
        w->pods[0].pod.clique_id = CLIQUE;
        assert_string_equal(look(w)->report.object, OTHER_OBJECT);
        assert_int_equal(look(w)->report.seen, 900);
        w->pods[0].pod.clique_id = ELSEWHERE;
        assert_null(look(w)->report.object);
        assert_int_equal(look(w)->report.seen, 0);
        assert_int_equal(look(w)->report.recount, 0);
        assert_string_equal(look(w)->report.pod_uid, "p1");
}

static void a_claim_brings_its_node_into_a_domain_of_its_own_namespace(void **state) {
        struct world *w = *state;
        assert_string_equal(look(w)->wanted, DOMAIN);
        w->grants[0].ns = "another";
        w->confirms = true;
        assert_null(look(w)->wanted);
        w->grants[0].ns = "ns";
        w->other_mode = true;
        assert_null(look(w)->wanted);
}

static void a_node_is_released_only_when_the_api_server_confirms_it(void **state) {
        struct world *w = *state;
        w->n_grants = 0;
        assert_false(look(w)->released);
        assert_string_equal(w->asked, "claim " DOMAIN " n1\n");
        w->confirms = true;
        assert_true(look(w)->released);
        assert_false(w->facts.hold);
        w->stale = true;
        assert_false(look(w)->released);
        assert_true(w->facts.hold);
}

static void a_domain_is_gone_only_when_the_api_server_confirms_it(void **state) {
        struct world *w = *state;
        w->has_cd = false;
        w->n_grants = 0;
        look(w);
        assert_false(w->facts.input.domains[0].gone);
        w->confirms = true;
        look(w);
        assert_true(w->facts.input.domains[0].gone);
        w->stale = true;
        look(w);
        assert_false(w->facts.input.domains[0].gone);
}

static void a_node_is_in_the_domain_that_stands_until_it_is_cordoned_and_unused(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        w->stands = w->other_mode = true; /* each ComputeDomain has only a channel */
        w->object.n_domains = 0;
        w->pods[0].report = report_of(w, CLAIM, "");
        w->n_grants = 0;
        assert_string_equal(look(w)->wanted, standing);
        w->node.unschedulable = true;
        assert_null(look(w)->wanted);
        w->n_grants = 1;
        assert_string_equal(look(w)->wanted, standing);
        w->slice = NULL; /* and of no slice nobody knows where it belongs */
        assert_null(look(w)->wanted);
}

/* Nor is it taken for a ComputeDomain that is gone. */
static void where_no_domain_stands_any_more_its_nodes_are_released(void **state) {
        struct world *w = *state;
        char standing[37];
        fabric_standing_uid(CLIQUE, standing);
        w->n_grants = 0;
        w->domain.owner = (struct fabric_owner){ "ComputeDomainFabric", NULL, CLIQUE, standing };
        w->pods[0].report = report_of(
                w, CLAIM, arena_printf(w->a, ",\"assignment\":\"" CLIQUE "/%s/3/7\"", standing));
        assert_true(look(w)->released);
        assert_string_equal(w->asked, "");
        w->slice = NULL;
        assert_true(look(w)->released);
        w->confirms = true;
        w->object.n_domains = 0; /* the object was lost */
        look(w);
        assert_int_equal(w->facts.input.n_domains, 1);
        assert_true(w->facts.input.domains[0].stands);
        assert_false(w->facts.input.domains[0].gone);
        w->object.n_domains = 1;
        w->stands = true;
        w->node.unschedulable = true;
        assert_false(look(w)->released); /* without a slice it stays as it is */
}

static void a_copy_of_an_object_is_told_from_the_object(void **state) {
        struct world *w = *state;
        look(w);
        assert_false(w->facts.input.copy);
        w->object.table_of = OTHER_OBJECT;
        look(w);
        assert_true(w->facts.input.copy);
        w->object.table_of = NULL; /* just created */
        look(w);
        assert_false(w->facts.input.copy);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_report_is_read_as_it_was_written),
                T(a_report_that_cannot_be_read_says_nothing),
                T(a_report_counts_as_far_as_the_slice_confirms_it),
                T(what_an_earlier_pod_left_counts_and_what_it_ran_does_not),
                T(a_daemon_ends_when_its_pod_is_deleted_or_replaced_or_not_selected),
                T(a_node_is_dead_only_when_the_api_server_confirms_it),
                T(another_boot_counts_only_when_the_api_server_confirms_it),
                T(a_node_is_doubtful_until_the_api_server_has_confirmed_its_end),
                T(the_plugins_word_counts_where_its_slice_confirms_the_partition),
                T(a_daemon_that_serves_another_partition_has_left_this_one),
                T(what_a_daemon_has_seen_of_another_partitions_object_counts_for_nothing_here),
                T(a_claim_brings_its_node_into_a_domain_of_its_own_namespace),
                T(a_node_is_released_only_when_the_api_server_confirms_it),
                T(a_domain_is_gone_only_when_the_api_server_confirms_it),
                T(a_node_is_in_the_domain_that_stands_until_it_is_cordoned_and_unused),
                T(where_no_domain_stands_any_more_its_nodes_are_released),
                T(a_copy_of_an_object_is_told_from_the_object),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
