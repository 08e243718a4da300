/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment_facts: the facts from cached objects and answers of the API server. */
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

/* A partition with the node "n1". Each test changes its caches. */
struct world {
        struct arena *a;
        struct compute_domain_fabric object;
        struct fabric_domain domain, more_domains[2];
        struct fabric_assignment assignment, more_assignments[2];
        struct node node;
        struct taint taint;
        bool no_object, is_busy, has_node, node_missing, stale, is_standing, other_mode;
        const char *slice; /* NULL: there is none */
        struct daemon_pod pods[3];
        size_t n_pods;
        struct plugin_pod plugins[3];
        size_t n_plugins;
        struct compute_domain cd;
        bool has_cd;
        struct allocation allocations[2];
        size_t n_allocations;
        const char *removes;
        bool confirms; /* the API server answers "no" to each question */
        char asked[300];
        struct assignment_facts facts;
};

static const struct node *get_node(void *u, const char *name) {
        struct world *w = u;
        return w->has_node && streq(name, "n1") ? &w->node : NULL;
}

static bool is_node_gone(void *u, const char *name) {
        return ((struct world *)u)->node_missing;
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
        struct world *w = u;
        for (size_t i = 0; i < w->n_plugins; i++)
                fn(v, &w->plugins[i]);
}

static void each_allocation(void *u, const char *node, assignment_allocation_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_allocations; i++)
                fn(v, &w->allocations[i]);
}

static const struct compute_domain *get_domain(void *u, const char *uid) {
        struct world *w = u;
        return w->has_cd && streq(uid, DOMAIN) ? &w->cd : NULL;
}

static bool takes(void *u, const struct compute_domain *cd, const char *current) {
        return !((struct world *)u)->other_mode;
}

static bool is_idle(void *u, const struct fabric_domain *d) {
        return !((struct world *)u)->is_busy;
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
        return arena_printf(
                w->a, "{\"claimUID\":\"%s\",\"bootID\":\"%s\",\"fabricUID\":\"" OBJECT "\",\"seen\":7%s}",
                claim, boot, more);
}

static const char *report_of(struct world *w, const char *claim, const char *more) {
        return report_with(w, claim, BOOT, more);
}

static struct daemon_pod *add_pod(struct world *w, const char *uid, int64_t created, const char *report) {
        struct daemon_pod *p = &w->pods[w->n_pods++];
        static struct pod_ip ip = { "10.0.0.1" };
        *p = (struct daemon_pod){ .report = report };
        p->pod.o.meta =
                (struct kube_meta){ .ns = "driver", .name = uid, .uid = uid, .rv = "1", .created = created };
        p->pod.node = "n1";
        p->pod.phase = "Running";
        p->pod.ips = &ip;
        p->pod.n_ips = 1;
        return p;
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->a = arena_new(4096);
        w->assignment = (struct fabric_assignment){
                .node = "n1", .index = 3, .epoch = 7, .claim = CLAIM, .boot_id = BOOT
        };
        w->domain = (struct fabric_domain){ .owner = { "ComputeDomain", "ns", "cd", DOMAIN },
                                            .imex.infix = "0123456789",
                                            .imex.slots = 18,
                                            .imex.port = 28001,
                                            .assignments = &w->assignment,
                                            .n_assignments = 1 };
        w->object = (struct compute_domain_fabric){ .o.meta = { .name = CLIQUE, .uid = OBJECT, .rv = "5" },
                                                    .table_of = OBJECT,
                                                    .epoch = 7,
                                                    .domains = &w->domain,
                                                    .n_domains = 1 };
        w->node = (struct node){ .o.meta = { .name = "n1", .uid = "n1", .rv = "1" },
                                 .imex_daemon = "true",
                                 .boot_id = BOOT };
        w->has_node = w->has_cd = true;
        w->slice = CLIQUE;
        w->cd.o.meta = (struct kube_meta){ .ns = "ns", .name = "cd", .uid = DOMAIN, .rv = "1" };
        w->allocations[0] =
                (struct allocation){ .claim_uid = "c", .ns = "ns", .domain_uid = DOMAIN, .node = "n1" };
        w->n_allocations = w->n_plugins = 1;
        add_pod(w, "p1", 100, NULL);
        w->pods[0].report =
                report_of(w, CLAIM, ",\"assignment\":\"" CLIQUE "/" DOMAIN "/3/7\",\"ready\":true");
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

/* The facts about the node. */
static const struct assignment_node *node_facts(struct world *w) {
        static const char *const names[] = { "n1" };
        const struct assignment_source s = { .clique = CLIQUE,
                                             .object = w->no_object ? NULL : &w->object,
                                             .names = names,
                                             .n_names = 1,
                                             .is_standing = w->is_standing,
                                             .stale = w->stale,
                                             .slots = 18,
                                             .node = get_node,
                                             .node_missing = is_node_gone,
                                             .slice = get_slice,
                                             .fabric = get_fabric,
                                             .daemons = each_daemon,
                                             .plugins = each_plugin,
                                             .allocations = each_allocation,
                                             .domain = get_domain,
                                             .takes = takes,
                                             .idle = is_idle,
                                             .removes = get_removal,
                                             .absent = is_absent,
                                             .u = w };
        w->asked[0] = '\0';
        assignment_facts_make(&s, w->a, &w->facts);
        assert_int_equal(w->facts.input.n_nodes, 1);
        return &w->facts.input.nodes[0];
}

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
                T(a_report_has_the_facts_that_were_written),
                T(an_unreadable_report_does_not_count),
                T(a_daemon_whose_pod_has_failed_is_not_ready_and_keeps_its_assignment),
                T(a_report_counts_as_far_as_the_slice_confirms_it),
                T(a_listed_node_in_another_partition_answers_a_recount),
                T(left_epochs_of_an_earlier_pod_count_and_its_assignment_does_not),
                T(a_daemon_ends_when_its_pod_is_deleted_or_replaced_or_not_selected),
                T(a_powered_off_node_counts_as_dead_only_after_confirmation),
                T(another_boot_counts_only_after_confirmation),
                T(a_node_is_doubtful_until_the_api_server_has_confirmed_its_end),
                T(a_plugins_report_counts_where_its_slice_confirms_the_partition),
                T(a_daemon_that_serves_another_partition_has_left_this_one),
                T(epochs_seen_in_the_object_of_another_partition_do_not_count),
                T(a_claim_counts_only_for_a_computedomain_of_its_namespace),
                T(a_node_of_another_partition_leaves_this_one),
                T(a_node_is_released_only_after_confirmation),
                T(a_domain_is_deleted_only_after_confirmation),
                T(a_node_is_in_the_standing_domain_until_it_is_cordoned_and_unused),
                T(without_a_standing_domain_its_nodes_are_released),
                T(a_copy_of_a_fabric_object_is_recognized),
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
