/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_resource.h"

#include <stddef.h>

static const char *const resource_apis[] = { "v1", "v1beta2", "v1beta1", NULL };
#define RESOURCE_API "resource.k8s.io", NULL

const struct kube_resource kube_namespaces = { "", "v1", "namespaces", "Namespace", false, NULL };
const struct kube_resource kube_nodes = { "", "v1", "nodes", "Node", false, NULL };
const struct kube_resource kube_pods = { "", "v1", "pods", "Pod", true, NULL };
const struct kube_resource kube_events = { "", "v1", "events", "Event", true, NULL };
const struct kube_resource kube_leases = { "coordination.k8s.io", "v1", "leases", "Lease", true, NULL };
const struct kube_resource kube_daemonsets = { "apps", "v1", "daemonsets", "DaemonSet", true, NULL };
const struct kube_resource kube_crds = { "apiextensions.k8s.io",     "v1",  "customresourcedefinitions",
                                         "CustomResourceDefinition", false, NULL };
const struct kube_resource kube_resource_claims = { RESOURCE_API, "resourceclaims", "ResourceClaim", true,
                                                    resource_apis };
const struct kube_resource kube_resource_claim_templates = { RESOURCE_API, "resourceclaimtemplates",
                                                             "ResourceClaimTemplate", true, resource_apis };
const struct kube_resource kube_resource_slices = { RESOURCE_API, "resourceslices", "ResourceSlice", false,
                                                    resource_apis };
