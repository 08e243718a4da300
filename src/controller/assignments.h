/* SPDX-License-Identifier: Apache-2.0 */
/* assignments: decides the assignments of a partition (rules/assignment) from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/assignment_facts.h"

struct assignments {
        bool stale;       /* in: a cache concerned may miss something */
        int64_t settle_s; /* in: for how long what ran on Nodes that are gone may still run; 0: no more */
        bool went_back;   /* in: the version of the object went back: etcd was restored */
        struct assignment decision;
        const char *recount_why; /* why no node gets an assignment, for people; NULL: each does */
        const char *broken;   /* the decision would break what must hold, and is dropped; NULL: it is not */
        const char *full_why; /* which nodes get none in the domain that stands; NULL: each does */
        bool hold;            /* something should end, and is kept because a cache is stale */
        int64_t recheck_s;    /* look again then though nothing happens; 0: no need */
};

/* `old` NULL: the partition has no object yet. `key` is queued when the API server has answered what it is
 * asked. All is in the arena. */
void assignments_make(struct controller *c, const struct compute_domain_fabric *old, const char *clique,
                      const char *key, struct arena *a, struct assignments *ret);

/* The object does not list the domain any more. */
void assignments_forget(struct controller *c, const char *clique, const char *uid);

/* Does the object list an assignment of the node, in whatever state? */
bool assignments_list(const struct compute_domain_fabric *f, const char *node);
/* The same of the object of a clique; `clique` and `node` may be NULL. */
bool assignments_list_at(const struct controller *c, const char *clique, const char *node);
