/* SPDX-License-Identifier: Apache-2.0 */
/* allocations: which claim brings which node into which ComputeDomain, found by ComputeDomain and by node. It
 * follows the claims in the cache. */
#pragma once

#include <stdbool.h>

#include "api/claim.h"
#include "model/allocation.h"

struct allocations;

/* The part of a claim that the cache keeps. */
struct claim_record {
        struct kube_object o;
        const char *domain_uid, *node;   /* it brings this node into this ComputeDomain; NULL: it does not */
        const struct claim_group *group; /* the PodGroup that shares it; NULL: none */
};
extern const struct jd_field claim_record_fields[];
/* The record of a decoded claim, from the arena. It must not outlive the claim. */
const void *claim_record_of(void *claim, struct arena *a);
/* The same with assigned channels: a claim for the shared channel brings no node into a ComputeDomain. */
const void *claim_record_of_own(void *claim, struct arena *a);

struct allocations *allocations_new(void);
void allocations_free(struct allocations *p);

/* Records the new state of a claim; `now` is NULL when it was deleted. Returns the placement that ended
 * (*ret_old) and the one that began (*ret_new); claim_uid is NULL where there is none. The strings of
 * *ret_old live until the next call. False: nothing changed. */
bool allocations_update(struct allocations *p, const struct claim_record *old, const struct claim_record *now,
                        struct allocation *ret_old, struct allocation *ret_new);

/* `x` is valid during the call, its strings as long as the claim. */
typedef void(allocations_visit_fn)(void *u, const struct allocation *x);
void allocations_of_domain(const struct allocations *p, const char *uid, allocations_visit_fn *fn, void *u);
void allocations_on_node(const struct allocations *p, const char *node, allocations_visit_fn *fn, void *u);
