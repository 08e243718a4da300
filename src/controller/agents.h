/* SPDX-License-Identifier: Apache-2.0 */
/* agents: the DaemonSet of the IMEX agents and the claim template of their Pods: applied where agents are
 * switched on, and removed when they are off and no node needs one any more. An agent's Pod is replaced by a
 * new template only where its node is in no IMEX domain. */
#pragma once

#include "controller/records.h"

void agents_reconcile(struct controller *c);
