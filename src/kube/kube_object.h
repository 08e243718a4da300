/* SPDX-License-Identifier: Apache-2.0 */
/* kube_object: the common beginning of cached objects. */
#pragma once

#include <stdint.h>

#include "base/json.h"

struct kube_meta {
        const char *ns, *name, *uid, *rv; /* ns is NULL for cluster-scoped objects */
        int64_t generation;
        int64_t created, deleted; /* seconds since 1970; deleted is 0 while there is no deletionTimestamp */
};
extern const struct jd_field kube_f_meta[];

/* A resourceVersion as a number: within one history of a cluster a higher one is newer (documented since
 * Kubernetes 1.35). 0: it is not a number, or NULL. */
uint64_t kube_object_version(const char *rv);

/* The first member of the user's struct. Immutable once cached; lives in its own arena; reference-counted. */
struct kube_object {
        struct kube_meta meta;
        struct arena *arena;
        unsigned refs;
};

/* Keeps an object after the callback or the next event. An update replaces the object in the cache, and never
 * changes it. */
const struct kube_object *kube_object_ref(const struct kube_object *o);
void kube_object_unref(const struct kube_object *o);
