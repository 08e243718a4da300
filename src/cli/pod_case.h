/* SPDX-License-Identifier: Apache-2.0 */
/* pod_case: what the objects of its namespace show about a pod with a channel: claim, claim template,
 * ComputeDomain, and the other pods of its workload. */
#pragma once

#include "cli/diagnosis.h"

struct pod_case {
        struct diagnosis *d;
        struct view *v;
        const struct pod_object *pod;
        const struct pod_claim *asks;     /* the claim in the spec; NULL: the pod requests no channel */
        const char *template_name;        /* the claim template that it names; NULL: it names a claim */
        const struct rct *template;       /* NULL: not found */
        const struct claim_object *claim; /* NULL: not found */
        const char *domain_uid;           /* of its ComputeDomain; NULL: not known */
        const struct compute_domain *cd;
        const char *cd_name; /* its name, from whatever object names it; NULL: not known */
        /* The ComputeDomain for which the controller has to create the claim that the pod names; NULL: none
         */
        const struct compute_domain *named;
        bool shared;        /* the claim is for the device that pods on several nodes share */
        const char *near;   /* the pod's node, or that of a placed sibling; NULL: none */
        const char *clique; /* the partition of `near`; "": none, or the siblings are in several; NULL:
                             * unknown, or not asked yet (pod_case_clique()) */
        /* The siblings with this pod, and those with a node. A sibling is a pod that the required affinity to
         * a partition selects. Without such an affinity, it is a pod with the same ComputeDomain. */
        size_t n_siblings, n_placed;
        const struct event_object *prepare; /* the newest FailedPrepareDynamicResources; NULL: none */
        const char *waits;                  /* the message of the scheduler; NULL: none */
};

/* Fills the case, and adds the lines about template, claim and ComputeDomain. */
void pod_case_make(struct diagnosis *d, const struct pod_object *p, struct pod_case *ret);
/* Finds the partition, after the lists that show it have been read. */
const char *pod_case_clique(struct pod_case *c);
/* The required affinity of a Pod to the partition of other Pods; NULL: none. */
const struct pod_affinity_term *pod_case_affinity(const struct pod_object *p);
/* Whether a Pod names a claim of the same ComputeDomain. */
bool pod_case_shares_domain(const struct pod_case *c, const struct pod_object *p);
/* How long ago, for people. */
const char *pod_case_since(const struct diagnosis *d, int64_t time);

/* The parts of the diagnosis, in their own files. Each adds lines and causes. */
void pending_diagnose(struct pod_case *c); /* the pod has no node */
void prepare_diagnose(struct pod_case *c); /* the pod has a node, and its containers do not run */
void running_diagnose(struct pod_case *c); /* the pod runs: is NVLink used? */
/* Adds the cause why a container waits: an image, a Secret, its own crash. With a claim, only containers that
 * name it count, and one that has failed is a cause, too. Returns whether there is one. */
bool container_diagnose(struct pod_case *c, const char *claim);
/* Adds the cause why the claim that the pod names does not exist. Returns whether there is one. */
bool named_claim_diagnose(struct pod_case *c);
/* Adds the cause why a pod with CD_LABEL_AUTO or GROVE_ANNOTATION names no claim. Returns whether it is such
 * a pod. */
bool named_claim_diagnose_label(struct pod_case *c);
/* Adds the cause that the claim that the pod names has the name of a shared claim, but another owner. Returns
 * whether it has. */
bool named_claim_diagnose_taken(struct pod_case *c);
/* Adds the cause that the ComputeDomain of a pod with the label is that of an earlier workload, and is being
 * deleted. Returns whether it is. */
bool named_claim_diagnose_ending(struct pod_case *c);
/* Adds the cause from the condition ChannelAvailable of the ComputeDomain. Returns whether there is one.
 * `has_affinity`: the pod must run in the partition of its siblings. */
bool shortage_diagnose(struct pod_case *c, bool has_affinity);
/* Adds causes from the conditions of a ComputeDomain. `node` limits them to those that name the node, if they
 * name nodes; NULL: all. Returns whether there are any. */
bool domain_diagnose_conditions(struct diagnosis *d, const struct compute_domain *cd, const char *node);
/* Whether the condition reports missing peers, but only since a time in which the daemons have not yet looked
 * for them again. */
bool domain_is_connecting(const struct view *v, const struct cd_condition *c);
/* The condition of this type; NULL: there is none. */
const struct cd_condition *domain_condition(const struct compute_domain *cd, const char *type);
/* Whether the condition reports a problem. A ComputeDomain that no pod uses yet has none, although nodes are
 * missing or its start gate is closed. The DaemonSets must have been read. */
bool domain_condition_fails(const struct view *v, const struct compute_domain *cd,
                            const struct cd_condition *c);
/* Adds the cause from the condition Ready if it explains why the claim template is missing. */
bool domain_diagnose_template(struct diagnosis *d, const struct compute_domain *cd);
/* Adds the cause from the conditions SharedClaimAvailable and Ready if it explains why the shared claim is
 * missing. */
bool domain_diagnose_shared_claim(struct diagnosis *d, const struct compute_domain *cd);
/* Adds the cause why the template or the claim of a ComputeDomain that is being deleted does not exist.
 * Returns whether it is being deleted. */
bool domain_diagnose_deletion(struct diagnosis *d, const struct compute_domain *cd);
/* Whether the ComputeDomain is not Ready, and has no condition that could show why. */
bool domain_is_unexplained(const struct compute_domain *cd);
/* Adds the cause from one condition, if domain_condition_fails(). Returns whether it does. */
bool domain_diagnose_condition(struct diagnosis *d, const struct compute_domain *cd,
                               const struct cd_condition *c);
/* Adds the cause that no controller is ready, or that the Go driver has one instead. Returns whether that is
 * known. */
bool controller_diagnose(struct diagnosis *d);
/* Adds the cause why no plugin runs on nodes; `node` NULL: on any. Returns whether there is one. */
bool plugin_diagnose(struct diagnosis *d, const char *node);
/* Adds the cause why the node has no running daemon. Returns whether there is one. */
bool daemon_diagnose(struct diagnosis *d, const char *node);

/* The diagnoses of whole objects. They return false if the object does not exist, or may not be read. */
bool pod_diagnose(struct diagnosis *d, const char *ns, const char *name);
bool workload_diagnose(struct diagnosis *d, const char *ns, const char *name);
bool domain_diagnose(struct diagnosis *d, const char *ns, const char *name);
bool node_diagnose(struct diagnosis *d, const char *name);

/* The name in "computedomain/NAME", or in one of its short forms; NULL: `arg` has another form. */
const char *why_domain_name(const char *arg);
/* Adds the causes of a node of the inventory. The lists of the inventory must be complete. */
void node_diagnose_causes(struct diagnosis *d, const struct inventory_node *x);
