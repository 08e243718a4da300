/* SPDX-License-Identifier: Apache-2.0 */
/* object_cache: stores the objects of an informer, by name and by index, and decides which version of an
 * object to keep.
 *
 * Versions come from three sources that are not synchronised: lists, watch events and answers to our own
 * writes. Within one history of a cluster a higher resourceVersion is newer. If a version is not a number,
 * the cache keeps the version that arrived last. A restore of etcd replaces the history, and only lists show
 * that: see object_cache_list_version(). The cache reports each change to `note`, in order, and calls `note`
 * only while the cache is consistent. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/kube_informer.h"

struct object_cache;

/* Called for each change. `old` NULL: the object was added; `now` NULL: it was deleted. The receiver must
 * release the references to both, and must not change the cache. */
typedef void(cache_note_fn)(void *u, const struct kube_object *old, const struct kube_object *now);

enum cache_source { CACHE_LIST, CACHE_EVENT, CACHE_ANSWER };

/* Creates a cache. Of the informer's options, it uses those that define which objects are kept, which parts
 * of an object, and under which keys. */
struct object_cache *object_cache_new(const struct kube_informer_options *o, cache_note_fn *note, void *u);
void object_cache_free(struct object_cache *c);

/* Stores a version of an object. A version older than the cached one is ignored. An object that `keep`
 * rejects counts as deleted. Returns -1 if the object cannot be decoded: then the version in the cache stays,
 * and *ret_reported shows whether the error of this version has been reported before. */
int object_cache_take(struct object_cache *c, yyjson_val *object, enum cache_source source,
                      bool *ret_reported, struct err *e);
void object_cache_delete(struct object_cache *c, yyjson_val *object);
/* Removes the object with this name and UID, after the answer to our own deletion, which contains no version.
 */
void object_cache_delete_uid(struct object_cache *c, const char *ns, const char *name, const char *uid);

/* Begin and end a list. object_cache_end_list() removes all objects that were not stored since
 * object_cache_begin_list(), so the cache then contains exactly the objects that the server had at version
 * `rv`. */
void object_cache_begin_list(struct object_cache *c);
/* Detects a restore of etcd by the version of a list. Call it for each page, before storing the page's
 * objects. A list is complete up to its version, and the API server answers from a state that is at least as
 * new as the beginning of the request. So two things cannot happen within one history: that a list is older
 * than the version that was known when the list began, and that an object in the list is older than the
 * cached object although the list is not. Both prove that etcd was restored from a backup. Then the list
 * replaces higher versions in the cache. */
void object_cache_list_version(struct object_cache *c, const char *rv);
void object_cache_end_list(struct object_cache *c, const char *rv);

/* Call it when the watch has sent everything up to version `rv`. Removes an object that came from an earlier
 * answer and that the watch never sent: the selector does not match the object, or the object was deleted. */
void object_cache_reached(struct object_cache *c, const char *rv);

size_t object_cache_count(const struct object_cache *c);
const struct kube_object *object_cache_get(const struct object_cache *c, const char *ns, const char *name);
void object_cache_each(const struct object_cache *c, kube_visit_fn *fn, void *u);
void object_cache_each_at(const struct object_cache *c, unsigned index, const char *key, kube_visit_fn *fn,
                          void *u);
void object_cache_each_with(const struct object_cache *c, const char *key, kube_visit_fn *fn, void *u);
const struct kube_object *object_cache_first_at(const struct object_cache *c, unsigned index,
                                                const char *key);
