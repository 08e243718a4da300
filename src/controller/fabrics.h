/* SPDX-License-Identifier: Apache-2.0 */
/* fabrics: writes the ComputeDomainFabrics: what rules/channels and rules/assignment decide from what is
 * cached. Does nothing where nothing has any. */
#pragma once

#include "controller/records.h"

/* One fabric, by its clique's id. */
void fabrics_reconcile(struct controller *c, const char *clique);

/* Who is concerned by a change. NULL is allowed for each. */
void fabrics_queue_all(struct controller *c);
void fabrics_queue_of_node(struct controller *c, const char *node);
void fabrics_queue_assigned(struct controller *c, const char *node); /* those that list an assignment of it */
void fabrics_queue_of_domain(struct controller *c, const char *uid);
/* What the kubelet plugin of a node reports; the object itself. */
void fabrics_plugin_changed(struct controller *c, const struct plugin_pod *was, const struct plugin_pod *is);
void fabrics_changed(struct controller *c, const struct compute_domain_fabric *was,
                     const struct compute_domain_fabric *is);
void fabrics_done(struct controller *c);
