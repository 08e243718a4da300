/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_watch: the ComputeDomainFabric of this node's NVLink partition, watched by its name, and asked for
 * beside the claim of each Prepare.
 *
 * A watch may lag behind for as long as a connection that has died stays unnoticed, and a channel that it
 * still shows may be another ComputeDomain's by now. So who gives a channel to a container asks the server
 * first, and believes the answer, or what the watch has told after it. */
#pragma once

#include "kube/kube_client.h"
#include "model/fabric.h"

struct fabric_watch;

/* `changed`: the object, or which fabric is ours. Never from inside fabric_watch_follow(). */
struct fabric_watch *fabric_watch_new(struct kube_client *c, void (*changed)(void *u), void *u);
/* Which clique the node is in now; "": none, and nothing is watched. */
void fabric_watch_follow(struct fabric_watch *w, const char *clique_id);
const char *fabric_watch_clique(const struct fabric_watch *w);
/* As the watch last showed it, NULL: there is none, or it has not been seen yet. Good for what harms nobody
 * when it is late. Lives until the next turn. */
const struct compute_domain_fabric *fabric_watch_get(const struct fabric_watch *w);
/* The watch has shown what there is, be it nothing; or there is nothing to watch. */
bool fabric_watch_seen(const struct fabric_watch *w);
void fabric_watch_free(struct fabric_watch *w); /* after all who ask; NULL is allowed */

/* One who asks. When the node's clique changes, it asks again, for the other one. */
struct fabric_ask;
/* answered: never from inside; e NULL, or why there will be no answer. failed: it did not answer, and is
 * asked again. */
struct fabric_ask *fabric_ask_start(struct fabric_watch *w, void (*answered)(void *u, const struct err *e),
                                    kube_retry_fn *failed, void *u);
/* The node has a clique, and the server has not answered for it yet. */
bool fabric_ask_pending(const struct fabric_ask *a);
/* False: nothing is known that may be believed. Else *ret is what the server answered, or what has been seen
 * after it; NULL: there is no such object. It lives until the next turn. */
bool fabric_ask_see(const struct fabric_ask *a, const struct compute_domain_fabric **ret);
/* Asks once more, unless it does so already: what was seen may be kept from us by the watch. */
void fabric_ask_again(struct fabric_ask *a);
void fabric_ask_cancel(struct fabric_ask *a); /* NULL is allowed */
