/* SPDX-License-Identifier: Apache-2.0 */
/* daemons: the DaemonSet of the daemons and the claim template of their Pods. Both are applied in
 * driver-managed mode. In host-managed mode they are deleted when no node needs a daemon any more. A new
 * template replaces a daemon's Pod only while its node is in no IMEX domain. The claim template of another
 * version is deleted and recreated before the DaemonSet is updated. */
#pragma once

#include "controller/records.h"

void daemons_reconcile(struct controller *c);
