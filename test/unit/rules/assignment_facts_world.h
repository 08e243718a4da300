/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_facts_world: the cached objects of one node, for tests of rules/assignment_facts. */
#pragma once

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
        bool no_object, is_busy, has_node, node_missing, stale, is_standing, other_mode, fresh_pods,
                rolled_back;
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

static inline const struct node *get_node(void *u, const char *name) {
        struct world *w = u;
        return w->has_node && streq(name, "n1") ? &w->node : NULL;
}

static inline bool is_node_gone(void *u, const char *name) {
        return ((struct world *)u)->node_missing;
}

static inline const char *get_slice(void *u, const char *node) {
        return ((struct world *)u)->slice;
}

static inline const char *get_fabric(void *u, const char *clique) {
        return streq(clique, ELSEWHERE) ? OTHER_OBJECT : NULL;
}

static inline void each_daemon(void *u, const char *node, assignment_daemon_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_pods; i++)
                fn(v, &w->pods[i]);
}

static inline void each_plugin(void *u, const char *node, assignment_plugin_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_plugins; i++)
                fn(v, &w->plugins[i]);
}

static inline void each_allocation(void *u, const char *node, assignment_allocation_fn *fn, void *v) {
        struct world *w = u;
        for (size_t i = 0; i < w->n_allocations; i++)
                fn(v, &w->allocations[i]);
}

static inline const struct compute_domain *get_domain(void *u, const char *uid) {
        struct world *w = u;
        return w->has_cd && streq(uid, DOMAIN) ? &w->cd : NULL;
}

static inline bool takes(void *u, const struct compute_domain *cd, const char *current) {
        return !((struct world *)u)->other_mode;
}

static inline bool is_idle(void *u, const struct fabric_domain *d) {
        return !((struct world *)u)->is_busy;
}

static inline const char *get_removal(void *u, const char *node) {
        return ((struct world *)u)->removes;
}

static inline bool is_absent(void *u, enum assignment_question q, const char *name, const char *other) {
        static const char *const words[] = { "node", "boot", "claim", "domain" };
        struct world *w = u;
        size_t n = strlen(w->asked);
        snprintf(w->asked + n, sizeof w->asked - n, "%s %s %s\n", words[q], name, str_or(other, "-"));
        return w->confirms;
}

static inline const char *report_with(struct world *w, const char *claim, const char *boot,
                                      const char *more) {
        return arena_printf(
                w->a, "{\"claimUID\":\"%s\",\"bootID\":\"%s\",\"fabricUID\":\"" OBJECT "\",\"seen\":7%s}",
                claim, boot, more);
}

static inline const char *report_of(struct world *w, const char *claim, const char *more) {
        return report_with(w, claim, BOOT, more);
}

static inline struct daemon_pod *add_pod(struct world *w, const char *uid, int64_t created,
                                         const char *report) {
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

static inline int setup(void **state) {
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

static inline int teardown(void **state) {
        struct world *w = *state;
        arena_free(w->a);
        free(w);
        return 0;
}

/* The facts about the node. */
static inline const struct assignment_node *node_facts(struct world *w) {
        static const char *const names[] = { "n1" };
        const struct assignment_source s = { .clique = CLIQUE,
                                             .object = w->no_object ? NULL : &w->object,
                                             .names = names,
                                             .n_names = 1,
                                             .is_standing = w->is_standing,
                                             .stale = w->stale,
                                             .rolled_back = w->rolled_back,
                                             .fresh_pod_per_domain = w->fresh_pods,
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
