/* SPDX-License-Identifier: Apache-2.0 */
/* allocations: indexes, by ComputeDomain and by node, which claim brings which node into which ComputeDomain.
 * The index follows the claims in the cache.
 *
 * The allocation of a shared claim names no node. Such a claim brings a node into its ComputeDomain while
 * both is true: the claim is allocated and reserved (claim_place()), and the node's plugin reports that it
 * uses the ComputeDomain. */
#pragma once

#include <stdbool.h>

#include "api/claim.h"
#include "model/allocation.h"

struct allocations;

/* A claim that the controller may allocate and reserve: its spec is the one that the controller writes, and
 * the ComputeDomain or a PodGroup owns it. */
struct claim_shared {
        const char *domain_uid;          /* the ComputeDomain that its configuration names */
        const struct claim_group *group; /* the PodGroup that owns it; NULL: the ComputeDomain owns it */
        bool allocated;
        const struct claim_consumer *consumers; /* status.reservedFor */
        size_t n_consumers;
        const char **finalizers;
        size_t n_finalizers;
};

/* The part of a claim that the cache keeps. */
struct claim_record {
        struct kube_object o;
        const char *domain_uid, *node;   /* the claim brings this node into this ComputeDomain; NULL: it
                                            brings none */
        const char
                *awaits; /* a Pod waits for a channel of this ComputeDomain, see claim_awaits(); NULL: none */
        const struct claim_group *group; /* the PodGroup that shares the claim; NULL: none */
        const char *named; /* a user created the claim by name, for a channel of one node of this
                              ComputeDomain; NULL: it is another claim */
        const char *owner; /* UID of the ComputeDomain for which the controller created the claim;
                              NULL: none */
        bool full;         /* no other Pod can use the claim, see CLAIM_PODS_MAX */
        const struct claim_shared *shared; /* NULL: the controller may not allocate the claim */
};
extern const struct jd_field claim_record_fields[];
/* Returns the record of a decoded claim, in the arena. The record must not outlive the claim. */
const void *claim_record_of(void *claim, struct arena *a);
/* Returns the record if ComputeDomains have assigned channels. In this case, a claim for the shared channel
 * brings no node into a ComputeDomain. */
const void *claim_record_of_own(void *claim, struct arena *a);

struct allocations *allocations_new(void);
void allocations_free(struct allocations *p);

/* Records the new state of a claim; `now` NULL: the claim was deleted. Returns the allocation that ended in
 * *ret_old and the one that began in *ret_new; claim_uid NULL: there is none. The strings of *ret_old are
 * valid until the next call. Returns false if nothing changed. */
bool allocations_update(struct allocations *p, const struct claim_record *old, const struct claim_record *now,
                        struct allocation *ret_old, struct allocation *ret_new);

/* Records which ComputeDomains the plugin of a node reports to use: it holds their channel, or a shared claim
 * waits there. `uids` has no duplicates. Calls `changed` for each ComputeDomain that was added or removed. */
void allocations_used(struct allocations *p, const char *node, const char *const *uids, size_t n,
                      void (*changed)(void *u, const char *uid), void *u);

/* Receives one allocation per call. `x` is valid during the call, and its strings as long as the claim. An
 * allocated shared claim also appears once with the node CD_POOL_SHARED. */
typedef void(allocations_visit_fn)(void *u, const struct allocation *x);
void allocations_of_domain(const struct allocations *p, const char *uid, allocations_visit_fn *fn, void *u);
void allocations_on_node(const struct allocations *p, const char *node, allocations_visit_fn *fn, void *u);
