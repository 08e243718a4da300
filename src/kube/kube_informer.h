/* SPDX-License-Identifier: Apache-2.0 */
/* kube_informer: a local copy of a set of objects, by list and watch.
 *
 * It keeps only what the field table decodes and only the objects that `keep` accepts. It pages through
 * lists, resumes a watch from its last resourceVersion, uses bookmarks, lists again on 410 and after a
 * silence that is longer than two bookmarks, and backs off with jitter while the server is away, for as long
 * as that lasts. Within a relist, objects that
 * vanished are reported as deleted. Loop thread only.
 *
 * A resourceVersion is a place in the history of one etcd. After a restore from a backup (etcdctl snapshot
 * restore without --bump-revision) there is another history, which continues from the snapshot's lower
 * version. A watch that is resumed from the old version misses changes without any error. kube-apiserver 1.37
 * behaves like this (storage/cacher/cacher.go, watch_cache_history.go, cache_watcher.go process(); also
 * kubernetes/kubernetes#107457):
 *   - It accepts a watch from a version ahead of the present one, and sends the headers at once. It sends no
 * event up to that version, and no bookmark below it. When the new history has passed the version, events and
 *     bookmarks come as usual, and it never sends the changes below it.
 *   - It answers a watch from a version before its own start with 410.
 * So no answer to a watch shows a restore. Nor does a comparison of versions, once the new history has passed
 * the old version. But every restore ends the API servers' processes or their watches: Kubernetes' procedure
 * stops all API servers, and an API server that loses its etcd ends the watches that it serves. Therefore a
 * watch proves nothing about the history before it, unless the previous watch ended at its own time limit
 * (timeoutSeconds). After each other end (a broken connection, an early end, a failure) the informer resumes
 * the watch, so that events come at once, and lists when the watch has been accepted:
 *   - at once if `current` is used and the last list had one page;
 *   - a minute after the last list if `current` is used and the list is longer: a connection that
 *     breaks again and again must not cost one such list each time;
 *   - otherwise after 30 s +-25 %, which keeps the nodes of a cluster from listing together.
 * That limits the time from the API server's first answer to the list: at most 12.5 s of back-off, 30 s for
 * the headers and 60 s; and 130 s where only the silence shows it. In a healthy cluster no watch ends before
 * its time, so there it costs nothing. After a restart of the API server, most watches are answered with 410,
 * and have to list in any case. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/kube_client.h"
#include "kube/kube_object.h"

struct kube_informer;

enum { KUBE_MAX_INDEX = 4 };
/* The key under which this index finds an object, or NULL for none; points into the object. */
typedef const char *(kube_index_fn)(const struct kube_object *o);

/* Strings are copied. res, fields and everything that they point to are borrowed, and static in our
 * programs. */
struct kube_informer_options {
        const struct kube_resource *res;
        const char *ns; /* NULL: all namespaces */
        const char *label_selector, *field_selector;
        const struct jd_field *fields; /* JD_OBJ(struct foo, "metadata", o.meta, kube_f_meta), ... */
        size_t size;                   /* sizeof(struct foo) */
        /* For objects of which less is kept than is decoded. trim removes the parts that are not needed: it
         * may change the object, or return another one from the arena, of `size` bytes, made from one of
         * decoded_size bytes. Then the members that `kept` names are copied. NULL and 0: nothing is removed,
         * `fields`, size. */
        const void *(*trim)(void *decoded, struct arena *a);
        const struct jd_field *kept;
        size_t decoded_size;
        bool metadata_only;
        /* The first list may come from the API server's cache: it comes at once, while another list waits up
         * to 100 ms until the cache is known to be current. The watch then delivers the changes that it
         * lacks. The list has no pages, so use this for few objects only. */
        bool first_from_cache;
        /* Objects per page of a list; 0: 500. Use less for large objects: a page is in memory twice for a
         * moment. kube_pages halves it when necessary. */
        unsigned limit;
        kube_index_fn *index[KUBE_MAX_INDEX];
        bool (*keep)(void *u, const struct kube_object *o); /* NULL: all */
        /* old NULL: added; now NULL: deleted. Also called for each object of the first list, before synced.
         * The cache already holds `now`. */
        void (*changed)(void *u, const struct kube_object *old, const struct kube_object *now);
        void (*synced)(void *u); /* once, after the first complete list; may be NULL */
        /* An object that cannot be decoded is skipped, and reported here once per version. The watch
         * continues. May be NULL (then it is logged at -v 2). */
        void (*undecodable)(void *u, const struct kube_resource *res, const struct err *e);
        /* The server refuses the request (403, ...): called on each change of the reason, while the informer
         * retries forever. e is NULL when it works again. ERR_RETRY (the server is unreachable, or answers
         * 404 without naming an object, as it does while a CRD is missing) is reported from the third failure
         * in a row on. */
        void (*failing)(void *u, const struct kube_resource *res, const struct err *e);
        /* kube_informer_current() has changed. May be NULL. */
        void (*current)(void *u, bool is);
        unsigned silence_ms; /* 0: 130 s, two bookmarks and a little */
        void *u;
};

struct kube_informer *kube_informer_new(struct kube_client *c,
                                        const struct kube_informer_options *o); /* starts in the next turn */
/* Stops all callbacks. Releases the cache; when called from inside a callback, at the end of it. NULL is
 * allowed. Call it before kube_client_free(). */
void kube_informer_free(struct kube_informer *i);

bool kube_informer_synced(const struct kube_informer *i);
/* Whether the cache is known to be right: a list was complete, the API server has accepted a watch from its
 * version on, and since then there was a sign of life within silence_ms (an event, a bookmark, the head of a
 * watch, or its end at its time limit) and no failure. After a failure, a silence or an early end, the cache
 * is current again when there was another list (see above) and a watch was accepted afterwards. A watch that
 * ended at its time limit and is resumed at once stays current. `current` reports changes.
 *
 * Changes may still be on their way: events since a list, or since the previous watch, follow the head at
 * once; the API server's own cache is behind etcd, usually by milliseconds; and a connection that died
 * silently is noticed after silence_ms. So before you destroy something because it is not in the cache, and
 * you could not restore it, ask the API server again. While this is false, objects that are not in the cache
 * may exist, and objects in it may be deleted. */
bool kube_informer_current(const struct kube_informer *i);
size_t kube_informer_count(const struct kube_informer *i);
const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name);

/* Visits all objects, or those of one index key. The visitor must not free the informer. Returns early when
 * the visitor returns false. */
typedef bool(kube_visit_fn)(void *u, const struct kube_object *o);
void kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u);
void kube_informer_each_at(const struct kube_informer *i, unsigned index, const char *key, kube_visit_fn *fn,
                           void *u);
/* The first object of an index key, or NULL: for unique keys such as a UID. */
const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key);

/* Takes the server's answer to our own write into the cache at once, if it is newer than the cached object,
 * so that the next reconcile does not act on the past. `changed` is called as for a watch event (in a later
 * turn). An object that a watch already reported deleted is not restored. An object that does not match the
 * selectors is removed when the watch has passed its version. */
void kube_informer_answer(struct kube_informer *i, yyjson_val *obj);
/* The same for the answer to a deletion after which the object no longer exists: a Status with the UID. An
 * earlier event that arrives later restores the object until the watch reports the deletion. */
void kube_informer_answer_deleted(struct kube_informer *i, const char *ns, const char *name,
                                  yyjson_val *status);
/* Reports that the cluster's history has changed: an object that the caller read is older than the version
 * that the cache had when the request was sent. The informer lists at once. Not from inside its own
 * callbacks. */
void kube_informer_relist(struct kube_informer *i);
/* Reports changes from answers now instead of in a later turn. Not from inside `changed`; NULL is allowed. */
void kube_informer_notify(struct kube_informer *i);
