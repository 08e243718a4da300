/* SPDX-License-Identifier: Apache-2.0 */
/* objects: renders the objects and patches that the controller writes, and appends them to `out` as JSON.
 * Pure; the caller sends them. The YAML files in this folder are templates for the objects, and
 * scripts/templates.py explains their form. It generates the functions below that are not in objects.c from
 * these templates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "base/flags.h"
#include "base/str.h"
#include "model/auto_domain.h"
#include "model/domain.h"
#include "model/fabric.h"
#include "rules/shared_claim.h"
#include "rules/verdict.h"

/* The settings of the DaemonSet of the daemons. */
struct objects_settings {
        const char *ns;           /* the driver's namespace */
        const char *resource_api; /* "v1", "v1beta2" or "v1beta1" */
        const char *image, *log_verbosity;
        const char *gates; /* as gates_render() writes it */
        const char *const *pull_secrets;
        size_t n_pull_secrets;
/* NULL counts as the default. */
#define DAEMON_POD_SETTING(type, member, ...) FLAG_C_##type member;
#define DAEMON_OPTION DAEMON_POD_SETTING
#include "api/daemon_settings.def"
        struct str requests, limits; /* JSON objects of the daemon container's resources; empty for none */
        bool json_log;
        const struct jd_pair *labels, *annotations; /* additional labels of the DaemonSet and its Pods, and
                                                       additional annotations of the Pods */
        size_t n_labels, n_annotations;
};

/* Renders the DaemonSet of the daemons, for server-side apply. objects_daemonset_hash() computes the value of
 * its annotation CD_ANNOTATION_TEMPLATE. */
void objects_daemonset(const struct objects_settings *s, struct buf *out);
void objects_daemonset_hash(const struct objects_settings *s, char ret[static 17]);
/* Renders the claim template of the daemons' Pods, for creation. */
void objects_daemon_rct(const char *resource_api, const char *ns, struct buf *out);
/* Returns whether the claim template is the one that objects_daemon_rct() renders. Compares its annotation
 * CD_ANNOTATION_TEMPLATE. If a webhook has removed the annotation, compares its requests, so that the
 * controller does not replace the claim template in a loop. */
bool objects_daemon_rct_matches(const struct rct *r);

/* The content of a workload's claim template. */
struct objects_channel {
        const char *mode; /* allocationMode */
        const char *rack; /* only devices of this rack; NULL: devices of any rack */
        bool own;         /* request the assigned channel of the ComputeDomain */
        bool shared;      /* request the shared device, for pods on several nodes */
};
/* Renders a workload's claim template, for creation. */
void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const struct objects_channel *channel, struct buf *out);
/* Returns whether the claim template contains the requests that objects_rct() renders. Does not compare
 * labels and the finalizer, because they can be repaired. With `rack` NULL, does not compare selectors
 * either, because they belong to the owner of the claim template. */
bool objects_rct_matches(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* Returns whether the controller wrote this claim template from objects_rct() with the same arguments,
 * although it does not match. In this case, an admission webhook changed it, and would change the next one,
 * too. */
bool objects_rct_is_changed(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* Renders the patch that restores the labels and the finalizer of a workload's claim template. */
void objects_rct_repair(const struct rct *r, const char *uid, struct buf *out);

/* Renders the claim of a ComputeDomain that pods on several nodes share, and the ResourceSlice of its device,
 * for creation. Both need resource.k8s.io/v1. */
void objects_shared_claim(const char *name, const struct kube_meta *domain, struct buf *out);
void objects_shared_slice(struct buf *out);
/* Renders the merge patch of the status that allocates a claim for that device, or that reserves it; `now` is
 * in seconds since 1970. The claim must have the spec that claim_asks_for_shared() accepts. */
void objects_shared_allocation(const struct kube_meta *m, const char *domain_uid, int64_t now,
                               const struct shared_claim_decision *d, struct buf *out);
void objects_shared_reservation(const struct kube_meta *m, const struct shared_claim_decision *d,
                                struct buf *out);

/* Renders a new fabric object, or the merge patch (with resourceVersion) that makes the object `old` equal to
 * `f`. The patch contains `domains` and the epoch only if the epoch is not 0. */
void objects_fabric(const struct compute_domain_fabric *f, const struct compute_domain_fabric *old,
                    struct buf *out);

/* Renders the ComputeDomain of a rack, for creation. objects_rack_note() renders the merge patch of its
 * annotations CD_ANNOTATION_RACK_UID, _NODES and _EMPTY; empty_since 0 removes _EMPTY. */
void objects_rack_domain(const char *rack, const char *ns, const char *name, const char *template,
                         struct buf *out);
void objects_rack_note(const struct kube_meta *m, const char *nodes, int64_t empty_since, struct buf *out);

/* Renders the ComputeDomain of a workload whose pods have the label CD_LABEL_AUTO, for creation. */
void objects_auto_domain(const char *ns, const char *name, const struct auto_owner *owner, struct buf *out);

/* Renders the merge patch of the status subresource. */
void objects_status(const struct compute_domain *cd, const struct verdict *v, struct buf *out);

/* Renders the merge patch that adopts a ComputeDomain: it adds the driver's finalizer to the others, and
 * records the mode in which it is formed. */
void objects_adopt(const struct compute_domain *cd, const char *mode, struct buf *out);

/* Renders the merge patch that removes the driver's finalizer and keeps the others. */
void objects_release(const struct kube_meta *m, const char *const *finalizers, size_t n, struct buf *out);
/* Renders the same patch for a ComputeDomain without a spec. The present schema would refuse any write to
 * such an object, so the patch also adds a valid spec. */
void objects_release_specless(const struct compute_domain *cd, struct buf *out);

/* The merge patch of a Node. It contains the members whose `set_` is true; NULL removes the label or
 * annotation. With `versioned`, the patch applies only if the Node still has the version of `m`, because the
 * label may belong to another ComputeDomain by now. */
struct objects_node_patch {
        bool set_domain, set_daemon, set_shared, set_clique, set_gpu_clique, versioned;
        const char *domain_uid, *daemon, *shared, *clique, *gpu_clique, *gpu_clique_ours;
};
void objects_node(const struct kube_meta *m, const struct objects_node_patch *p, struct buf *out);

/* Renders the body of a DELETE request for exactly this object, and not for a later one with the same name.
 * With `version` (NULL: any), the request applies only if the object still has this version. */
void objects_delete(const struct kube_meta *m, const char *version, struct buf *out);
/* Renders the body of the request that evicts exactly this pod. */
void objects_eviction(const char *ns, const char *name, const char *uid, struct buf *out);
