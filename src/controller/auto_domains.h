/* SPDX-License-Identifier: Apache-2.0 */
/* auto_domains: creates the ComputeDomains of workloads whose pods have the label CD_LABEL_AUTO. The garbage
 * collector deletes them with their owner (model/auto_domain.h). A pod is input of a tenant: it can only
 * cause one ComputeDomain, with a name that is derived from its metadata, in its own namespace. */
#pragma once

#include "controller/records.h"

/* `name` is "<namespace>/<name>". */
void auto_domains_reconcile(struct controller *c, const char *name);
/* Call this when a ComputeDomain in the cache was added (`old` NULL), changed, or deleted (`now` NULL).
 * Queues its key. */
void auto_domains_changed(struct controller *c, const struct kube_object *old, const struct kube_object *now);
void auto_domains_queue_all(struct controller *c);
