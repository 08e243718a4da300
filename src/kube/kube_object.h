/* SPDX-License-Identifier: Apache-2.0 */
/* kube_object: describes the kinds of objects on the server, and defines the struct with which every cached
 * object begins: metadata, arena and references. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* A kind of object on the server. It must be static, because all modules borrow it. */
struct kube_resource {
        const char *group;   /* "" for core */
        const char *version; /* NULL: the client determines which of `versions` to use (kube_client.h) */
        const char *plural, *kind;
        bool namespaced;
        const char *const *versions; /* the supported versions, the best first, then NULL */
};

/* The built-in kinds of Kubernetes. */
extern const struct kube_resource kube_namespaces, kube_nodes, kube_pods, kube_events, kube_leases,
        kube_daemonsets, kube_crds, kube_resource_claims, kube_resource_claim_templates, kube_resource_slices;

/* A field selector. Pods that have ended can exist for good, for example after an eviction. */
#define KUBE_PODS_NOT_ENDED "status.phase!=Succeeded,status.phase!=Failed"

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
