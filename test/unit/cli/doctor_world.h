/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_world: the clusters that the tests of `doctor` examine, and objects that cause faults. */
#pragma once

#include "api/names.h"
#include "cli/doctor.h"
#include "world/cluster.h"

extern struct cluster *cluster; /* of the test that runs */

/* A cluster with the whole installation and without a fault, or without any driver. */
void begin_healthy(void);
void begin_empty(void);
/* The cluster that a mode of `doctor` examines without a finding. */
void begin_mode(unsigned mode);
void end_cluster(void);

/* ---- objects ---- */

#define IMAGE "registry.example/compute-domains:v0.1.0"
#define RUNS                                                                                                 \
        "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],'containerStatuses':[{'name':'"   \
        "compute-domains','state':{'running':{'startedAt':'2026-11-27T08:00:00Z'}}},{'name':'gpus','state'"  \
        ":{'running':{'startedAt':'2026-11-27T08:00:00Z'}}}]"
#define GPU_LABEL "'" GPU_PRESENT_LABEL "':'true'"
#define INFO(kubelet, runtime, kernel)                                                                       \
        "'kubeletVersion':'" kubelet "','containerRuntimeVersion':'" runtime "','kernelVersion':'" kernel "'"
#define FINE INFO("v1.36.3", "containerd://2.1.4", "6.8.0-45-generic")

/* `i` is the number of the CustomResourceDefinition whose schema it gets. */
void put_crd(size_t i, const char *name);
void put_namespace(const char *level);
void put_lease(const char *renewed);
/* The plugin's Pod on a node. `status` is the content of the status. */
void put_plugin(const char *node, const char *image, const char *status);
void put_daemon_set(const char *image, int desired, int current);
void put_class(const char *name, const char *spec);
/* The Go driver's DaemonSet and controller. */
void put_go_driver(void);
void put_node(const char *name, const char *labels, const char *info, const char *more);
/* A node that withholds its channel for this reason, and six of them. */
void withheld(const char *node, const char *reason, const char *why);
void fabric_error(void);
void node_event(const char *node, const char *reason, const char *message);
/* NetworkPolicies that forbid the ports of IMEX. */
void denying_policy(void);

/* ---- running it ---- */

/* A bundle of the cluster's objects, as a user of team-b writes it. The caller frees it. */
struct source *bundle_of_cluster(void);
extern const char *named_namespace; /* the driver's, as the user names it; NULL: not named */

struct doctor_test {
        struct view v;
        struct doctor d;
        struct term t;
};

/* Runs the checks of a mode. The caller ends it with examined(). */
void examine(struct doctor_test *x, struct source *s, unsigned mode);
void examined(struct doctor_test *x);
size_t count_state(const struct doctor *d, enum doctor_state state);
bool has_fault(const struct doctor *d, enum doctor_fault fault);
