/* SPDX-License-Identifier: Apache-2.0 */
/* pod_group: decodes the parts of a PodGroup (scheduling.k8s.io) that the controller needs. With the feature
 * gate DRAWorkloadResourceClaims, all Pods of the group share the claims in its spec.resourceClaims, and
 * status.reservedFor of such a claim lists the group instead of its Pods. */
#pragma once

#include "base/json.h"
#include "kube/kube_object.h"

/* The versions of the API: Kubernetes 1.36 serves v1alpha2, 1.37 serves v1beta1. The last entry is NULL. */
extern const struct kube_resource *const pod_group_resources[];

struct pod_group_claim {
        const char *name; /* of the ResourceClaim; NULL: the group names a claim template */
};

struct pod_group {
        struct kube_object o;
        struct pod_group_claim *claims;
        size_t n_claims;
};
extern const struct jd_field pod_group_fields[];

/* Returns whether spec.resourceClaims names this claim. `name` NULL: whether it names any claim. */
bool pod_group_names(const struct pod_group *g, const char *name);
