/* SPDX-License-Identifier: Apache-2.0 */
/* assignments: decides the assignments of a partition (rules/assignment) from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/assignment_facts.h"

struct assignments {
        bool stale;         /* in: a cache that the decision uses may lack something */
        int64_t settle_s;   /* in: for how long daemons of deleted Nodes may still run IMEX; 0: none can */
        int64_t unlisted_s; /* in: for how long the predecessor of a new object may have listed such daemons
                             */
        bool rolled_back;   /* in: the object was deleted, or its resource version decreased because etcd was
                               restored, and no recount has begun since */
        struct assignment decision;
        const char *recount_why; /* why no node gets an assignment, for people; NULL: all nodes get one */
        const char *broken;      /* the invariant that the decision breaks, so that the decision is dropped;
                                    NULL: none */
        const char *full_why;    /* which nodes get no index in the standing domain; NULL: all get one */
        bool pause;              /* an assignment should end, and is kept because a cache is stale */
        int64_t recheck_s;       /* decide again after this time even without an event; 0: no need */
};

/* Decides the assignments of a partition; `old` NULL: the partition has no fabric object yet. If the decision
 * asks the API server a question, `key` is queued after the answer. All results are in the arena. */
void assignments_make(struct controller *c, const struct compute_domain_fabric *old, const char *clique,
                      const char *key, struct arena *a, struct assignments *ret);

/* Call this when the fabric object no longer lists the IMEX domain: forgets since when it has been idle. */
void assignments_forget(struct controller *c, const char *clique, const char *uid);

/* Returns whether the fabric object lists an assignment of the node, in any state. */
bool assignments_list(const struct compute_domain_fabric *f, const char *node);
/* Returns the same for the fabric object of a partition; `clique` and `node` may be NULL. */
bool assignments_list_at(const struct controller *c, const char *clique, const char *node);
