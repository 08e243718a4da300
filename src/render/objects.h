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
#include "rules/formation.h"
#include "rules/verdict.h"

/* What the DaemonSets of all domains have in common. */
struct objects_settings {
        const char *ns;           /* the driver's namespace */
        const char *resource_api; /* "v1", "v1beta2" or "v1beta1" */
        const char *image, *log_verbosity;
        const char *gates; /* as gates_render() writes it */
        int64_t max_nodes;
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

/* "computedomain-daemon-<uid>": the DaemonSet and the claim template of its pods. */
void objects_daemon_name(const char *uid, struct buf *out);

/* The DaemonSet of a domain, for server-side apply. `gates` and `max_nodes` may differ from the settings: all
 * daemons of a living domain need the same. */
void objects_daemonset(const struct objects_settings *s, const char *uid, const char *gates,
                       int64_t max_nodes, struct buf *out);
/* The value of annotation CD_ANNOTATION_TEMPLATE that objects_daemonset() writes. */
void objects_template_hash(const struct objects_settings *s, const char *uid, const char *gates,
                           int64_t max_nodes, char ret[static 17]);

/* The DaemonSet of the agents, for server-side apply, and the value of CD_ANNOTATION_TEMPLATE in it. */
void objects_agents(const struct objects_settings *s, struct buf *out);
void objects_agents_hash(const struct objects_settings *s, char ret[static 17]);
/* The claim template of their Pods, to be created. */
void objects_agents_rct(const char *resource_api, const char *ns, struct buf *out);

/* What a workload's claim template asks for; all zero for a daemon's. */
struct objects_channel {
        const char *mode; /* allocationMode */
        const char *rack; /* its devices are to be of that rack; NULL: of any */
        bool own;         /* a channel of the ComputeDomain's own */
};
/* A claim template, to be created; target CD_TARGET_DAEMON or CD_TARGET_WORKLOAD. */
void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const char *target, const struct objects_channel *channel, struct buf *out);
/* Does it ask for what objects_rct() would write? Labels and finalizer are not looked at: they can be
 * repaired. With rack NULL its selectors are its owner's business. */
bool objects_rct_matches(const struct rct *r, const char *uid, const char *target,
                         const struct objects_channel *channel);
/* It is the one that objects_rct() wrote for the same, and does not match: an admission webhook of the
 * cluster changed it, and would change another one, too. */
bool objects_rct_is_changed(const struct rct *r, const char *uid, const char *target,
                            const struct objects_channel *channel);
/* Patch that brings labels and finalizer of a claim template back. */
void objects_rct_repair(const struct rct *r, const char *uid, const char *target, struct buf *out);

/* A new clique, or the merge patch that makes the old one equal to `c` (with resourceVersion). */
void objects_clique(const struct formed_imex *c, const char *ns, const char *uid, struct buf *out);

/* Merge patch that gives a clique its labels back. */
void objects_clique_labels(const char *uid, const char *clique_id, struct buf *out);

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
        bool set_domain, set_agent, set_gpu_clique, versioned;
        const char *domain_uid, *agent, *gpu_clique, *gpu_clique_ours;
};
void objects_node(const struct kube_meta *m, const struct objects_node_patch *p, struct buf *out);

/* Merge patch of a ComputeDomain: its annotation CD_ANNOTATION_ADOPTED, NULL removes it. */
void objects_note_adopted(const struct compute_domain *cd, const char *adopted, struct buf *out);

/* Body of a DELETE: exactly this object, not one that has its name since. With `version`, that of its meta,
 * so that what has happened to it since is no surprise. `at_once`: without waiting for a kubelet, which is
 * for pods whose containers have ended. */
void objects_delete(const struct kube_meta *m, const char *version, bool at_once, struct buf *out);
