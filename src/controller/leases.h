/* SPDX-License-Identifier: Apache-2.0 */
/* leases: when the kubelets have shown life last, by their Leases in kube-node-lease.
 *
 * A kubelet renews its Lease every 10 s, so a watch of them would be the busiest of all: they are listed when
 * somebody asks, once for all who ask in the same moment. A list that fails is repeated with growing pauses
 * as long as somebody asks. Loop thread only. */
#pragma once

#include <stdint.h>

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct leases;

struct leases *leases_new(struct kube_client *client, struct work_queue *queue);
void leases_free(struct leases *l); /* cancels what is under way; NULL is allowed */

/* Begins a list; what is asked for while one is under way shares it. `requester` is queued when it has ended,
 * whatever came of it. */
void leases_ask(struct leases *l, const char *requester);
/* When the last list that succeeded was begun, in seconds since 1970; 0: there was none. */
int64_t leases_at(const struct leases *l);
/* When this node's kubelet renewed its Lease, as of then; 0: it has none. */
int64_t leases_renewed(const struct leases *l, const char *node);
