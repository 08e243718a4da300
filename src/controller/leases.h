/* SPDX-License-Identifier: Apache-2.0 */
/* leases: finds out when each kubelet was last known to be alive, from its Lease in kube-node-lease.
 *
 * A kubelet renews its Lease every 10 s, so a watch of Leases would have more events than any other watch.
 * Instead, the module lists the Leases when a caller asks. One list serves all callers that ask at the same
 * time. A list that fails is retried with back-off as long as callers ask. Loop thread only.
 *
 * The renewTime of a Lease comes from the kubelet's clock, which may be wrong. So the module only compares it
 * with the renewTime in the previous list: if it is later, the kubelet was alive after the previous list
 * began. The pause between two lists is long enough for a live kubelet to renew its Lease. All returned times
 * are clock_mono_s(). */
#pragma once

#include <stdint.h>

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct leases;

struct leases *leases_new(struct kube_client *client, struct work_queue *queue);
void leases_free(struct leases *l); /* cancels the request in flight; NULL is allowed */

/* Begins a list, or shares the list that is under way. Queues `requester` when the list has ended, with or
 * without success, or when the next list may begin. */
void leases_ask(struct leases *l, const char *requester);
/* Returns when the last successful list began; leases_before(): when the one before it began. 0: there was
 * none. */
int64_t leases_at(const struct leases *l);
int64_t leases_before(const struct leases *l);
/* Returns a time after which the node's kubelet renewed its Lease; 0: no two lists show a renewal. */
int64_t leases_alive_after(const struct leases *l, const char *node);
