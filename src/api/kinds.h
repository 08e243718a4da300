/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: the Kubernetes kinds that the controller caches, reduced to the members that its rules need. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"

struct condition {
        const char *type, *status, *reason, *message;
        int64_t since; /* lastTransitionTime */
};
/* Returns NULL if there is no condition of this type. */
const struct condition *condition_find(const struct condition *list, size_t n, const char *type);
/* Returns NULL if there is no condition of this type, or its status is not True. */
const struct condition *condition_true(const struct condition *list, size_t n, const char *type);
/* Returns the condition of the first of these types that is True; NULL: none is. */
const struct condition *condition_first_true(const struct condition *list, size_t n, const char *const *types,
                                             size_t n_types);

struct taint {
        const char *key;
};

struct node {
        struct kube_object o;
        const char *domain_uid;      /* label CD_LABEL */
        const char *gpu_clique;      /* label GPU_CLIQUE_LABEL */
        const char *gpu_clique_ours; /* annotation CD_ANNOTATION_GPU_CLIQUE: the value that the controller
                                        wrote; NULL: never */
        const char *imex_daemon;     /* label CD_LABEL_DAEMON */
        const char *clique_id;       /* annotation CD_ANNOTATION_CLIQUE, NULL when absent */
        const char *boot_id;         /* status.nodeInfo.bootID */
        bool unschedulable;          /* spec.unschedulable: it is cordoned */
        const char *gpu[5];          /* labels of nodes with a GPU, see node_has_gpu() */
        struct taint *taints;
        size_t n_taints;
        struct condition *conditions;
        size_t n_conditions;
};
extern const struct jd_field node_fields[];
bool node_ready(const struct node *n);
/* Has Node Feature Discovery, the GPU Operator or a person labelled the node as one with a GPU? With the
 * default affinity, the chart's kubelet plugin runs on these nodes. */
bool node_has_gpu(const struct node *n);
/* Has the node the out-of-service taint? With it, the operator declares that the machine is off, so nothing
 * still runs on it. */
bool node_out_of_service(const struct node *n);
/* The boot ID of the node, as its kubelet reports it; "": none. */
const char *node_boot_id(const struct node *n);
/* Removes the members that no rule needs. The other kinds have the same function. */
const void *node_trim(void *node, struct arena *a);
/* Does an update change anything that the rules use? Kubelets update the status of their Nodes all the
 * time. */
bool node_differs(const struct node *a, const struct node *b);

struct pod_ip {
        const char *ip;
};

struct pod_container_why {
        const char *reason, *message;
};

struct pod_container {
        const struct pod_container_why *waiting, *terminated; /* at most one is not NULL */
        int64_t started;                                      /* seconds since 1970; 0: it does not run */
};

/* A Pod of a daemon, of this driver or of the Go driver. */
struct pod {
        struct kube_object o;
        const char *domain_uid, *clique_id; /* labels; clique_id is NULL until the daemon has set it, ""
                                               without a partition */
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE; NULL: made by the Go driver */
        const char *state, *reason, *peers, *ready, *awaited; /* annotations of this driver's daemon, NULL
                                                                 when absent */
        const char *node, *phase;
        struct pod_ip *ips;
        size_t n_ips;
        struct condition *conditions;
        size_t n_conditions;
        struct pod_container *containers;
        size_t n_containers;
};
extern const struct jd_field pod_fields[];
const void *pod_trim(void *pod, struct arena *a);
/* Has the Pod ended, so that none of its processes can run any more? */
bool pod_ended(const struct pod *p);
/* Does an update change anything that the rules use? */
bool pod_differs(const struct pod *a, const struct pod *b);

/* A Pod of this driver's daemon, which serves one IMEX domain after another. */
struct daemon_pod {
        struct pod pod;     /* state, peers and so on belong to its assignment */
        const char *report; /* annotation IMEX_ANNOTATION_REPORT, NULL until its first report */
};
extern const struct jd_field daemon_pod_fields[];
/* Does an update change anything that the rules use? */
bool daemon_pod_differs(const struct daemon_pod *a, const struct daemon_pod *b);

/* A Pod of the kubelet plugin. */
struct plugin_pod {
        struct kube_object o;
        const char *node, *phase;
        const char *host_state, *host_reason, *host_channels; /* its annotations, NULL when absent */
        const char *unprepared, *refused; /* IMEX_ANNOTATION_UNPREPARED and _REFUSED, NULL when absent */
        struct condition *conditions;
        size_t n_conditions;
};
extern const struct jd_field plugin_pod_fields[];
/* Does the Pod report the state of its host's IMEX? The report of a plugin that is not Ready, or of a Pod
 * without a plugin, does not count. */
bool plugin_pod_reports(const struct plugin_pod *p);
/* Has the Pod ended, so that none of its processes can run any more? */
bool plugin_pod_ended(const struct plugin_pod *p);
/* The time since when it has been Ready; 0: it is not. */
int64_t plugin_pod_ready_since(const struct plugin_pod *p);
/* Which of two Pods of a node reports the host's state? NULL: neither. If both do, the newer one counts.
 * Either may be NULL. */
const struct plugin_pod *plugin_pod_choose(const struct plugin_pod *a, const struct plugin_pod *b);

struct daemonset {
        struct kube_object o;
        const char *domain_uid;
        const char **finalizers;
        size_t n_finalizers;
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE */
};
extern const struct jd_field daemonset_fields[];
/* Does an update change anything that the rules use? The DaemonSet controller updates the number of pods in
 * its status all the time. */
bool daemonset_differs(const struct daemonset *a, const struct daemonset *b);

struct rct_selector {
        const char *expression; /* CEL */
};

struct rct_request {
        const char *name, *device_class;
        struct rct_selector *selectors;
        size_t n_selectors;
};

struct rct_config {
        const char **requests;
        size_t n_requests;
        const char *driver;
        struct str parameters;
};

/* ResourceClaimTemplate */
struct rct {
        struct kube_object o;
        const char *domain_uid, *target; /* labels */
        const char *template_hash;       /* annotation CD_ANNOTATION_TEMPLATE, NULL when absent */
        const char **finalizers;
        size_t n_finalizers;
        struct rct_request *requests;
        size_t n_requests;
        struct rct_config *configs;
        size_t n_configs;
};
extern const struct jd_field rct_fields[];

struct slice_device {
        const char *name, *clique_id, *rack; /* attributes cliqueID and rack, NULL when absent */
};

struct slice {
        struct kube_object o;
        const char *driver, *node;
        const char *clique_id; /* annotation CD_ANNOTATION_CLIQUE, NULL when absent */
        struct slice_device *devices;
        size_t n_devices;
};
extern const struct jd_field slice_fields[];
extern const struct jd_field slice_kept_fields[]; /* the members that are needed of a slice of this driver */
const void *slice_trim(void *slice, struct arena *a);
/* The clique ID that a node's slice states; "" without a partition. False: it states none, because it has no
 * devices after an error of the fabric. A slice that withholds its devices for another reason has the clique
 * ID in an annotation. */
bool slice_clique(const struct slice *s, const char **ret);
/* The rack that its devices state; NULL: none. */
const char *slice_rack(const struct slice *s);

bool has_string(const char *const *list, size_t n, const char *s);
