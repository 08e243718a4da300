/* SPDX-License-Identifier: Apache-2.0 */
/* fabrics: writes the fabric objects. rules/channels and rules/assignment decide their content from the
 * caches. The module does nothing for partitions that need no fabric object. */
#pragma once

#include "controller/records.h"

/* Decides and writes the fabric object of the partition with this clique ID. */
void fabrics_reconcile(struct controller *c, const char *clique);

/* The keys of a fabric object in the index of its informer: the nodes that it lists, and the UIDs of the
 * owners of its channels and IMEX domains. */
void fabrics_keys(const struct kube_object *o, kube_key_fn *add, void *v);

/* The functions below queue the fabric objects that a change concerns. Each argument except `c` may be
 * NULL. */
void fabrics_queue_all(struct controller *c);
void fabrics_queue_of_node(struct controller *c, const char *node);
/* The fabric objects that list an assignment or a removal of the node, even if it is in another partition. */
void fabrics_queue_listing(struct controller *c, const char *node);
void fabrics_queue_of_domain(struct controller *c, const char *uid);
/* Queues the ComputeDomains that own a channel or an IMEX domain in the fabric objects with this node. */
void fabrics_queue_owners_on(struct controller *c, const char *node);
/* Call these when the Pod of a plugin, with its report, has changed, and when a fabric object itself has
 * changed. */
void fabrics_plugin_changed(struct controller *c, const struct plugin_pod *was, const struct plugin_pod *is);
void fabrics_changed(struct controller *c, const struct compute_domain_fabric *was,
                     const struct compute_domain_fabric *is);
