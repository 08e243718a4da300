/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_world: nodes, ComputeDomains and the fabric object of a partition, for tests of
 * rules/assignment. The result of each decision is the object for the next one. */
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
#include "rules/assignment.h"

#define OBJECT "00000000-0000-4000-8000-000000000001"

enum { SLOTS = 18, NODES_MAX = 40 };

struct world {
        struct arena *a;
        struct assignment_input in;
        struct assignment_node nodes[NODES_MAX];
        struct assignment_domain domains[4];
        struct assignment out;
};

static struct world *world_new(void) {
        struct world *w = xnew(struct world);
        w->a = arena_new(1 << 16);
        w->in = (struct assignment_input){
                .object = OBJECT, .nodes = w->nodes, .domains = w->domains, .slots = SLOTS, .epoch = 10
        };
        return w;
}

static void world_free(struct world *w) {
        arena_free(w->a);
        free(w);
}

static int setup(void **state) {
        *state = world_new();
        return 0;
}

static int teardown(void **state) {
        world_free(*state);
        return 0;
}

/* A node with a daemon that has reported and has no assignment. */
static struct assignment_node *add_node(struct world *w, const char *name) {
        struct assignment_node *n = &w->nodes[w->in.n_nodes++];
        *n = (struct assignment_node){
                .name = name,
                .ip = arena_printf(w->a, "ip-%s", name),
                .expected = true,
                .trust = ASSIGNMENT_TRUST_FULL,
                .report = { .pod_uid = arena_printf(w->a, "pod-%s", name),
                            .claim = arena_printf(w->a, "claim-%s", name),
                            .boot_id = arena_printf(w->a, "boot-%s", name),
                            .object = OBJECT },
        };
        return n;
}

static struct assignment_domain *add_domain(struct world *w, const char *uid) {
        struct assignment_domain *d = &w->domains[w->in.n_domains++];
        *d = (struct assignment_domain){ .owner = { "ComputeDomain", "ns", uid, uid },
                                         .imex.slots = w->in.slots };
        return d;
}

/* Makes one decision. Its result becomes the object. */
static void step(struct world *w) {
        assignment_make(&w->in, w->a, &w->out);
        const char *broken = assignment_check(&w->in, &w->out, w->a);
        if (broken)
                fail_msg("%s", broken);
        w->in.old = w->out.domains;
        w->in.n_old = w->out.n_domains;
        w->in.removals = w->out.removals;
        w->in.n_removals = w->out.n_removals;
        w->in.epoch = w->out.epoch;
        w->in.recount = w->out.recount;
        w->in.rolled_back = false;
}

static const struct fabric_assignment *of(const struct world *w, const char *uid, const char *node) {
        for (size_t i = 0; i < w->out.n_domains; i++)
                if (streq(w->out.domains[i].owner.uid, uid))
                        return fabric_assignment_of(&w->out.domains[i], node);
        return NULL;
}

/* The daemon follows the object. */
static void obey(struct world *w, struct assignment_node *n) {
        for (size_t i = 0; i < w->out.n_domains; i++) {
                const struct fabric_assignment *x = fabric_assignment_of(&w->out.domains[i], n->name);
                if (!x || !fabric_is_active(x) || !streq(x->claim, n->report.claim) ||
                    !streq(x->boot_id, n->report.boot_id))
                        continue;
                n->report.domain = w->out.domains[i].owner.uid;
                n->report.index = x->index;
                n->report.epoch = x->epoch;
                n->report.ready = n->report.served = true;
                n->report.seen = w->out.epoch;
        }
}

static void leave(struct world *w, struct assignment_node *n) {
        int64_t *left = arena_alloc(w->a, (n->report.n_left + 1) * sizeof *left);
        if (n->report.n_left)
                memcpy(left, n->report.left, n->report.n_left * sizeof *left);
        left[n->report.n_left++] = n->report.epoch;
        n->report.left = left;
        n->report.domain = NULL;
        n->report.ready = false;
}

/* The node "n0" runs in IMEX domain "d", and still has claims of it. */
static struct assignment_node *running(struct world *w) {
        struct assignment_node *n = add_node(w, "n0");
        add_domain(w, "d");
        n->wanted = "d";
        step(w);
        obey(w, n);
        step(w);
        assert_int_equal(of(w, "d", "n0")->index, 0);
        return n;
}

#define assert_state(x, wanted) assert_string_equal(str_or((x)->state, ""), wanted)
