/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_watch: reads the ComputeDomainFabric of this node's NVLink partition. It watches the object by name,
 * and requests it again for each Prepare, together with the claim.
 *
 * A watch may be stale until a dead connection is noticed. A channel that the watch still shows may by then
 * belong to another ComputeDomain. So the plugin asks the server before it puts a channel into a container,
 * and trusts only the server's answer or later events of the watch. */
#pragma once

#include "kube/kube_client.h"
#include "model/fabric.h"

struct fabric_watch;

/* Creates a watch. `changed` is called when the object or the node's partition has changed, but never from
 * inside fabric_watch_follow(). */
struct fabric_watch *fabric_watch_new(struct kube_client *c, void (*changed)(void *u), void *u);
/* Sets the clique ID of the node. "": the node is in no partition, and nothing is watched. */
void fabric_watch_follow(struct fabric_watch *w, const char *clique_id);
const char *fabric_watch_clique(const struct fabric_watch *w);
/* Returns the object as the watch last saw it; NULL: it does not exist, or the watch has not seen it yet. The
 * result may be stale, so use it only where that does no harm. It is valid until the next turn of the
 * loop. */
const struct compute_domain_fabric *fabric_watch_get(const struct fabric_watch *w);
/* Returns true if the watch knows whether the object exists, or if there is nothing to watch. */
bool fabric_watch_seen(const struct fabric_watch *w);
void fabric_watch_free(struct fabric_watch *w); /* only after all requests have ended; NULL is allowed */

/* A request for the object. When the node's clique ID changes, the request is repeated for the new one. */
struct fabric_ask;
/* Starts a request. `answered` is never called from inside this call; its `e` is NULL, or the reason why
 * there will be no answer. It is also called, with e NULL, when a pending request ends because the node is in
 * no partition any more. `failed` is called when the server did not answer and the request is retried. */
struct fabric_ask *fabric_ask_start(struct fabric_watch *w, void (*answered)(void *u, const struct err *e),
                                    kube_retry_fn *failed, void *u);
/* Returns true if the node is in a partition and the server has not answered yet for that partition. */
bool fabric_ask_pending(const struct fabric_ask *a);
/* Returns false if there is no trusted state yet: the server has not answered, its answer cannot be decoded,
 * or etcd was restored and the watch still has a later version. Otherwise sets *ret to the server's answer,
 * or to a later state from the watch; NULL: the object does not exist. *ret is valid until the next turn of
 * the loop. */
bool fabric_ask_see(const struct fabric_ask *a, const struct compute_domain_fabric **ret);
/* Repeats the request unless one is pending. Use it when the watch may have missed a change. */
void fabric_ask_again(struct fabric_ask *a);
void fabric_ask_cancel(struct fabric_ask *a); /* NULL is allowed */
