/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_watch: the ComputeDomainFabric of this node's NVLink partition: a watch by its name, and a request
 * together with the claim of each Prepare.
 *
 * A watch may be stale for as long as a dead connection stays unnoticed, and a channel that it still shows
 * may now be another ComputeDomain's. So the plugin asks the server before it puts a channel into a
 * container, and trusts only that answer, or later events of the watch. */
#pragma once

#include "kube/kube_client.h"
#include "model/fabric.h"

struct fabric_watch;

/* `changed`: the object, or the node's partition. Never from inside fabric_watch_follow(). */
struct fabric_watch *fabric_watch_new(struct kube_client *c, void (*changed)(void *u), void *u);
/* Sets the clique ID of the node; "": none, and nothing is watched. */
void fabric_watch_follow(struct fabric_watch *w, const char *clique_id);
const char *fabric_watch_clique(const struct fabric_watch *w);
/* The object as last seen by the watch. NULL: none, or not seen yet. For uses that do no harm when it is
 * stale. Valid until the next turn. */
const struct compute_domain_fabric *fabric_watch_get(const struct fabric_watch *w);
/* The watch has seen whether the object exists; or there is nothing to watch. */
bool fabric_watch_seen(const struct fabric_watch *w);
void fabric_watch_free(struct fabric_watch *w); /* after all requests have ended; NULL is allowed */

/* A request. When the node's clique ID changes, it is repeated for the new one. */
struct fabric_ask;
/* answered: never from inside; e NULL, or the reason why no answer will come. failed: the server did not
 * answer, and the request is retried. */
struct fabric_ask *fabric_ask_start(struct fabric_watch *w, void (*answered)(void *u, const struct err *e),
                                    kube_retry_fn *failed, void *u);
/* The node is in a partition, and the server has not answered for it yet. */
bool fabric_ask_pending(const struct fabric_ask *a);
/* False: there is no trusted state yet. Otherwise *ret is the server's answer, or a later state from the
 * watch; NULL: the object does not exist. Valid until the next turn. */
bool fabric_ask_see(const struct fabric_ask *a, const struct compute_domain_fabric **ret);
/* Repeats the request, unless one is pending: the watch may have missed a change. */
void fabric_ask_again(struct fabric_ask *a);
void fabric_ask_cancel(struct fabric_ask *a); /* NULL is allowed */
