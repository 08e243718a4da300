/* SPDX-License-Identifier: Apache-2.0 */
/* leases: when the kubelets have shown life last, by their Leases in kube-node-lease.
 *
 * A kubelet renews its Lease every 10 s, so a watch of them would be the busiest of all: they are listed when
 * somebody asks, once for all who ask in the same moment. A list that fails is repeated with growing pauses
 * as long as somebody asks. Loop thread only.
 *
 * The renewTime of a Lease is by the kubelet's clock, which may be wrong. So it is only compared with the one
 * in the list before: where it is later, the kubelet was alive after that list was begun. There is a pause
 * between two lists, in which a kubelet that lives renews its Lease. All times that are returned
 * are seconds since 1970 by the clock of this process. */
#pragma once

#include <stdint.h>

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct leases;

/* pause_ms: from the end of a list to the next one. */
struct leases *leases_new(struct kube_client *client, struct work_queue *queue, unsigned pause_ms);
void leases_free(struct leases *l); /* cancels what is under way; NULL is allowed */

enum { LEASES_PAUSE_MS = 15000 };

/* Begins a list; what is asked for while one is under way shares it. `requester` is queued when it has ended,
 * whatever came of it, or when the next one may begin. */
void leases_ask(struct leases *l, const char *requester);
/* When the last list that succeeded was begun, and the one before that, by clock_mono_s(); 0: there was none.
 */
int64_t leases_at(const struct leases *l);
int64_t leases_before(const struct leases *l);
/* This node's kubelet renewed its Lease after this time; 0: no two lists show that it did. */
int64_t leases_alive_after(const struct leases *l, const char *node);
