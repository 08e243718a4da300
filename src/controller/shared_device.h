/* SPDX-License-Identifier: Apache-2.0 */
/* shared_device: keeps the ResourceSlice of the device that claims of pods on several nodes share, and
 * decides which Nodes have the label that it selects.
 *
 * The slice exists from the first ComputeDomain that asks for such claims. An API server without the feature
 * drops the field that allows any number of claims, and the first claim would get the device for itself. So
 * no Node has the label until the cache shows the slice with this field, and a slice without it is deleted.
 */
#pragma once

#include "controller/plan.h"
#include "controller/records.h"

/* Writes or deletes the slice. */
void shared_device_reconcile(struct controller *c);
enum shared_device_state shared_device_state(const struct controller *c);
/* Returns whether the Node should have the label CD_LABEL_SHARED. */
bool shared_device_is_on(const struct controller *c, const struct node *n);
/* Call it when a slice without a node in the cache has changed, or a ComputeDomain that asks for shared
 * claims has appeared. */
void shared_device_changed(struct controller *c);
/* Queues the slice if it exists or should exist. Call it when the replica has become the leader. */
void shared_device_begin(struct controller *c);
