/* SPDX-License-Identifier: Apache-2.0 */
/* kube_resource: describes the kinds of objects on the server. */
#pragma once

#include <stdbool.h>

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
