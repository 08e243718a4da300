/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: which ComputeDomains exist, as metadata only. For each Prepare one by its name, or a list of its
 * namespace where the name is not known or has another UID. While a Prepare waits for longer, a watch of one
 * namespace. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "kube/kube_client.h"

struct lookup_domain {
        SLIST_ENTRY(lookup_domain) link;
        const char *ns, *name, *uid;
        const char *mode; /* annotation CD_ANNOTATION_MODE; NULL: none */
        bool deleting;
};

struct lookup_list {
        struct arena *arena;
        SLIST_HEAD(, lookup_domain) domains;
        size_t n;
};
void lookup_list_free(struct lookup_list *l);
const struct lookup_domain *lookup_find(const struct lookup_list *l, const char *uid);

struct lookup;
/* Once, never from inside; the list is the callback's to free, NULL on error. */
typedef void(lookup_done_fn)(void *u, struct lookup_list *l, const struct err *e);
/* ns NULL: all namespaces; borrowed for as long as it asks. `fresh`: with all that was written before; else
 * what the API server has in its cache, which costs it no question to the store and may miss the latest. Asks
 * for as long as the server may yet answer, and tells `retry` why it has not. */
struct lookup *lookup_start(struct kube_client *c, const char *ns, bool fresh, lookup_done_fn *fn,
                            kube_retry_fn *retry, void *u);
/* The one of this name, as it is stored now, asked for in the same way; no such object is an empty list. */
struct lookup *lookup_get(struct kube_client *c, const char *ns, const char *name, lookup_done_fn *fn,
                          kube_retry_fn *retry, void *u);
void lookup_cancel(struct lookup *l);

/* Namespaces watched, shared by all who wait in one. */
struct lookup_watches;
struct lookup_watch;
/* changed: a domain goes, or is not there any more; or the watch is complete. */
struct lookup_watches *lookup_watches_new(struct kube_client *c, void (*changed)(void *u), void *u);
void lookup_watches_free(struct lookup_watches *w);
struct lookup_watch *lookup_watch_get(struct lookup_watches *w, const char *ns);
void lookup_watch_put(struct lookup_watch *w); /* NULL is allowed */
/* The watch has shown the domain with a deletionTimestamp, which is never taken back. */
bool lookup_watch_deleting(const struct lookup_watch *w, const char *uid);
/* The watch has the domains of its namespace, and not this one. That alone proves nothing: a list that has
 * shown the domain may be newer than the watch, which others may have begun, or which has lost touch with
 * the server. A fresh list tells. */
bool lookup_watch_misses(const struct lookup_watch *w, const char *uid);
