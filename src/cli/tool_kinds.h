/* SPDX-License-Identifier: Apache-2.0 */
/* tool_kinds: decodes the kinds that the tool reads and the driver does not, and the members of the driver's
 * kinds that only people need. */
#pragma once

#include <stdbool.h>

#include "api/claim.h"
#include "api/kinds.h"
#include "api/node_selector.h"
#include "base/json.h"
#include "kube/kube_object.h"

extern const struct kube_resource tool_kinds_deployments, tool_kinds_device_classes, tool_kinds_quotas,
        tool_kinds_policies;

struct object_owner {
        const char *kind, *name, *uid;
};

/* A container of a Pod or of a Pod template. */
struct container_claim {
        const char *name;
};
struct container {
        const char *name, *image;
        const char **command;
        size_t n_command;
        struct container_claim *claims; /* resources.claims */
        size_t n_claims;
        struct jd_pair *limits, *env; /* an env without a value has NULL */
        size_t n_limits, n_env;
        const char *restart_policy; /* "Always" of an init container: it is a sidecar */
};

/* The program that the container runs: the last part of the path of its command; "": that of its image. */
const char *container_program(const struct container *c);
/* The container that runs the program; NULL: none. */
const struct container *container_find(const struct container *list, size_t n, const char *program);

struct container_status {
        const char *name;
        int64_t restarts;
        struct pod_container state;           /* api/kinds.h */
        const struct pod_container_why *last; /* of the previous run */
};

struct pod_claim {
        const char *name;
        const char *claim;    /* the ResourceClaim that the spec or the status names; NULL: none yet */
        const char *template; /* the claim template that the spec names; NULL: none */
};

struct pod_affinity_term {
        const char *topology_key;
        struct str selector;    /* labelSelector. Empty: absent, which selects no pod; "{}" selects all */
        struct jd_pair *labels; /* of labelSelector. The API server adds those of matchLabelKeys */
        size_t n_labels;
        struct node_requirement *expressions;
        size_t n_expressions;
};

struct toleration {
        const char *key, *op, *value, *effect;
};

/* Any Pod. */
struct pod_object {
        struct kube_object o;
        struct object_owner *owners;
        size_t n_owners;
        struct jd_pair *labels;
        size_t n_labels;
        const char **finalizers;
        size_t n_finalizers;
        const char *node, *phase, *reason, *message;
        int64_t grace; /* metadata.deletionGracePeriodSeconds: o.meta.deleted is later than the request */
        struct condition *conditions;
        size_t n_conditions;
        struct container *containers, *init_containers;
        size_t n_containers, n_init_containers;
        struct container_status *init_statuses, *statuses;
        size_t n_init_statuses, n_statuses;
        struct pod_claim *claims, *claim_statuses;
        size_t n_claims, n_claim_statuses;
        struct pod_affinity_term *affinity; /* required */
        size_t n_affinity;
        struct node_selector selector;
        struct toleration *tolerations;
        size_t n_tolerations;
        const char *restart_policy;
        const struct daemon_pod *daemon; /* the same Pod, if it is a daemon of this driver; otherwise NULL */
        const struct plugin_pod *plugin; /* the same Pod, if it is a kubelet plugin of this driver */
        const char *grove_group;         /* annotation GROVE_ANNOTATION; NULL: none */
        const char *withheld;            /* annotation IMEX_ANNOTATION_WITHHELD of a plugin; NULL: none */
};
extern const struct jd_field pod_object_fields[];
/* Whether the Pod is a kubelet plugin of this driver with this program: not one of the Go driver, and not a
 * workload in which the program only lists the channels. */
bool pod_object_is_plugin(const struct pod_object *p, const char *program);
/* The name of the ResourceClaim of a claim in the spec; NULL: it does not exist yet. */
const char *pod_object_claim(const struct pod_object *p, const struct pod_claim *c);
const char *pod_object_label(const struct pod_object *p, const char *key);
bool pod_object_ready(const struct pod_object *p);
bool pod_object_has_ended(const struct pod_object *p);
/* The state of a container, also of an init container; NULL: the kubelet has not reported it. */
const struct container_status *pod_object_status(const struct pod_object *p, const char *container);
/* Whether the container or the sidecar of this name names the claim in resources.claims. */
bool pod_object_names_claim(const struct pod_object *p, const char *container, const char *claim);
/* Whether the labelSelector of the term selects the Pod. */
bool pod_affinity_term_selects(const struct pod_affinity_term *t, const struct pod_object *p);
/* Whether the init container of this name runs beside the containers of the Pod, and not before them. */
bool pod_object_is_sidecar(const struct pod_object *p, const char *container);
/* When the deletion of the Pod was requested; 0: it is not being deleted. */
int64_t pod_object_deleted(const struct pod_object *p);

struct event_object {
        struct kube_object o;
        const char *kind, *ns, *name, *uid; /* of the object that it is about */
        const char *reason, *message, *type;
        int64_t count, first, last, at, series_last;
};
extern const struct jd_field event_object_fields[];
/* When the Event was seen last. */
int64_t event_object_time(const struct event_object *e);

struct node_taint {
        const char *key, *value, *effect;
};
struct node_object {
        struct node node; /* the first member */
        struct node_taint *all_taints;
        size_t n_all_taints;
        struct jd_pair *allocatable;
        size_t n_allocatable;
        struct jd_pair *labels;
        size_t n_labels;
        const char *runtime, *kubelet, *kernel;
};
extern const struct jd_field node_object_fields[];

struct claim_asked {
        const char *device_class, *device_class_v1beta1;
};
struct claim_object {
        struct claim claim; /* the first member */
        struct claim_asked *asks;
        size_t n_asks;
        const char **finalizers;
        size_t n_finalizers;
        struct claim_place place; /* with domain_uid NULL: it brings no node into a ComputeDomain */
        const char *domain_uid;   /* the ComputeDomain that its configuration names, allocated or not */
};
extern const struct jd_field claim_object_fields[];

/* A DaemonSet or a Deployment. */
struct workload_object {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
        int64_t desired, current, ready, replicas, ready_replicas;
        struct container *containers;
        size_t n_containers;
};
extern const struct jd_field workload_object_fields[];
bool workload_object_runs(const struct workload_object *w, const char *program);
/* Whether the container runs a program of this driver, or one of the Go driver with the same name. */
bool container_is_of_driver(const struct container *c);
/* Whether it belongs to this driver or to the Go driver. */
bool workload_object_is_of_driver(const struct workload_object *w);
/* Whether it belongs to the Go driver and manages ComputeDomains. */
bool workload_object_is_go(const struct workload_object *w);
/* Whether it runs a program of this driver. The Go driver has programs of the same names. */
bool workload_object_is_ours(const struct workload_object *w, const char *program);
/* The value of a variable in the container that runs the program; NULL: none. */
const char *workload_object_env(const struct workload_object *w, const char *program, const char *name);

struct class_object {
        struct kube_object o;
        const char *extended_resource;
};
extern const struct jd_field class_object_fields[];

struct quota_object {
        struct kube_object o;
        struct jd_pair *hard, *used;
        size_t n_hard, n_used;
        const char **scopes; /* spec.scopes */
        size_t n_scopes;
        struct str scope; /* spec.scopeSelector, as JSON */
};
extern const struct jd_field quota_object_fields[];

struct policy_port {
        const char *protocol;
        struct str port; /* a number or a name, as JSON; empty: all ports */
        int64_t end;
};
struct policy_rule {
        struct policy_port *ports; /* none: all ports */
        size_t n_ports;
};
struct policy_object {
        struct kube_object o;
        struct jd_pair *selector; /* spec.podSelector.matchLabels; empty: all Pods */
        size_t n_selector;
        struct str expressions; /* spec.podSelector.matchExpressions, as JSON */
        const char **types;     /* spec.policyTypes */
        size_t n_types;
        struct policy_rule *ingress, *egress;
        size_t n_ingress, n_egress;
};
extern const struct jd_field policy_object_fields[];
/* Whether the policy selects the Pod. False if it has matchExpressions, which are not evaluated. */
bool policy_object_selects(const struct policy_object *p, const struct pod_object *pod);
