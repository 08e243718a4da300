/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_object.h"

#include <stddef.h>

#include "base/mem.h"
#include "base/stderr.h"

/* ---- kinds ---- */

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

const struct jd_field kube_f_meta[] = {
        JD_STR(struct kube_meta, "namespace", ns),
        JD_STR(struct kube_meta, "name", name, .required = true),
        JD_STR(struct kube_meta, "uid", uid),
        JD_STR(struct kube_meta, "resourceVersion", rv, .required = true, .not_compared = true),
        JD_INT(struct kube_meta, "generation", generation),
        JD_TIME(struct kube_meta, "creationTimestamp", created),
        JD_TIME(struct kube_meta, "deletionTimestamp", deleted),
        JD_END,
};

/* The count is the only member of a cached object that changes. So the casts are needed: for all others the
 * object is const. */
static struct kube_object *counted(const struct kube_object *o) {
        union {
                const struct kube_object *in;
                struct kube_object *out;
        } u = { .in = o };
        return u.out;
}

const struct kube_object *kube_object_ref(const struct kube_object *o) {
        if (o)
                counted(o)->refs++;
        return o;
}

void kube_object_unref(const struct kube_object *o) {
        if (!o)
                return;
        BUG_ON(o->refs == 0);
        if (--counted(o)->refs == 0)
                arena_free(o->arena);
}

uint64_t kube_object_version(const char *rv) {
        int64_t v;
        return rv && str_to_i64(str_from(rv), &v) && v > 0 ? (uint64_t)v : 0;
}
