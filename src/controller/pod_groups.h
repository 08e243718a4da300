/* SPDX-License-Identifier: Apache-2.0 */
/* pod_groups: reports PodGroups that share one claim for a channel.
 *
 * A channel belongs to a node. So a claim that a PodGroup names in spec.resourceClaims (Kubernetes 1.36 and
 * later, gate DRAWorkloadResourceClaims) keeps all Pods of the group that use it on one node, and the
 * scheduler only reports that it cannot place them. The Event of the PodGroup names the claim and the
 * ComputeDomain, and states what to write instead. The leader writes one Event for each such claim. */
#pragma once

#include "controller/allocations.h"
#include "controller/records.h"

/* Call this when a claim in the cache was added (`was` NULL), changed, or deleted (`is` NULL). */
void pod_groups_changed(struct controller *c, const struct claim_record *was, const struct claim_record *is);
/* Reports all such claims in the cache. Call it when the replica has become the leader. */
void pod_groups_report_all(struct controller *c);
