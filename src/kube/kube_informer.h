/* SPDX-License-Identifier: Apache-2.0 */
/* kube_informer: keeps a local copy of a set of objects, by list and watch.
 *
 * The informer keeps only the members that the field table decodes, and only the objects that `keep` accepts.
 * It reads lists page by page, resumes a watch from its last resourceVersion, uses bookmarks, and lists again
 * after a 410 and after a silence that is longer than two bookmarks. While the server does not answer, the
 * informer retries forever, with back-off and jitter. When a new list lacks an object of the cache, the
 * informer reports the object as deleted. kube_freshness.h describes when the informer lists again. Loop
 * thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/kube_client.h"
#include "kube/kube_object.h"

struct kube_informer;

enum { KUBE_MAX_INDEX = 4 };
/* Returns the key under which an index contains an object, or NULL: the index does not contain the object.
 * The key points into the object. */
typedef const char *(kube_index_fn)(const struct kube_object *o);
/* Calls `add` with each key of an object that may have many, for example each node that it lists. The keys
 * point into the object, and may repeat. The function must call `add` with the same keys each time. */
typedef void(kube_key_fn)(void *v, const char *key);
typedef void(kube_keys_fn)(const struct kube_object *o, kube_key_fn *add, void *v);

/* Strings are copied. `res`, `fields` and everything that these point to are borrowed, and static in our
 * programs. */
struct kube_informer_options {
        const struct kube_resource *res;
        const char *ns; /* NULL: all namespaces */
        const char *label_selector, *field_selector;
        const char *name; /* watches the object with this name, and needs no field_selector; NULL: all */
        const struct jd_field *fields; /* JD_OBJ(struct foo, "metadata", o.meta, kube_f_meta), ... */
        size_t size;                   /* sizeof(struct foo) */
        /* For informers that keep only a part of each decoded object. `trim` removes the parts that are not
         * needed: it gets an object of decoded_size bytes, and changes it or returns another object of `size`
         * bytes in the arena. Then the informer copies the members that `kept` names. Defaults: trim NULL
         * removes nothing, kept NULL means `fields`, and decoded_size 0 means `size`. */
        const void *(*trim)(void *decoded, struct arena *a);
        const struct jd_field *kept;
        size_t decoded_size;
        bool metadata_only;
        /* For informers that list whole objects, but watch only their metadata: a change of a large object
         * then costs only its metadata. `inherit` gets a trimmed object of which only the metadata has
         * arrived, by a watch or by an answer, and the cached version of the same object, by UID (NULL: there
         * is none). It returns an object in the arena that has the other members of `old`. A whole object
         * replaces a completed one of the same version: see kube_informer_answer(). */
        const void *(*inherit)(const void *trimmed, const struct kube_object *old, struct arena *a);
        /* Allows the first list to come from the API server's cache. Such a list arrives at once, while for
         * any other list the API server waits up to 100 ms until its cache is known to be current. The watch
         * then delivers the changes that the list lacks. The list has no pages, so use this for few objects
         * only. */
        bool first_from_cache;
        /* Objects per page of a list; 0: 500. Use a smaller limit for large objects, because a page is in
         * memory twice for a moment. kube_pages halves the limit when necessary. */
        unsigned limit;
        kube_index_fn *index[KUBE_MAX_INDEX];
        kube_keys_fn *keys; /* one more index, by many keys for each object; NULL: none */
        bool (*keep)(void *u, const struct kube_object *o); /* NULL: all */
        /* Called for each change. `old` NULL: the object was added; `now` NULL: it was deleted. Also called
         * for each object of the first list, before `synced`. The cache already contains `now`. */
        void (*changed)(void *u, const struct kube_object *old, const struct kube_object *now);
        void (*synced)(void *u); /* called once, after the first complete list; may be NULL */
        /* Called once per version of an object that cannot be decoded. The informer skips the object and
         * continues the watch. May be NULL: then the error is logged at -v 2. */
        void (*undecodable)(void *u, const struct kube_resource *res, const struct err *e);
        /* Called when the server rejects the request (403, ...), and again each time the reason changes,
         * while the informer retries forever. `e` is NULL when the request succeeds again. ERR_RETRY (the
         * server is unreachable, or answers 404 without naming an object, as it does while a CRD is missing)
         * is reported from the third failure in a row on. */
        void (*failing)(void *u, const struct kube_resource *res, const struct err *e);
        /* Called when the result of kube_informer_current() has changed; `is` is the new result. May be
         * NULL. */
        void (*current)(void *u, bool is);
        unsigned silence_ms; /* 0: 130 s, slightly more than the interval of two bookmarks */
        void *u;
};

struct kube_informer *kube_informer_new(struct kube_client *c,
                                        const struct kube_informer_options *o); /* starts in the next turn */
/* Stops all callbacks and releases the cache. Called from inside a callback, it releases the cache when the
 * callback returns. NULL is allowed. Call it before kube_client_free(). */
void kube_informer_free(struct kube_informer *i);

bool kube_informer_synced(const struct kube_informer *i);
/* Returns whether the cache is known to be current: a list was complete, the API server has accepted a watch
 * from the version of the list on, no failure has happened since, and the last sign of life (an event, a
 * bookmark, the head of a watch, or its end at its time limit) is not older than silence_ms. After a failure,
 * a silence or an early end of the watch, the cache is current again when the informer has listed again
 * (kube_freshness.h) and a watch has been accepted after that. The cache stays current if a watch ended at
 * its time limit and is resumed at once. The callback `current` reports changes of this result.
 *
 * Even a current cache may lack recent changes: events since a list, or since the previous watch, arrive just
 * after the head; the API server's own cache is behind etcd, usually by milliseconds; and the informer
 * notices a connection that died silently only after silence_ms. So before you irreversibly destroy something
 * because an object is not in the cache, ask the API server again. While the result is false, objects that
 * are not in the cache may exist, and objects in the cache may have been deleted. */
bool kube_informer_current(const struct kube_informer *i);
size_t kube_informer_count(const struct kube_informer *i);
const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name);

/* Visit all objects, or the objects with one index key. The visitor must not free the informer. When the
 * visitor returns false, the visit ends. */
typedef bool(kube_visit_fn)(void *u, const struct kube_object *o);
void kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u);
void kube_informer_each_at(const struct kube_informer *i, unsigned index, const char *key, kube_visit_fn *fn,
                           void *u);
/* Visits the objects that have this key in the index of `keys`, each once. */
void kube_informer_each_with(const struct kube_informer *i, const char *key, kube_visit_fn *fn, void *u);
/* Returns the first object with an index key, or NULL. Use it for unique keys such as a UID. */
const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key);

/* Stores the server's answer to our own write in the cache at once, if it is newer than the cached object, so
 * that the next reconcile does not use old data. `changed` is called as for a watch event (in a later turn).
 * An object that a watch has already reported as deleted is not restored. An object that does not match the
 * selectors is removed when the watch has passed its version. With `inherit`, the answer to a read of a whole
 * object is stored, too, if the cache has only the metadata of the same version. */
void kube_informer_answer(struct kube_informer *i, yyjson_val *obj);
/* Removes an object from the cache after the answer to a deletion with which the object has ceased to exist:
 * `answer` is the Status with the UID, or the object. If an event from before the deletion arrives later, the
 * object is in the cache again until the watch reports the deletion. */
void kube_informer_answer_deleted(struct kube_informer *i, const char *ns, const char *name,
                                  yyjson_val *answer);
/* Call it when the cluster's history has changed: an object that the caller read is older than the version
 * that the cache had when the caller sent the request. The informer lists at once. Not allowed inside the
 * informer's own callbacks. */
void kube_informer_relist(struct kube_informer *i);
/* Reports changes from answers now instead of in a later turn. Not allowed inside `changed`; NULL is
 * allowed. */
void kube_informer_notify(struct kube_informer *i);
