/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: the objects of a whole cluster, as the kubectl plugin reads them, with the permissions of a user.
 * A failure fails the test. Texts of objects are JSON with ' instead of ". */
#pragma once

#include <stdbool.h>

#include "cli/source.h"

/* Six nodes: a0 to a3 in the partition CLUSTER_A of the rack "rack-a", b0 and b1 in CLUSTER_B of "rack-b".
 * Each has a plugin and an idle daemon, and publishes a channel device. The ComputeDomain team-b/bench has
 * the claim template "bench-channel". The clock shows CLUSTER_NOW. */
#define CLUSTER_A "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.1"
#define CLUSTER_B "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define CLUSTER_NS "nvidia-compute-domains"
#define CLUSTER_BENCH "be000000-0000-4000-8000-000000000001"
#define CLUSTER_NOW "2026-11-27T12:00:00Z"
/* Two minutes before CLUSTER_NOW. */
#define CLUSTER_BEFORE "2026-11-27T11:57:50Z"

struct cluster;
struct cluster *cluster_new(void);
void cluster_free(struct cluster *c);
struct source *cluster_source(struct cluster *c);

/* Stores an object, and replaces one of the same kind, namespace and name. The metadata must be a member of
 * the text; "uid", "resourceVersion" and "creationTimestamp" are added if they are missing. */
void cluster_put(struct cluster *c, const struct kube_resource *res, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The same for JSON with ". */
void cluster_put_json(struct cluster *c, const struct kube_resource *res, const char *json);
void cluster_remove(struct cluster *c, const struct kube_resource *res, const char *ns, const char *name);
void cluster_remove_all(struct cluster *c, const struct kube_resource *res);

/* Stores a claim for a channel of a ComputeDomain. node NULL: it is not allocated. */
void cluster_claim(struct cluster *c, const char *ns, const char *name, const char *domain_uid,
                   const char *node);
/* Stores a ComputeDomain with its claim template "<name>-channel". `status` is the content of "status". */
void cluster_domain(struct cluster *c, const char *ns, const char *name, const char *uid, const char *status);
/* Stores a Pod of team-b with the claim "channel" from a claim template. claim NULL: the claim does not exist
 * yet; node NULL: it is not scheduled. `more` is added to "spec", `status` to "status"; both begin with a
 * comma or are "". */
struct cluster_pod {
        const char *name, *template, *claim, *node, *phase, *more, *status, *labels, *containers;
};
void cluster_put_pod(struct cluster *c, const struct cluster_pod *p);
/* Adds the condition PodScheduled with this message to `status` of a Pod: a text for cluster_pod. */
#define CLUSTER_UNSCHEDULED(message)                                                                         \
        ",'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':"         \
        "'" message "'}]"
void cluster_event(struct cluster *c, const char *kind, const char *ns, const char *name, const char *reason,
                   const char *message);
/* Replaces the daemon's Pod on a node by one with these annotations. `status` replaces the content of its
 * status; NULL: it runs and is Ready. */
void cluster_daemon(struct cluster *c, const char *node, const char *annotations, const char *status);
/* The installation has imex.isolation=channel. */
void cluster_assign_channels(struct cluster *c);
/* Stores an admission policy of the chart, cd-NAME, which restricts the driver's account in a namespace. */
void cluster_policy(struct cluster *c, const char *name, const char *ns);
/* The tenants of a-team and team-b create objects that look like the driver's: a Deployment of the controller
 * with other settings, a DaemonSet of the plugin, and Pods on a0. Lists have the driver's between them. */
void cluster_pose(struct cluster *c);
/* Makes a node publish no device. */
void cluster_withhold(struct cluster *c, const char *node);

/* The user may list only the namespaced objects of this namespace. */
void cluster_confine(struct cluster *c, const char *ns);
/* The version of the API server; by default "v1.36.3". NULL: it is not known. */
void cluster_version(struct cluster *c, const char *version);
/* Lists of this kind fail with this error. */
void cluster_fail(struct cluster *c, const struct kube_resource *res, enum err_kind kind,
                  const char *message);
