/* SPDX-License-Identifier: Apache-2.0 */
/* objects: renders the objects and patches that the controller writes, and appends them to `out` as JSON.
 * Pure; the caller sends them. The YAML files in this folder have their content, and scripts/templates.py
 * explains the templates. Functions below that are not in objects.c are generated from them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "base/str.h"
#include "model/domain.h"
#include "model/fabric.h"
#include "rules/verdict.h"

/* The settings of the DaemonSet of the daemons. */
struct objects_settings {
        const char *ns;           /* the driver's namespace */
        const char *resource_api; /* "v1", "v1beta2" or "v1beta1" */
        const char *image, *log_verbosity;
        const char *gates; /* as gates_render() writes it */
        const char *const *pull_secrets;
        size_t n_pull_secrets;
        const char *priority_class;  /* "" for none */
        const char *imex_config;     /* settings of nvidia-imex, as JSON; "" for none */
        struct str requests, limits; /* JSON objects of the daemon container's resources; empty for none */
        const char *pull_policy;     /* NULL: IfNotPresent */
        bool json_log;
        const struct jd_pair *labels, *annotations; /* in addition to the driver's own: labels of the
                                                       DaemonSet and its Pods, annotations of the Pods */
        size_t n_labels, n_annotations;
};

/* The DaemonSet of the daemons, for server-side apply; and the value of its annotation
 * CD_ANNOTATION_TEMPLATE. */
void objects_daemonset(const struct objects_settings *s, struct buf *out);
void objects_daemonset_hash(const struct objects_settings *s, char ret[static 17]);
/* The claim template of their Pods, for creation. */
void objects_daemon_rct(const char *resource_api, const char *ns, struct buf *out);
/* Is it the claim template that objects_daemon_rct() renders? Compares its annotation CD_ANNOTATION_TEMPLATE.
 * If a webhook has removed the annotation, compares its requests, so that the controller does not replace it
 * in a loop. */
bool objects_daemon_rct_matches(const struct rct *r);

/* The content of a workload's claim template. */
struct objects_channel {
        const char *mode; /* allocationMode */
        const char *rack; /* only devices of this rack; NULL: of any */
        bool own;         /* the assigned channel of the ComputeDomain */
};
/* A workload's claim template, for creation. */
void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const struct objects_channel *channel, struct buf *out);
/* Does the claim template request the same as objects_rct() renders? Labels and finalizer are not compared,
 * because they can be repaired. With rack NULL, its selectors are not compared, either: they belong to its
 * owner. */
bool objects_rct_matches(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* The controller wrote this claim template from objects_rct() with the same arguments, but it does not match:
 * an admission webhook changed it, and would change the next one, too. */
bool objects_rct_is_changed(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* Patch that restores labels and finalizer of a workload's claim template. */
void objects_rct_repair(const struct rct *r, const char *uid, struct buf *out);

/* A new fabric object, or the merge patch that makes the old one equal to `f` (with resourceVersion).
 * `domains` are written with the epoch, and stay as they are while the epoch is 0. */
void objects_fabric(const struct compute_domain_fabric *f, const struct compute_domain_fabric *old,
                    struct buf *out);

/* The ComputeDomain of a rack, for creation; and the merge patch of its annotations CD_ANNOTATION_RACK_UID,
 * _NODES, and _EMPTY, which empty_since 0 removes. */
void objects_rack_domain(const char *rack, const char *ns, const char *name, const char *template,
                         struct buf *out);
void objects_rack_note(const struct kube_meta *m, const char *nodes, int64_t empty_since, struct buf *out);

/* Merge patch of the status subresource. */
void objects_status(const struct compute_domain *cd, const struct verdict *v, struct buf *out);

/* Merge patch that adopts a ComputeDomain: adds the driver's finalizer to the others, and records the mode in
 * which it is formed. */
void objects_adopt(const struct compute_domain *cd, const char *mode, struct buf *out);

/* Merge patch that removes the driver's finalizer and keeps the others. */
void objects_release(const struct kube_meta *m, const char *const *finalizers, size_t n, struct buf *out);
/* The same for a ComputeDomain without spec. The present schema would refuse any write to it, so the patch
 * adds a valid spec. */
void objects_release_specless(const struct compute_domain *cd, struct buf *out);

/* Merge patch of a Node with the members whose `set_` is true; NULL removes. `versioned`: only if the Node
 * still has the version of `m`, because the label may belong to another ComputeDomain by now. */
struct objects_node_patch {
        bool set_domain, set_daemon, set_clique, set_gpu_clique, versioned;
        const char *domain_uid, *daemon, *clique, *gpu_clique, *gpu_clique_ours;
};
void objects_node(const struct kube_meta *m, const struct objects_node_patch *p, struct buf *out);

/* Body of a DELETE for exactly this object, and not for a later one with the same name. With `version`, only
 * if the object still has this version. */
void objects_delete(const struct kube_meta *m, const char *version, struct buf *out);
