/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: decodes the Kubernetes kinds that the controller caches, with only the members that its rules
 * need. After trimming, jd_equal() with the table of a kind returns whether an update changes anything that
 * the rules use: kubelets and controllers constantly update the status of Nodes, Pods and DaemonSets. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"

struct condition {
        const char *type, *status, *reason, *message; /* status: the name of an enum condition_status */
        int64_t since;                                /* lastTransitionTime */
};
extern const struct jd_field condition_fields[];
enum condition_status { STATUS_NONE, STATUS_OTHER, STATUS_UNKNOWN, STATUS_FALSE, STATUS_TRUE, STATUSES };
/* Returns STATUS_NONE for NULL and "", and STATUS_OTHER for a status that Kubernetes does not define. */
enum condition_status condition_status_decode(const char *name);
const char *condition_status_name(enum condition_status s);
/* Returns the condition of this type; NULL: there is none. */
const struct condition *condition_find(const struct condition *list, size_t n, const char *type);
/* Returns the condition of this type if its status is True; otherwise NULL. */
const struct condition *condition_true(const struct condition *list, size_t n, const char *type);
/* Returns the first condition, in the order of `types`, that is True; NULL: none is True. */
const struct condition *condition_first_true(const struct condition *list, size_t n, const char *const *types,
                                             size_t n_types);

struct taint {
        const char *key;
};

/* An element of metadata.managedFields: which parts of the spec a client has written, and when. */
struct field_writer {
        const char *manager, *time;
        struct str taints, unschedulable; /* p NULL: it does not own the field */
};

struct node {
        struct kube_object o;
        const char *domain_uid;      /* label CD_LABEL */
        const char *gpu_clique;      /* label GPU_CLIQUE_LABEL */
        const char *gpu_clique_ours; /* annotation CD_ANNOTATION_GPU_CLIQUE: the value that the controller
                                        wrote into the label; NULL: it wrote none */
        const char *imex_daemon;     /* label CD_LABEL_DAEMON */
        const char *shared;          /* label CD_LABEL_SHARED */
        const char *clique_id;       /* annotation CD_ANNOTATION_CLIQUE, NULL when absent */
        const char *boot_id;         /* status.nodeInfo.bootID */
        bool unschedulable;          /* spec.unschedulable: the node is cordoned */
        const char *gpu[5];          /* labels of nodes with a GPU, see node_has_gpu() */
        struct taint *taints;
        size_t n_taints;
        struct condition *conditions;
        size_t n_conditions;
        struct field_writer *writers; /* metadata.managedFields, until node_trim() */
        size_t n_writers;
        int64_t spec_writers; /* who wrote taints and unschedulable, and when, as one number: it changes when
                                 these fields change. node_trim() sets it */
        bool partial; /* only the metadata of this version has arrived; spec and status are of an earlier one
                       */
};
/* Taints, unschedulable, the boot ID and conditions are not in the metadata. */
extern const struct jd_field node_fields[];
extern const struct jd_field node_kept_fields[]; /* the members that the cache keeps */
bool node_ready(const struct node *n);
/* Returns whether Node Feature Discovery, the GPU Operator or an administrator has labelled the node as a
 * node with a GPU. With the default affinity of the chart, the kubelet plugin runs on these nodes. */
bool node_has_gpu(const struct node *n);
/* Returns whether the node has the out-of-service taint. With this taint, the operator declares that the
 * machine is off, so nothing runs on it any more. */
bool node_out_of_service(const struct node *n);
/* Returns the boot ID of the node, as its kubelet reports it; "": it reports none. */
const char *node_boot_id(const struct node *n);
/* Removes what no rule needs. pod_trim() and slice_trim() do the same for their kinds. */
const void *node_trim(void *node, struct arena *a);
/* Returns a copy of a Node of which only the metadata has arrived, with the spec and status of `old`. `old`
 * NULL: they are unknown, so the Node is not Ready. */
const void *node_inherit(const void *node, const struct kube_object *old, struct arena *a);

struct pod_ip {
        const char *ip;
};

struct pod_container_why {
        const char *reason, *message;
        int64_t exit_code; /* if it has ended */
};

/* Returns whether this reason why a container does not run only means that it starts. */
bool pod_container_starts(const struct pod_container_why *why);

struct pod_container {
        const struct pod_container_why *waiting, *terminated; /* at most one is not NULL */
        const struct pod_container_why *last; /* its exit code before its last restart; NULL: it has not been
                                                 restarted */
        int64_t started;                      /* seconds since 1970; 0: the container is not
                                                 running */
};

/* The Pod of a daemon, either of this driver or of the Go driver. */
struct pod {
        struct kube_object o;
        const char *domain_uid, *clique_id; /* labels; clique_id is NULL until the daemon has set it, ""
                                               without a partition */
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE; NULL: the Go driver created the
                                      Pod */
        const char *state, *reason, *peers, *ready, *awaited; /* annotations of this driver's daemon, NULL
                                                                 when absent */
        const char *node, *phase;
        const char *mirror; /* annotation POD_ANNOTATION_MIRROR, NULL when absent */
        struct pod_ip *ips;
        size_t n_ips;
        struct condition *conditions;
        size_t n_conditions;
        struct pod_container *containers;
        size_t n_containers;
};
extern const struct jd_field pod_fields[];
/* Returns why a container does not run; NULL: it runs, starts, or has ended with success and is restarted. */
const struct pod_container_why *pod_container_down(const struct pod_container *c);
const void *pod_trim(void *pod, struct arena *a);
/* Returns whether the Pod has ended, so that none of its processes can run any more. */
bool pod_ended(const struct pod *p);
/* Returns whether a daemon of this driver reports that IMEX is READY with its present assignment. */
bool pod_imex_ready(const struct pod *p);

/* The Pod of a daemon of this driver. The daemon serves one IMEX domain after another. */
struct daemon_pod {
        struct pod pod;     /* `state`, `peers` and so on describe the daemon's present assignment */
        const char *report; /* annotation IMEX_ANNOTATION_REPORT, NULL until its first report */
};
extern const struct jd_field daemon_pod_fields[];
/* Returns the one of two Pods on a node that counts; NULL: both have ended. Prefers a Pod that has reported,
 * then the newest. `a` and `b` may be NULL. */
const struct daemon_pod *daemon_pod_choose(const struct daemon_pod *a, const struct daemon_pod *b);

/* A Pod of the kubelet plugin. */
struct plugin_pod {
        struct kube_object o;
        const char *node, *phase;
        const char *host_state, *host_reason, *host_channels; /* its annotations, NULL when absent */
        const char *withheld; /* IMEX_ANNOTATION_WITHHELD, NULL when absent: the plugin offers channels */
        const char *unprepared, *refused; /* IMEX_ANNOTATION_UNPREPARED and _REFUSED, NULL when absent */
        struct condition *conditions;
        size_t n_conditions;
};
extern const struct jd_field plugin_pod_fields[];
/* Returns whether the Pod reports the state of its host's IMEX. Annotations of a Pod that is not Ready, is
 * being deleted or has ended do not count, because its plugin may no longer run. */
bool plugin_pod_reports(const struct plugin_pod *p);
/* Returns whether the Pod has ended, so that none of its processes can run any more. */
bool plugin_pod_ended(const struct plugin_pod *p);
/* Returns since when the Pod has been Ready, in seconds since 1970; 0: it is not Ready. */
int64_t plugin_pod_ready_since(const struct plugin_pod *p);
/* Returns when the init containers of the Pod had ended, in seconds since 1970; 0: unknown. After that, the
 * Pod has run on its node, even if it is not Ready now. */
int64_t plugin_pod_initialized_at(const struct plugin_pod *p);
/* Returns the one of two Pods on a node that reports the state of the host's IMEX; NULL: neither reports it.
 * If both report it, returns the newer Pod. `a` and `b` may be NULL. */
const struct plugin_pod *plugin_pod_choose(const struct plugin_pod *a, const struct plugin_pod *b);

struct daemonset {
        struct kube_object o;
        const char *domain_uid;
        const char **finalizers;
        size_t n_finalizers;
        const char *template_hash; /* annotation CD_ANNOTATION_TEMPLATE */
};
extern const struct jd_field daemonset_fields[];

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

/* A ResourceClaimTemplate. */
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
        bool multiple;                       /* any number of claims can have it at a time */
};

struct slice {
        struct kube_object o;
        const char *driver, *node;
        const char *clique_id; /* annotation CD_ANNOTATION_CLIQUE, NULL when absent */
        struct slice_device *devices;
        size_t n_devices;
        int64_t n_channels; /* the number of channel devices, which slice_trim() counts */
};
extern const struct jd_field slice_fields[];
extern const struct jd_field slice_kept_fields[]; /* the members that the cache keeps of a slice of this
                                                     driver */
const void *slice_trim(void *slice, struct arena *a);
/* Reads the clique ID from a node's slice; *ret is "" if the node has no partition. Returns false if the
 * slice contains no clique ID, because the plugin withholds the devices after an error of the NVLink fabric.
 * If the plugin withholds the devices for another reason, an annotation of the slice contains the clique
 * ID. */
bool slice_clique(const struct slice *s, const char **ret);
/* Returns the one of two slices of a node that shows its clique ID, the newer one first; NULL: neither shows
 * it. attributes_count: a device without the attribute cliqueID means a node outside any partition, as with
 * driver-managed IMEX. `a` and `b` may be NULL. *ret_clique is not changed if neither shows it. */
const struct slice *slice_choose(const struct slice *a, const struct slice *b, bool attributes_count,
                                 const char **ret_clique);
/* Returns the rack in the attributes of the slice's devices; NULL: they have none. */
const char *slice_rack(const struct slice *s);

bool has_string(const char *const *list, size_t n, const char *s);
