/* SPDX-License-Identifier: Apache-2.0 */
/* rack_domains: creates, updates and deletes the ComputeDomains of a rack. The controller creates them in the
 * namespaces that want them, records the Nodes of the rack in them, and deletes them when the rack has no
 * Nodes any more. */
#pragma once

#include "controller/records.h"

/* A Namespace with the label CD_LABEL_RACK_DOMAINS. */
struct rack_namespace {
        struct kube_object o;
        const char *label; /* the value */
};
extern const struct jd_field rack_namespace_fields[];
/* Call it for each change in the cache; `was` NULL: it was added; `is` NULL: it was deleted. Queues the racks
 * if the namespace begins or ceases to want them. The leader reports a value of the label that has no effect
 * in an Event of the Namespace. */
void rack_domains_namespace_changed(struct controller *c, const struct rack_namespace *was,
                                    const struct rack_namespace *is);
/* Reports all such values. Call it when the replica has become the leader. */
void rack_domains_report_labels(struct controller *c);

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
