/* SPDX-License-Identifier: Apache-2.0 */
/* member_gather: collects the facts about the nodes of one ComputeDomain (rules/membership). Pure: all facts
 * come from a source, which the caller implements. The source of the controller reads its caches, and that of
 * the kubectl plugin the lists that it has read. */
#pragma once

#include "model/allocation.h"
#include "rules/membership.h"

typedef void(member_allocation_fn)(void *v, const struct allocation *x);
typedef void(member_fabric_fn)(void *v, const struct compute_domain_fabric *f);

/* All results of the functions are borrowed, and valid until the source changes. */
struct member_source {
        const struct node *(*node)(void *u, const char *name); /* NULL: the Node does not exist */
        /* The clique ID in the node's ResourceSlice (slice_newest()); NULL: there is no slice. */
        const char *(*clique)(void *u, const char *node);
        /* The Pod of the node's daemon (daemon_pod_choose()); NULL: there is none. */
        const struct daemon_pod *(*daemon)(void *u, const char *node);
        /* The fabric object of a partition; NULL: it does not exist, or `clique` is NULL or empty. */
        const struct compute_domain_fabric *(*fabric)(void *u, const char *clique);
        /* Calls `fn` for each fabric object that lists the ComputeDomain; it may call it for others, too. */
        void (*fabrics)(void *u, const char *domain_uid, member_fabric_fn *fn, void *v);
        /* Calls `fn` for each claim with a channel of the ComputeDomain that is allocated. */
        void (*allocations)(void *u, const char *domain_uid, member_allocation_fn *fn, void *v);
        void *u;
};

/* Collects the nodes that a claim brings into the ComputeDomain, and those that a fabric object lists for it.
 * Returns their number; *ret is sorted by name and in the arena. */
size_t member_gather(const struct member_source *s, const char *uid, const char *ns, struct arena *a,
                     const struct member_facts **ret);
/* The assignments of the ComputeDomain that fabric objects still list, one entry each, unsorted. Returns
 * their number; *ret is in the arena. */
size_t member_gather_assigned(const struct member_source *s, const char *uid, struct arena *a,
                              const struct member_facts **ret);
/* Decodes the report of a daemon. Returns false if there is none, or it cannot be decoded. */
struct daemon_report;
bool member_gather_report(const struct daemon_pod *p, struct arena *a, struct daemon_report *ret);
