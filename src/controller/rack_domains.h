/* SPDX-License-Identifier: Apache-2.0 */
/* rack_domains: creates, updates and deletes the ComputeDomains of a rack. The controller creates them in the
 * namespaces that want them, records the Nodes of the rack in them, and deletes them when the rack has no
 * Nodes any more. */
#pragma once

#include "controller/records.h"

void rack_domains_reconcile(struct controller *c, const char *id);
/* Queues the rack of a ComputeDomain. NULL is allowed. */
void rack_domains_queue_of(struct controller *c, const struct compute_domain *cd);
/* Queues the racks that may have waited for the name of a deleted ComputeDomain. */
void rack_domains_queue_freed(struct controller *c, const struct compute_domain *gone);
/* Queues the rack of a Node. If the Node has no ResourceSlice, queues the racks whose ComputeDomains list the
 * Node. */
void rack_domains_queue_by_node(struct controller *c, const char *node);
/* Queues the racks whose ComputeDomains list a Node. A Node without a ResourceSlice stays listed until its
 * next ResourceSlice names another rack. */
void rack_domains_queue_listing(struct controller *c, const char *node);
void rack_domains_queue_all(struct controller *c);
