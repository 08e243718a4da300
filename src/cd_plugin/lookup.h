/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: finds out which ComputeDomains exist. It reads only their metadata. Each Prepare reads one
 * ComputeDomain by its name, or lists the namespace if the name is not known or has another UID. A Prepare
 * that waits for longer watches one namespace. */
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
        bool gated; /* domain_is_gated() */
};

struct lookup_list {
        struct arena *arena;
        SLIST_HEAD(, lookup_domain) domains;
        size_t n;
};
void lookup_list_free(struct lookup_list *l);
const struct lookup_domain *lookup_find(const struct lookup_list *l, const char *uid);

struct lookup;
/* Called once, never from inside lookup_start() or lookup_get(). The callback frees the list, which is NULL
 * on error. */
typedef void(lookup_done_fn)(void *u, struct lookup_list *l, const struct err *e);
/* Lists the ComputeDomains of the namespace `ns`, which is borrowed until the end; NULL: of all namespaces.
 * With `fresh`, the answer includes all earlier writes. Otherwise it comes from the API server's cache, which
 * needs no request to etcd and may miss the latest writes. Retries for as long as the server may still
 * answer, and reports the reason of each failure to `retry`. */
struct lookup *lookup_start(struct kube_client *c, const char *ns, bool fresh, lookup_done_fn *fn,
                            kube_retry_fn *retry, void *u);
/* Reads one ComputeDomain by name from the stored state, not from a cache. The list is empty if it does not
 * exist. */
struct lookup *lookup_get(struct kube_client *c, const char *ns, const char *name, lookup_done_fn *fn,
                          kube_retry_fn *retry, void *u);
void lookup_cancel(struct lookup *l);

/* Watches of namespaces. Prepares that wait in the same namespace share a watch. */
struct lookup_watches;
struct lookup_watch;
/* `changed` is called when a ComputeDomain has a deletionTimestamp or no longer exists, and when a watch has
 * read its whole namespace. */
struct lookup_watches *lookup_watches_new(struct kube_client *c, void (*changed)(void *u), void *u);
void lookup_watches_free(struct lookup_watches *w);
struct lookup_watch *lookup_watch_get(struct lookup_watches *w, const char *ns);
void lookup_watch_put(struct lookup_watch *w); /* NULL is allowed */
/* Returns true if the watch has seen the ComputeDomain with a deletionTimestamp, which is never removed. */
bool lookup_watch_deleting(const struct lookup_watch *w, const char *uid);
/* Returns true if the watch has all ComputeDomains of its namespace, but not this one. That alone is no proof
 * that it does not exist: another Prepare may have started the watch earlier, or the watch may be stale, so a
 * list that has shown the ComputeDomain may be newer. Only a fresh list is proof. */
bool lookup_watch_misses(const struct lookup_watch *w, const char *uid);
