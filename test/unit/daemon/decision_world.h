/* SPDX-License-Identifier: Apache-2.0 */
/* decision_world: the decision of a daemon whose node is in an IMEX domain. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/decision.h"
#include "model/daemon_report.h"

#define CLAIM "claim"
#define BOOT "boot"
#define UID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UID_B "bbbbbbbb-0000-4000-8000-000000000002"

struct world {
        struct arena *a;
        struct fabric_assignment in_a[3], in_b[3];
        struct fabric_domain domains[2];
        struct compute_domain_fabric fabric;
        struct decision_memory memory;
        struct decision_input in;
        struct decision d;
};

static inline struct fabric_assignment assignment(const char *node, int64_t index, int64_t epoch) {
        return (struct fabric_assignment){ node, index, epoch, NULL, CLAIM, BOOT, "10.0.0.1" };
}

/* Domain "a" lists the node, domain "b" does not, and IMEX does not run. */
static inline int setup(void **state) {
        struct world *w = xnew(struct world);

        w->a = arena_new(4096);
        w->in_a[0] = assignment("n0", 2, 5);
        w->domains[0] = (struct fabric_domain){ .owner.uid = UID_A,
                                                .imex.infix = "aa",
                                                .imex.slots = 4,
                                                .imex.port = 28001,
                                                .assignments = w->in_a,
                                                .n_assignments = 1 };
        w->domains[1] = (struct fabric_domain){ .owner.uid = UID_B,
                                                .imex.infix = "bb",
                                                .imex.slots = 4,
                                                .imex.port = 28002,
                                                .assignments = w->in_b,
                                                .n_assignments = 0 };
        w->fabric = (struct compute_domain_fabric){ .o.meta.uid = "object",
                                                    .table_of = "object",
                                                    .epoch = 9,
                                                    .domains = w->domains,
                                                    .n_domains = 2 };
        w->in = (struct decision_input){ .fabric = &w->fabric,
                                         .current = true,
                                         .node = "n0",
                                         .claim = CLAIM,
                                         .boot_id = BOOT,
                                         .memory = &w->memory };
        *state = w;
        return 0;
}

static inline int teardown(void **state) {
        struct world *w = *state;

        arena_free(w->a);
        free(w);
        return 0;
}

static inline enum decision_step decide(struct world *w) {
        decision_make(&w->in, w->a, &w->d);
        return w->d.step;
}

/* The daemon carries out the decision and remembers it; afterwards IMEX is in state `imex`. */
static inline void proceed(struct world *w, enum decision_imex imex) {
        w->memory = w->d.memory;
        if (w->d.step == DECISION_ENTER)
                w->memory.now = w->d.assignment;
        if (w->d.step == DECISION_FORGET)
                decision_left(&w->d.memory, w->a, &w->memory);
        w->in.withdrawn = w->d.step == DECISION_WITHDRAW;
        w->in.imex = imex;
}

/* The daemon runs IMEX in domain "a", READY, with a claim. */
static inline void serve(struct world *w) {
        w->memory = (struct decision_memory){
                .now = { UID_A, 2, 5, { "aa", 4, 28001 } }, .ready = true, .closed = 5, .seen = 5
        };
        w->in.imex = DECISION_IMEX_READY;
        w->in.use = IMEX_USE_PREPARED;
        w->in.withdrawn = false;
}

#define assert_left(w, wanted)                                                                               \
        do {                                                                                                 \
                assert_int_equal((w)->d.memory.n_left, 1);                                                   \
                assert_int_equal((w)->d.memory.left[0], wanted);                                             \
        } while (0)
