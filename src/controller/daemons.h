/* SPDX-License-Identifier: Apache-2.0 */
/* daemons: maintains the DaemonSet of the daemons and the claim template of their Pods. In driver-managed
 * mode, the controller applies both. In host-managed mode, it deletes them when no node needs a daemon any
 * more. After a change of the Pod template, it replaces a daemon's Pod only while the node is in no IMEX
 * domain. If the claim template is from another version, it deletes and recreates the claim template before
 * it updates the DaemonSet. */
#pragma once

#include "controller/records.h"

void daemons_reconcile(struct controller *c);
/* Queues a pass of the rollout if the change of a daemon's Pod concerns it. `was` NULL: the Pod was created;
 * `is` NULL: it was deleted. */
void daemons_pod_changed(struct controller *c, const struct daemon_pod *was, const struct daemon_pod *is);
