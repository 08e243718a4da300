/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: which ComputeDomains exist, as metadata only. Each Prepare reads one by its name, or a list of its
 * namespace if the name is not known or has another UID. A Prepare that waits for longer watches one
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
/* Called once, never from inside; the callback frees the list, which is NULL on error. */
typedef void(lookup_done_fn)(void *u, struct lookup_list *l, const struct err *e);
/* ns NULL: all namespaces; borrowed until the end. `fresh`: includes all earlier writes; otherwise the answer
 * is from the API server's cache, which needs no request to etcd and may miss the latest writes. Retries for
 * as long as the server may still answer, and reports the reason of each failure to `retry`. */
struct lookup *lookup_start(struct kube_client *c, const char *ns, bool fresh, lookup_done_fn *fn,
                            kube_retry_fn *retry, void *u);
/* The same for one name, as it is stored now; an empty list if it does not exist. */
struct lookup *lookup_get(struct kube_client *c, const char *ns, const char *name, lookup_done_fn *fn,
                          kube_retry_fn *retry, void *u);
void lookup_cancel(struct lookup *l);

/* Watches of namespaces. Prepares that wait in the same namespace share one. */
struct lookup_watches;
struct lookup_watch;
/* changed: a domain has a deletionTimestamp or no longer exists; or the watch is complete. */
struct lookup_watches *lookup_watches_new(struct kube_client *c, void (*changed)(void *u), void *u);
void lookup_watches_free(struct lookup_watches *w);
struct lookup_watch *lookup_watch_get(struct lookup_watches *w, const char *ns);
void lookup_watch_put(struct lookup_watch *w); /* NULL is allowed */
/* The watch has seen the domain with a deletionTimestamp, which is never removed. */
bool lookup_watch_deleting(const struct lookup_watch *w, const char *uid);
/* The watch has all domains of its namespace, but not this one. That alone is no proof: a list that has shown
 * the domain may be newer than the watch, which another Prepare may have started, or which may be stale. Only
 * a fresh list is. */
bool lookup_watch_misses(const struct lookup_watch *w, const char *uid);
