/* SPDX-License-Identifier: Apache-2.0 */
/* shared_device: keeps the ResourceSlice of the device that claims of pods on several nodes share, and
 * decides which Nodes have the label that it selects.
 *
 * The slice exists from the first ComputeDomain that asks for such claims. An API server without the feature
 * drops the field that allows any number of claims, and the first claim would get the device for itself. So
 * no Node has the label until the cache shows the slice with this field, and a slice without it is deleted.
 * The controller writes the slice only as resource.k8s.io/v1. If the client uses another version, it asks the
 * API server for v1 every REFUSED_S, and an existing slice stays.
 *
 * While no Node has the label, no pod that uses a shared claim gets a node, and the condition
 * SharedClaimAvailable is False. All Nodes may lack it for a moment: when the slice is new, and when IMEX is
 * restarted everywhere. So the condition changes only after REACH_S, and then once. */
#pragma once

#include "controller/plan.h"
#include "controller/records.h"

/* Writes or deletes the slice. */
void shared_device_reconcile(struct controller *c);
enum shared_device_state shared_device_state(const struct controller *c);
enum shared_claim_reach shared_device_reach(const struct controller *c);
/* Returns why the slice cannot be written; NULL: no reason is known. */
const char *shared_device_error(const struct controller *c);
/* Returns whether the Node should have the label CD_LABEL_SHARED. */
bool shared_device_is_on(const struct controller *c, const struct node *n);
/* Call it when a slice without a node in the cache has changed, or a ComputeDomain that asks for shared
 * claims has appeared. */
void shared_device_changed(struct controller *c);
/* Call it for each change of a Node in the cache; `was` NULL: it was added; `is` NULL: it was deleted. */
void shared_device_node_changed(struct controller *c, const struct node *was, const struct node *is);
/* Cancels the request in flight. */
void shared_device_stop(struct controller *c);
/* Queues the slice if it exists or should exist. Call it when the replica has become the leader. */
void shared_device_begin(struct controller *c);
