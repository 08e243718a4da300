/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_objects: fabric objects that somebody may have edited. */
#pragma once

#include "assignment_world.h"
#include "imex/imex_files.h"

/* An object that somebody may have edited: IMEX domain "d" with these assignments. */
static inline void write_object(struct world *w, struct fabric_assignment *list, size_t n) {
        struct fabric_domain *d = arena_alloc(w->a, sizeof *d);
        *d = (struct fabric_domain){ .owner = { "ComputeDomain", "ns", "d", "d" },
                                     .imex.infix = "d",
                                     .imex.slots = SLOTS,
                                     .imex.port = assignment_port("d"),
                                     .assignments = list,
                                     .n_assignments = n };
        w->in.old = d;
        w->in.n_old = 1;
        w->in.epoch = 20;
}

static inline struct fabric_assignment listed(const char *node, int64_t index, int64_t epoch,
                                              const char *state) {
        return (struct fabric_assignment){ .node = node,
                                           .index = index,
                                           .epoch = epoch,
                                           .state = state,
                                           .claim = "claim-n0",
                                           .boot_id = "boot-n0" };
}

/* The node runs "d" with that index, and has reported it to a deleted object. */
static inline struct assignment_node *add_runner(struct world *w, const char *name, int64_t index,
                                                 int64_t epoch) {
        struct assignment_node *n = add_node(w, name);
        n->wanted = n->report.domain = "d";
        n->report.object = "before";
        n->report.index = index;
        n->report.epoch = n->report.seen = epoch;
        n->report.ready = n->report.served = true;
        return n;
}

static inline void the_object_is_lost(struct world *w) {
        add_domain(w, "d");
        w->in.object = NULL;
        w->in.epoch = 0;
}
