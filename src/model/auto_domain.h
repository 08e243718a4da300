/* SPDX-License-Identifier: Apache-2.0 */
/* auto_domain: names the ComputeDomain of a pod with the label CD_LABEL_AUTO, and its owner. Pure.
 *
 * The controller creates this ComputeDomain. The chart's policy for such pods (policy-auto-domains.yaml) adds
 * the ComputeDomain's claim to them, before they have a UID, and the label to pods with GROVE_ANNOTATION. So
 * both compute the name from the same metadata, and a change here needs the same change there. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"

/* The name of the entry in spec.resourceClaims that the policy adds. */
#define AUTO_DOMAIN_ENTRY "auto-domain"
/* The names of these ComputeDomains begin with it. */
#define AUTO_DOMAIN_PREFIX "auto-"

struct auto_owner {
        const char *api_version, *kind, *name, *uid;
        bool controller;
};

/* A pod as decoded. */
struct auto_pod_meta {
        struct kube_object o;
        const char *jobset, *jobset_uid, *lws; /* labels of JobSet and LeaderWorkerSet, NULL when absent */
        const char *group;                     /* GROVE_ANNOTATION; NULL when absent */
        struct auto_owner *owners;             /* metadata.ownerReferences */
        size_t n_owners;
};
extern const struct jd_field auto_pod_meta_fields[];

/* What the controller keeps of it. */
struct auto_pod {
        struct kube_object o;
        const char *domain;      /* name of the ComputeDomain, which its claim has, too; NULL: the pod gets
                                    none, see auto_pod_trim() */
        const char *key;         /* "<namespace>/<domain>"; NULL without a domain */
        struct auto_owner owner; /* the object with which the ComputeDomain is deleted */
        bool leads;              /* the pod leads a group of a LeaderWorkerSet */
};
extern const struct jd_field auto_pod_fields[];

/* Makes a struct auto_pod from a struct auto_pod_meta. The ComputeDomain belongs to
 *   - the JobSet that the labels name: "auto-<name>-<UID>";
 *   - the group of a LeaderWorkerSet, which is no object: "auto-<name>-<ordinal>-group". The owner is the
 *     StatefulSet of the leaders, or the StatefulSet of the group's workers while no leader is known;
 *   - the controlling owner of the pod: "auto-<name>-<UID>";
 *   - the pod itself, if it has no controlling owner: "auto-<name>-pod".
 * Names with a UID contain the first 48 bytes of the name, with "-" for ".", and the first 8 of the UID. If
 * the pod has GROVE_ANNOTATION, "-<group>" follows, so that each group of a workload has a ComputeDomain. A
 * mirror pod gets no ComputeDomain, and neither does a pod whose ComputeDomain would have no valid name. */
const void *auto_pod_trim(void *meta, struct arena *a);
