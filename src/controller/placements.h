/* SPDX-License-Identifier: Apache-2.0 */
/* placements: which claim brings which node into which domain, found by domain and by node. Kept up to date
 * from the claims that are cached. */
#pragma once

#include <stdbool.h>

#include "api/claim.h"
#include "model/grant.h"

struct placements;

/* What is kept of a claim. */
struct claim_record {
        struct kube_object o;
        const char *domain_uid, *node;   /* where it brings which node, NULL: nowhere */
        const struct claim_group *group; /* NULL: it is not shared by a PodGroup */
};
extern const struct jd_field claim_record_fields[];
/* Of a decoded claim, which it must not outlive; from the arena. */
const void *claim_record_of(void *claim, struct arena *a);
/* The same where each ComputeDomain has a channel of its own: claims for another one bring no node anywhere.
 */
const void *claim_record_of_own(void *claim, struct arena *a);

struct placements *placements_new(void);
void placements_free(struct placements *p);

/* Takes the new state of a claim; `now` NULL when it is gone. Returns what changed: the placement that went
 * (*ret_old) and the one that came (*ret_new), either with claim_uid NULL when there is none. The strings of
 * *ret_old live until the next call. False when nothing changed. */
bool placements_update(struct placements *p, const struct claim_record *old, const struct claim_record *now,
                       struct grant *ret_old, struct grant *ret_new);

/* x lives during the call, its strings as long as the claim. */
typedef void(placements_visit_fn)(void *u, const struct grant *x);
void placements_of_domain(const struct placements *p, const char *uid, placements_visit_fn *fn, void *u);
void placements_on_node(const struct placements *p, const char *node, placements_visit_fn *fn, void *u);
