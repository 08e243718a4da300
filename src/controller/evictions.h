/* SPDX-License-Identifier: Apache-2.0 */
/* evictions: evicts pods with a channel from nodes whose IMEX has failed for long enough, so that their
 * owners create them on other nodes. Off unless the configuration has a time. rules/eviction decides.
 *
 * Only the leader evicts, and only while no cache is stale. It looks every EVICTIONS_LOOK_MS. It takes the
 * pods from status.reservedFor of the claims that the node uses, and reads claim and pod before it evicts the
 * pod by its UID. A claim that is reserved for a PodGroup names no pods, and a shared claim names pods on
 * other nodes: then it lists the pods of the node. It has one request in flight, and evicts at most
 * EVICTIONS_AT_ONCE pods per look. A PodDisruptionBudget, a webhook or RBAC can refuse an eviction: then an
 * Event of the pod has the answer, and the node is looked at again after EVICTIONS_AGAIN_S. */
#pragma once

#include "controller/records.h"

enum { EVICTIONS_LOOK_MS = 10000, EVICTIONS_AT_ONCE = 10, EVICTIONS_AGAIN_S = 60 };

/* Returns NULL if evictions are off. */
struct evictions *evictions_new(struct controller *c);
void evictions_free(struct evictions *e); /* NULL is allowed */
