/* SPDX-License-Identifier: Apache-2.0 */
/* placements: which claim brings which node into which domain, found by domain and by node. Kept up to date
 * from the claims that are cached. */
#ifndef CONTROLLER_PLACEMENTS_H
#define CONTROLLER_PLACEMENTS_H

#include <stdbool.h>

#include "api/claim.h"

struct placements;

struct placement {
        const char *claim_uid, *ns, *domain_uid, *node;
        int64_t created;
};

struct placements *placements_new(void);
void placements_free(struct placements *p);

/* Takes the new state of a claim; `now` NULL when it is gone. Returns what changed: the placement that went
 * (*ret_old) and the one that came (*ret_new), either with claim_uid NULL when there is none. The strings of
 * *ret_old live until the next call. False when nothing changed. */
bool placements_update(struct placements *p, const struct claim *old, const struct claim *now,
                       struct placement *ret_old, struct placement *ret_new);

typedef void(placements_visit_fn)(void *u, const struct placement *x);
void placements_of_domain(const struct placements *p, const char *uid, placements_visit_fn *fn, void *u);
void placements_on_node(const struct placements *p, const char *node, placements_visit_fn *fn, void *u);

#endif
