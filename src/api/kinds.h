/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: the Kubernetes kinds that the controller keeps copies of, cut down to the members that its rules
 * ask for. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"

struct condition {
        const char *type, *status, *reason, *message;
        int64_t since; /* lastTransitionTime */
};
/* NULL when the object has none of that type. */
const struct condition *condition_find(const struct condition *list, size_t n, const char *type);
/* NULL when it has none, or one whose status is not True. */
const struct condition *condition_true(const struct condition *list, size_t n, const char *type);
/* The first of these types that is True; NULL: none is. */
const struct condition *condition_first_true(const struct condition *list, size_t n, const char *const *types,
                                             size_t n_types);

struct taint {
        const char *key;
};

struct node {
        struct kube_object o;
        const char *domain_uid;      /* label CD_LABEL */
        const char *gpu_clique;      /* label GPU_CLIQUE_LABEL */
        const char *gpu_clique_ours; /* annotation CD_ANNOTATION_GPU_CLIQUE: the value that we wrote, NULL:
                                        never */
        const char *imex_daemon;     /* label CD_LABEL_DAEMON */
        const char *clique_id;       /* annotation CD_ANNOTATION_CLIQUE, NULL when absent */
        const char *boot_id;         /* status.nodeInfo.bootID */
        bool unschedulable;          /* spec.unschedulable: it is cordoned */
        const char *gpu[5];          /* labels that tell of a GPU, see node_has_gpu() */
        struct taint *taints;
        size_t n_taints;
        struct condition *conditions;
        size_t n_conditions;
};
extern const struct jd_field node_fields[];
bool node_ready(const struct node *n);
/* Node Feature Discovery, the GPU Operator or a person has labelled it so: the nodes that the chart's kubelet
 * plugin runs on, if nobody has changed its affinity. */
bool node_has_gpu(const struct node *n);
/* The operator vouches that the machine is off: nothing of ours can still run on it. */
bool node_out_of_service(const struct node *n);
/* The boot that the node is in, as its kubelet tells it; "" when it tells none. */
const char *node_boot_id(const struct node *n);
/* Takes away what no rule of ours asks for. So does each kind's. */
const void *node_trim(void *node, struct arena *a);
/* Does an update change anything that our rules look at? Kubelets write their node's status all the time. */
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

/* A Pod with an IMEX daemon: ours, or one of the Go driver. */
struct pod {
        struct kube_object o;
        const char *domain_uid,
                *clique_id;        /* labels; clique_id NULL until the daemon has set it, "" without fabric */
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE; NULL: made by the Go driver */
        const char *state, *reason, *peers, *ready, *awaited; /* our daemon's annotations, NULL when absent */
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
/* No process of it can run any more. */
bool pod_ended(const struct pod *p);
/* Does an update change anything that our rules look at? */
bool pod_differs(const struct pod *a, const struct pod *b);

/* A Pod of a daemon that serves one domain after another. */
struct daemon_pod {
        struct pod pod;     /* state, peers and so on are those of its assignment */
        const char *report; /* annotation IMEX_ANNOTATION_REPORT, NULL until its first report */
};
extern const struct jd_field daemon_pod_fields[];
/* Does an update change anything that our rules look at? */
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
/* Does it say how its host is? What a plugin that does not run well, or a Pod that is no plugin's, says or
 * does not say counts for nothing. */
bool plugin_pod_tells(const struct plugin_pod *p);
/* No process of it can run any more. */
bool plugin_pod_ended(const struct plugin_pod *p);
/* Since when it has been Ready, 0: it is not. */
int64_t plugin_pod_ready_since(const struct plugin_pod *p);
/* Which of two Pods of a node tells: NULL for neither, the newer one if both do. Either may be NULL. */
const struct plugin_pod *plugin_pod_choose(const struct plugin_pod *a, const struct plugin_pod *b);

struct daemonset {
        struct kube_object o;
        const char *domain_uid;
        const char **finalizers;
        size_t n_finalizers;
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE */
};
extern const struct jd_field daemonset_fields[];
/* Does an update change anything that our rules look at? Its controller counts pods in its status all the
 * time. */
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
extern const struct jd_field slice_kept_fields[]; /* what is asked of one of ours */
const void *slice_trim(void *slice, struct arena *a);
/* The clique that a node's slice states: false when it states nothing (no devices: the fabric is in error),
 * "" without fabric. One that withholds its devices for another reason says its clique in an annotation. */
bool slice_clique(const struct slice *s, const char **ret);
/* The rack that its devices state, NULL: none. */
const char *slice_rack(const struct slice *s);

bool has_string(const char *const *list, size_t n, const char *s);
