/* SPDX-License-Identifier: Apache-2.0 */
/* daemons: the DaemonSet of the IMEX daemons and the claim template of their Pods: applied where the driver
 * runs IMEX, and removed in a host-managed mode when no node needs a daemon any more. A daemon's Pod is
 * replaced by a new template only where its node is in no IMEX domain. The claim template of another
 * version is deleted and created again before the DaemonSet is updated. */
#pragma once

#include "controller/records.h"

void daemons_reconcile(struct controller *c);
