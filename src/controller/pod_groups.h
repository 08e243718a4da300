/* SPDX-License-Identifier: Apache-2.0 */
/* pod_groups: reports PodGroups that share one claim for a channel.
 *
 * A channel belongs to a node. So a claim that a PodGroup names in spec.resourceClaims (Kubernetes 1.36 and
 * later, gate DRAWorkloadResourceClaims) keeps all Pods of the group that use it on one node, and the
 * scheduler only reports that it cannot place them. An Event of the PodGroup names the claim, the
 * ComputeDomain and what to write instead. The leader writes one Event for each such claim. */
#pragma once

#include "controller/allocations.h"
#include "controller/records.h"

/* A claim in the cache was added (`was` NULL), changed, or deleted (`is` NULL). */
void pod_groups_changed(struct controller *c, const struct claim_record *was, const struct claim_record *is);
/* Reports all claims in the cache; for a replica that begins to lead. */
void pod_groups_report_all(struct controller *c);
