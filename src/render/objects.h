/* SPDX-License-Identifier: Apache-2.0 */
/* objects: the texts of what the controller writes, appended to `out` as JSON. Pure rendering; the caller
 * sends them. What they look like is in the YAML files of this folder, and scripts/templates.py says how to
 * read those; the functions below that objects.c does not have are theirs, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "base/str.h"
#include "model/domain.h"
#include "model/fabric.h"
#include "rules/verdict.h"

/* What the DaemonSet of the daemons is made with. */
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
        const struct jd_pair *labels, *annotations; /* beside our own: labels of the DaemonSet and its pods,
                                                       annotations of the pods */
        size_t n_labels, n_annotations;
};

/* The DaemonSet of the daemons, for server-side apply, and the value of CD_ANNOTATION_TEMPLATE in it. */
void objects_daemonset(const struct objects_settings *s, struct buf *out);
void objects_daemonset_hash(const struct objects_settings *s, char ret[static 17]);
/* The claim template of their Pods, to be created. */
void objects_daemon_rct(const char *resource_api, const char *ns, struct buf *out);
/* Is it the one that objects_daemon_rct() would write? By its annotation CD_ANNOTATION_TEMPLATE; without one
 * by what it asks for, so that a webhook that drops annotations does not have it replaced for ever. */
bool objects_daemon_rct_matches(const struct rct *r);

/* What a workload's claim template asks for. */
struct objects_channel {
        const char *mode; /* allocationMode */
        const char *rack; /* its devices are to be of that rack; NULL: of any */
        bool own;         /* a channel of the ComputeDomain's own */
};
/* A workload's claim template, to be created. */
void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const struct objects_channel *channel, struct buf *out);
/* Does it ask for what objects_rct() would write? Labels and finalizer are not looked at: they can be
 * repaired. With rack NULL its selectors are its owner's business. */
bool objects_rct_matches(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* It is the one that objects_rct() wrote for the same, and does not match: an admission webhook of the
 * cluster changed it, and would change another one, too. */
bool objects_rct_is_changed(const struct rct *r, const char *uid, const struct objects_channel *channel);
/* Patch that brings labels and finalizer of a workload's claim template back. */
void objects_rct_repair(const struct rct *r, const char *uid, struct buf *out);

/* A new ComputeDomainFabric, or the merge patch that makes the old one equal to `f` (with resourceVersion).
 * Its `domains` are written with its epoch, and stay as they are while that is 0. */
void objects_fabric(const struct compute_domain_fabric *f, const struct compute_domain_fabric *old,
                    struct buf *out);

/* The ComputeDomain of a rack, to be created; and the merge patch of its annotations: CD_ANNOTATION_RACK_UID,
 * _NODES, and _EMPTY, which empty_since 0 removes. */
void objects_rack_domain(const char *rack, const char *ns, const char *name, const char *template,
                         struct buf *out);
void objects_rack_note(const struct kube_meta *m, const char *nodes, int64_t empty_since, struct buf *out);

/* Merge patch of the status subresource. */
void objects_status(const struct compute_domain *cd, const struct verdict *v, struct buf *out);

/* Merge patch that takes a ComputeDomain in: our finalizer beside the others, and the mode that it is formed
 * in. */
void objects_adopt(const struct compute_domain *cd, const char *mode, struct buf *out);

/* Merge patch that removes our finalizer and keeps the others. */
void objects_release(const struct kube_meta *m, const char *const *finalizers, size_t n, struct buf *out);
/* The same for a ComputeDomain without spec, which today's schema would refuse in any write: gives it a spec
 * that passes. */
void objects_release_specless(const struct compute_domain *cd, struct buf *out);

/* Merge patch of a Node: the members whose `set_` is true; NULL removes. `versioned`: only of the version
 * that `m` is of, because a label may be another domain's by now. */
struct objects_node_patch {
        bool set_domain, set_daemon, set_clique, set_gpu_clique, versioned;
        const char *domain_uid, *daemon, *clique, *gpu_clique, *gpu_clique_ours;
};
void objects_node(const struct kube_meta *m, const struct objects_node_patch *p, struct buf *out);

/* Body of a DELETE: exactly this object, not one that has its name since. With `version`, that of its meta,
 * so that what has happened to it since is no surprise. */
void objects_delete(const struct kube_meta *m, const char *version, struct buf *out);
