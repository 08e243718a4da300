/* SPDX-License-Identifier: Apache-2.0 */
/* agent_seats: what rules/rosters has to know of a fabric, from the caches, and what comes of it: which node
 * has which place in the IMEX domains that agents run there. */
#pragma once

#include "controller/records.h"
#include "rules/rosters.h"

struct agent_seats {
        bool stale;       /* in: a cache concerned may miss something */
        int64_t untold_s; /* in: channels_untold_s() */
        struct rosters rosters;
        const char *lost;  /* why no node gets a place, for people; NULL: each does */
        const char *full;  /* which nodes get none in the domain that stands, for people; NULL: each does */
        bool hold;         /* something should go, and stays because a cache is stale */
        int64_t recheck_s; /* look again then though nothing happens; 0: no need */
};

/* `old` NULL: the fabric has no object yet. `key` is queued when the server has answered what it is asked.
 * All is in the arena. */
void agent_seats_make(struct controller *c, const struct compute_domain_fabric *old, const char *clique,
                      const char *key, struct arena *a, struct agent_seats *ret);

/* The fabric's object does not list the domain any more. */
void agent_seats_forget(struct controller *c, const char *clique, const char *uid);

/* Does the fabric list a place for the node, be it one that it has to leave? */
bool agent_seats_list(const struct compute_domain_fabric *f, const char *node);
/* The same of the fabric of a clique; `clique` and `node` may be NULL. */
bool agent_seats_list_at(const struct controller *c, const char *clique, const char *node);

/* May the agent run IMEX, now or in a moment: it has a place, is listed for one, or has not reported and a
 * claim is on its node? False of one that has ended, or not begun, before its first report: it got no place
 * since, and whatever is listed for its node it does not run. Its Pod can be replaced. */
bool agent_seats_in_use(const struct controller *c, const struct agent_pod *p);
