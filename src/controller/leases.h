/* SPDX-License-Identifier: Apache-2.0 */
/* leases: when each kubelet was last known to be alive, by its Lease in kube-node-lease.
 *
 * A kubelet renews its Lease every 10 s, so a watch of Leases would have more events than any other. Instead
 * they are listed when a caller asks. One list serves all callers that ask at the same time. A list that
 * fails is retried with back-off as long as callers ask. Loop thread only.
 *
 * The renewTime of a Lease comes from the kubelet's clock, which may be wrong. So it is only compared with
 * the renewTime in the previous list: if it is later, the kubelet was alive after that list began. Between
 * two lists there is a pause that is long enough for a live kubelet to renew its Lease. All returned times
 * are clock_mono_s(). */
#pragma once

#include <stdint.h>

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct leases;

/* pause_ms: from the end of a list to the next one. */
struct leases *leases_new(struct kube_client *client, struct work_queue *queue, unsigned pause_ms);
void leases_free(struct leases *l); /* cancels the request in flight; NULL is allowed */

enum { LEASES_PAUSE_MS = 15000 };

/* Begins a list, or shares the one that is under way. `requester` is queued when the list has ended, with or
 * without success, or when the next one may begin. */
void leases_ask(struct leases *l, const char *requester);
/* When the last successful list began, and the one before it; 0: there was none. */
int64_t leases_at(const struct leases *l);
int64_t leases_before(const struct leases *l);
/* The node's kubelet renewed its Lease after the returned time; 0: no two lists show a renewal. */
int64_t leases_alive_after(const struct leases *l, const char *node);
