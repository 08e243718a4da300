/* SPDX-License-Identifier: Apache-2.0 */
/* racks: the ComputeDomains of one rack: made where they are wanted, with their Nodes written down, and
 * deleted when nothing is left of the rack. */
#pragma once

#include "controller/records.h"

void racks_reconcile(struct controller *c, const char *id);
/* Queues the rack that a ComputeDomain is of, and those that remember a Node. NULL is allowed. */
void racks_queue_of(struct controller *c, const struct compute_domain *cd);
/* The racks that may have waited for its name. */
void racks_queue_freed(struct controller *c, const struct compute_domain *gone);
void racks_queue_by_node(struct controller *c, const char *node);
/* The racks whose ComputeDomains list a Node. It stays listed while it has no slice, until its next one
 * states another rack. */
void racks_queue_listing(struct controller *c, const char *node);
void racks_queue_all(struct controller *c);
