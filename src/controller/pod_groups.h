/* SPDX-License-Identifier: Apache-2.0 */
/* pod_groups: watches the PodGroups that name a claim (Kubernetes 1.36 and later, gate
 * DRAWorkloadResourceClaims), and reports those whose claim is for a channel of one node.
 *
 * The watch begins with the first ComputeDomain that names a claim for pods on several nodes, if the API
 * server serves PodGroups. Without the watch, the scheduler reserves such claims.
 *
 * A channel device belongs to a node. So a claim for it that a PodGroup names in spec.resourceClaims keeps
 * all Pods of the group that use it on one node, and the scheduler only reports that it cannot place them.
 * The Event of the PodGroup names the claim and the ComputeDomain, and states what to write instead. The
 * leader writes one Event for each such claim. The condition SharedClaimAvailable of the ComputeDomain
 * reports it as long as the claim exists (controller/plan).
 *
 * A claim that was created for the PodGroup has it as its owner. For a claim that a user created by name,
 * the watch shows the PodGroup. Without the watch, the reservation of the claim shows it, which the scheduler
 * writes only when the first Pod fits. This mistake alone is no reason for a watch of all PodGroups. */
#pragma once

#include "controller/records.h"

/* The time until the API server is asked again whether it serves PodGroups. */
enum { POD_GROUPS_RETRY_MS = 60000 };

/* Begins the watch if this ComputeDomain needs it. A change queues the claims that the PodGroup names, and
 * the ComputeDomains of those that are for one node. */
void pod_groups_watch(struct controller *c, const struct compute_domain *cd);
void pod_groups_free(struct pod_groups *g); /* NULL is allowed */
/* Returns the number of PodGroups that name the claim in spec.resourceClaims and are not being deleted, and
 * their entries for status.reservedFor in *ret, in the arena. Returns 0 while the cache is stale. */
size_t pod_groups_naming(const struct controller *c, const char *ns, const char *claim, struct arena *a,
                         const struct claim_consumer **ret);

/* Returns the name of a PodGroup that shares this claim for a channel of one node; NULL: none is known. */
const char *pod_groups_sharing(const struct controller *c, const struct claim_record *r);
/* Returns whether the watch has begun, and its first list is not complete. Then the ComputeDomains whose
 * condition reports a PodGroup are queued again. */
bool pod_groups_pending(const struct controller *c);

/* Call this when a claim in the cache was added (`was` NULL), changed, or deleted (`is` NULL). Queues the
 * ComputeDomain whose condition depends on it. */
void pod_groups_claim_changed(struct controller *c, const struct claim_record *was,
                              const struct claim_record *is);
/* Reports all such claims in the cache. Call it when the replica has become the leader. */
void pod_groups_report_all(struct controller *c);
