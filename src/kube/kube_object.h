/* SPDX-License-Identifier: Apache-2.0 */
/* kube_object: defines the struct with which every cached object begins: metadata, arena and references. */
#pragma once

#include <stdint.h>

#include "base/json.h"

struct kube_meta {
        const char *ns, *name, *uid, *rv; /* ns is NULL for cluster-scoped objects */
        int64_t generation;
        int64_t created, deleted; /* seconds since 1970; deleted is 0 while there is no deletionTimestamp */
};
extern const struct jd_field kube_f_meta[];

/* Returns a resourceVersion as a number. Within one history of a cluster, a higher number is newer
 * (documented since Kubernetes 1.35). Returns 0 if `rv` is NULL or not a number. */
uint64_t kube_object_version(const char *rv);

/* The first member of the struct of each kind of object. A cached object never changes, has its own arena,
 * and is reference-counted. */
struct kube_object {
        struct kube_meta meta;
        struct arena *arena;
        unsigned refs;
};

/* Adds a reference, to keep an object after the callback or the next event. An update replaces the object in
 * the cache, and never changes it. */
const struct kube_object *kube_object_ref(const struct kube_object *o);
void kube_object_unref(const struct kube_object *o);
