/* SPDX-License-Identifier: Apache-2.0 */
/* shared_claims: allocates the claims that pods on several nodes share, reserves them for PodGroups, and
 * removes the driver's finalizer from deleted ones, as rules/shared_claim decides. */
#pragma once

#include "controller/records.h"

/* Decides and writes the claim "<namespace>/<name>". */
void shared_claims_reconcile(struct controller *c, const char *key);
/* Call this when a claim in the cache was added (`was` NULL), changed, or deleted (`is` NULL). */
void shared_claims_changed(struct controller *c, const struct claim_record *was,
                           const struct claim_record *is);
/* Queues the claims of one ComputeDomain, or all. */
void shared_claims_queue_of(struct controller *c, const char *domain_uid);
void shared_claims_queue_all(struct controller *c);

/* Returns the claim with the name of the ComputeDomain's shared claim that the controller created for another
 * ComputeDomain, normally for an earlier one with the same name; NULL: the cache shows none. */
const struct claim_record *shared_claims_of_another(const struct controller *c,
                                                    const struct compute_domain *cd);
/* Returns whether this controller has had no report of a Node's plugin since it started, and the
 * ComputeDomain has a channel in the Node's partition: then pods of the node may use it by a shared claim.
 * When the plugin reports, or the Node is deleted, the ComputeDomain is queued. */
bool shared_claims_may_be_used(const struct controller *c, const char *uid);
