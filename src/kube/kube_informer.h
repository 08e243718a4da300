/* SPDX-License-Identifier: Apache-2.0 */
/* kube_informer: a local copy of a set of objects, by list and watch.
 *
 * It keeps only what the field table decodes and only the objects that `keep` accepts. It pages through
 * lists, resumes a watch from its last resourceVersion, uses bookmarks, lists again on 410 and after a
 * silence that is longer than two bookmarks, and backs off with jitter while the server is away, for as long
 * as that lasts. A resource whose version is not known yet is discovered first. Within a relist, objects that
 * vanished are reported as deleted. Loop thread only.
 *
 * A resourceVersion is a place in the history of one etcd. After a restore from a backup (etcdctl snapshot
 * restore without --bump-revision) there is another history, which counts on from the snapshot's lower
 * version, and a watch that is resumed from the old one misses changes without any error. What kube-apiserver
 * 1.37 does (storage/cacher/cacher.go, watch_cache_history.go, cache_watcher.go process(); also
 * kubernetes/kubernetes#107457):
 *   - A watch from a version ahead of the server's is accepted, with its headers at once. It sends no event
 * up to that version, and no bookmark below it. When the new history has passed the version, events and
 *     bookmarks come as usual, and what happened below it is never sent.
 *   - A watch from a version before the API server's own start is answered 410.
 * So no answer to a watch shows a restore, and no comparison of versions does once the new history has passed
 * the old version. But every restore ends the API servers' processes or their watches: Kubernetes' procedure
 * stops all API servers, and one that loses its etcd ends the watches that it serves. Therefore a watch
 * proves nothing about the history before it unless the one before ended because its time, the timeoutSeconds
 * that it was asked for, was over. After each other end (a broken connection, an early end, a failure) the
 * informer resumes the watch, so that events come at once, and makes a list as soon as the watch has been
 * accepted:
 *   - at once if somebody takes `current` and the last list had one page;
 *   - a minute after the last list if somebody takes `current` and the list is longer: a connection that
 *     breaks again and again must not cost one such list each time;
 *   - otherwise after 30 s +-25 %, which keeps the nodes of a cluster from listing together.
 * That bounds the time from the API server's first answer to the list: at most 12.5 s of back-off, 30 s for
 * the headers and 60 s, and 130 s where nothing but the silence shows it. In a healthy cluster no watch ends
 * before its time, so it costs nothing there. After a restart of the API server most watches are answered 410
 * and have to list in any case. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/kube_client.h"
#include "kube/kube_object.h"

struct kube_informer;

enum { KUBE_MAX_INDEX = 4 };
/* The key under which an object is found in that index, or NULL for none; points into the object. */
typedef const char *(kube_index_fn)(const struct kube_object *o);

/* Strings are copied. res, fields and what they point to are borrowed, and static in all of our programs. */
struct kube_informer_options {
        const struct kube_resource *res;
        const char *ns; /* NULL: all namespaces */
        const char *label_selector, *field_selector;
        const struct jd_field *fields; /* JD_OBJ(struct foo, "metadata", o.meta, kube_f_meta), ... */
        size_t size;                   /* sizeof(struct foo) */
        /* What is kept of an object where that is less than what is decoded. trim takes away what nobody asks
         * for (the object is its own to change), or returns another one from the arena, of `size` bytes,
         * made of one of decoded_size bytes; of that, the members that `kept` names are copied. NULL and 0:
         * nothing is taken away, `fields`, size. */
        const void *(*trim)(void *decoded, struct arena *a);
        const struct jd_field *kept;
        size_t decoded_size;
        bool metadata_only;
        /* The first list may be what the API server has in its cache: it comes at once, where another waits
         * up to 100 ms until the cache is known to be new, and what it misses comes by the watch. It comes
         * whole, so this is for few objects. */
        bool first_from_cache;
        /* Objects a page of a list; 0: 500. Less for large ones: a page is in memory twice for a moment.
         * kube_pages halves it when it has to. */
        unsigned limit;
        kube_index_fn *index[KUBE_MAX_INDEX];
        bool (*keep)(void *u, const struct kube_object *o); /* NULL: all */
        /* old NULL: added; now NULL: deleted. Called for each object of the first list too, before synced.
         * The cache already holds `now`. */
        void (*changed)(void *u, const struct kube_object *old, const struct kube_object *now);
        void (*synced)(void *u); /* once, after the first complete list; may be NULL */
        /* An object that cannot be decoded is skipped and told here, once per version; the watch goes on. May
         * be NULL (then logged at -v 2). */
        void (*undecodable)(void *u, const struct kube_resource *res, const struct err *e);
        /* The server refuses us (403, ...): told on each change of the reason, retried for ever; e NULL when
         * well again. ERR_RETRY (the server is away, or answers 404 without a word about an object, as it
         * does while a CRD is missing) is told from the third failure in a row on. */
        void (*failing)(void *u, const struct kube_resource *res, const struct err *e);
        /* kube_informer_current() has changed. May be NULL. */
        void (*current)(void *u, bool is);
        unsigned silence_ms; /* 0: 130 s, two bookmarks and a little */
        void *u;
};

struct kube_informer *kube_informer_new(struct kube_client *c,
                                        const struct kube_informer_options *o); /* starts in the next turn */
/* No more callbacks; releases the cache, at the end of the callback when called from inside one. NULL is
 * allowed. Before kube_client_free. */
void kube_informer_free(struct kube_informer *i);

bool kube_informer_synced(const struct kube_informer *i);
/* Whether what the cache says is known to be so: a list was complete, the API server has accepted a watch
 * from its version on, and since then it gave a sign of life (an event, a bookmark, the head of a watch, its
 * end when its time was over) within silence_ms, without a failure. After a failure, a silence or an early
 * end it is current again when there was another list (see above when) and a watch was accepted behind that.
 * A watch that ended when its time was over and is resumed at once stays current. `current` reports changes.
 *
 * What it does not promise: that nothing is on its way. Events since a list, or since the watch before, come
 * right behind the head; the API server's own cache lags behind etcd, by milliseconds mostly; and a
 * connection that died silently is noticed after silence_ms. So who destroys something because it is not
 * here, and could not restore it, asks the API server once more. While this is false, what is not in the
 * cache may well exist, and what is there may be gone. */
bool kube_informer_current(const struct kube_informer *i);
size_t kube_informer_count(const struct kube_informer *i);
const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name);

/* Visits all objects, or those of one index key; the visitor must not free the informer. Returns early when
 * it returns false. */
typedef bool(kube_visit_fn)(void *u, const struct kube_object *o);
void kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u);
void kube_informer_each_at(const struct kube_informer *i, unsigned index, const char *key, kube_visit_fn *fn,
                           void *u);
/* The first object of an index key, or NULL: for unique keys such as a UID. */
const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key);

/* Takes the server's answer to our own write into the cache at once when it is newer than what is there, so
 * that the next reconcile does not act on the past. `changed` is called as for a watch event (in a later
 * turn). An object that a watch already reported deleted is not revived, and one that does not match the
 * selectors goes again when the watch has passed its version. */
void kube_informer_answer(struct kube_informer *i, yyjson_val *obj);
/* The same of the answer to a deletion after which the object is gone: a Status, which says the UID. An event
 * from before it that is still on its way brings the object back until the watch tells of its end. */
void kube_informer_answer_deleted(struct kube_informer *i, const char *ns, const char *name,
                                  yyjson_val *status);
/* The user has seen that the cluster's history is another one: an object that he read is older than the
 * version that the cache had when the request was sent. The informer lists at once. Not from inside its own
 * callbacks. */
void kube_informer_relist(struct kube_informer *i);
/* Tells what came in answers now instead of in a later turn. Not from inside `changed`; NULL is allowed. */
void kube_informer_tell(struct kube_informer *i);
