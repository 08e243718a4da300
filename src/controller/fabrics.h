/* SPDX-License-Identifier: Apache-2.0 */
/* fabrics: writes the fabric objects, as rules/channels and rules/assignment decide from the caches. Does
 * nothing where no partition needs an object. */
#pragma once

#include "controller/records.h"

/* The fabric object of one partition, by its clique ID. */
void fabrics_reconcile(struct controller *c, const char *clique);

/* Queue the fabric objects that a change concerns. NULL is allowed for each argument. */
void fabrics_queue_all(struct controller *c);
void fabrics_queue_of_node(struct controller *c, const char *node);
void fabrics_queue_assigned(struct controller *c, const char *node); /* those that list its assignments */
void fabrics_queue_of_domain(struct controller *c, const char *uid);
/* A plugin's Pod, with its report, has changed; the fabric object itself has changed. */
void fabrics_plugin_changed(struct controller *c, const struct plugin_pod *was, const struct plugin_pod *is);
void fabrics_changed(struct controller *c, const struct compute_domain_fabric *was,
                     const struct compute_domain_fabric *is);
void fabrics_done(struct controller *c);
