/* SPDX-License-Identifier: Apache-2.0 */
/* object_cache: the objects of an informer, by name and by index, and the rules for which version of an
 * object is kept.
 *
 * Versions come from three sources that are not in step: lists, watch events and answers to our own writes.
 * Within one history of a cluster a higher resourceVersion is newer. If one is not a number, the last to
 * arrive is kept. A restore of etcd replaces the history, and only lists show that: see
 * object_cache_list_version(). The cache reports each change to `note`, in order, and never calls it while it
 * is inconsistent. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/kube_informer.h"

struct object_cache;

/* old NULL: added; now NULL: deleted. The receiver releases the references. It must not change the cache. */
typedef void(cache_note_fn)(void *u, const struct kube_object *old, const struct kube_object *now);

enum cache_source { CACHE_LIST, CACHE_EVENT, CACHE_ANSWER };

/* Uses the options that define which objects are kept, which parts of them, and under which keys. */
struct object_cache *object_cache_new(const struct kube_informer_options *o, cache_note_fn *note, void *u);
void object_cache_free(struct object_cache *c);

/* Takes a version of an object. A version older than the cached one is ignored. An object that `keep` rejects
 * counts as deleted. -1: it cannot be decoded; the version in the cache stays, and *ret_reported shows
 * whether this version has been reported before. */
int object_cache_take(struct object_cache *c, yyjson_val *object, enum cache_source source,
                      bool *ret_reported, struct err *e);
void object_cache_delete(struct object_cache *c, yyjson_val *object);
/* Removes the object of that name and UID, after the answer to our own deletion, which has no version. */
void object_cache_delete_uid(struct object_cache *c, const char *ns, const char *name, const char *uid);

/* At the end of a list, the cache has exactly the objects taken since object_cache_begin_list(), which the
 * server has at version `rv`. All others are removed. */
void object_cache_begin_list(struct object_cache *c);
/* Call it for each page, before taking its objects. A list is complete up to its version, and the API server
 * answers it from a state that is at least as new as the beginning of the request. So two things cannot
 * happen within one history: a list older than what was known when it began, and an object in the list that
 * is older than the cached one although the list is not. Both show that etcd was restored from a backup. Then
 * the list replaces higher versions in the cache. */
void object_cache_list_version(struct object_cache *c, const char *rv);
void object_cache_end_list(struct object_cache *c, const char *rv);

/* The watch has sent everything up to this version. An object from an earlier answer that the watch never
 * sent does not belong into this cache (its selector does not match, or it was deleted again) and is
 * removed. */
void object_cache_reached(struct object_cache *c, const char *rv);

size_t object_cache_count(const struct object_cache *c);
const struct kube_object *object_cache_get(const struct object_cache *c, const char *ns, const char *name);
void object_cache_each(const struct object_cache *c, kube_visit_fn *fn, void *u);
void object_cache_each_at(const struct object_cache *c, unsigned index, const char *key, kube_visit_fn *fn,
                          void *u);
const struct kube_object *object_cache_first_at(const struct object_cache *c, unsigned index,
                                                const char *key);
