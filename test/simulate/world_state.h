/* SPDX-License-Identifier: Apache-2.0 */
/* world_state: defines the state of the simulated cluster, for the two files that change it: world.c
 * simulates Kubernetes, and users.c its users. */
#pragma once

#include <uv.h>

#include "plugin.h"
#include "sim.h"
#include "store.h"
#include "world.h"

enum {
        MAX_NODES = 64,
        MAX_DOMAINS = 16,
        MAX_PODS = 64,
        MAX_GROUPS = 2,
        NODE_GRACE_MS = 40000,
        POD_GC_MS = 40000,
        NODE_GONE_MS = 60000,
        FORCED_MS = 2000 /* until a force-deleted Pod ends */
};
/* The grace period of a daemon's Pod: IMEX runs as long as claims are prepared. */
#define GRACE_MS INT64_C(2592000000)
#define CLIQUE "clique.%u"
#define BOOT_ID "bbbbbbbb-0000-4000-8000-%012u"

/* A daemon's Pod on a node, as its kubelet knows it. */
struct run {
        /* up: the container runs; lost: its Pod no longer exists; forced: the Pod was force-deleted, so the
         * kubelet soon kills the container */
        bool used, up, ending, lost, forced;
        char pod[128], uid[48], ip[16];
        char served[48];  /* the ComputeDomain for which it was READY when a plugin last looked */
        char retry[48];   /* the value of CD_ANNOTATION_RETRY that the kubelet has seen */
        struct held held; /* the daemon claim */
        struct daemon *daemon;
        int64_t crashes_ms;    /* without a daemon: when its container ends */
        const char *killed_by; /* the fault that is ending its container now; NULL: none */
        int64_t starts_ms, ends_ms;
};

enum { MAX_RUNS = 8 };
struct node {
        char name[16], clique[16], plugin_pod[64];
        bool power, connected, exists, ready; /* exists: the Node object; ready: its condition Ready */
        bool tainted;                         /* the Node has the taint of a node that is not ready */
        bool back;  /* connected again: the kubelet now sees earlier deletions */
        bool wipes; /* the kubelet has just started, and cleans up */
        bool cordoned;
        bool excluded;                             /* the users' pods may not run on it */
        int64_t power_ms, connected_ms, exists_ms; /* when it becomes true again, 0: not by itself */
        int64_t heard_ms, gone_ms;
        unsigned boots, addresses, shown_boots; /* shown_boots: as the Node shows it */
        struct run runs[MAX_RUNS];
};

/* POD_STARTS: its claims are prepared, and its containers do not run yet. */
enum state { POD_NONE, POD_WAITS, POD_CLAIMED, POD_ALLOCATED, POD_STARTS, POD_RUNS, POD_ENDS };
struct user_pod {
        enum state state;
        bool ran;       /* before it began to end */
        bool seen;      /* the kubelet has seen that it ends */
        bool collected; /* deleted with its Node; again: its owner creates another one */
        bool again;
        bool own; /* its claim is for an assigned channel */
        bool shares;     /* its claim is the shared one of the ComputeDomain */
        bool prepares,
                unprepares; /* of a shared claim: the kubelet waits for this call, or sees its result */
        bool released;      /* the kubelet no longer needs the shared claim for this pod */
        bool unreserved; /* the claim no longer names it */
        struct node *node;
        struct held held; /* its claim, as the kubelet of the node knows it */
        char claim[64];   /* also its name and UID, if it does not share the claim */
        char name[32];    /* also its UID, if it shares the claim */
        bool retry;       /* CD_ANNOTATION_RETRY has changed, and the kubelet has not seen it yet */
        int64_t since_ms, ends_ms;
        int64_t starts_ms; /* when the sandbox is ready, and the containers can start */
};

struct domain {
        char name[16], uid[48];
        bool lives, ends;
        bool steady;  /* it lives long, and its pod runs for all of that time */
        bool of_rack; /* the controllers create it for a rack */
        bool shares;  /* its pods share one claim */
        char cd[64], claim[64]; /* names of the ComputeDomain and of the shared claim */
        /* The controllers create it for a workload, whose owner, a Job or a JobSet, has the UID `owner`. */
        bool of_workload, of_jobset;
        bool owned; /* the owner exists */
        char owner[48];
        unsigned n_groups; /* PodGroups that name the shared claim */
        int64_t next_ms;
        struct user_pod pods[MAX_PODS];
        unsigned n_pods;
};

struct world_state {
        struct node nodes[MAX_NODES];
        struct domain domains[MAX_DOMAINS];
        unsigned n_nodes, n_domains, serial;
        bool calm, empty, leaves_one_off;
        bool refuses_claims;  /* a quota forbids the claims of the users' pods */
        bool daemons_crash;   /* their containers end when they have started */
        bool refuses_daemons; /* a quota forbids the Pods of the daemons */
        struct node *off; /* the node that stays without power until the end; NULL: none */
        uv_loop_t *loop;
};
extern struct world_state w;

static inline bool soon(void) {
        return sim_chance(50);
}

static inline unsigned number_of(const struct node *n) {
        return (unsigned)(n - w.nodes);
}

/* ---- world.c ---- */

struct node *node_named(const char *name);
bool is_taken(const char *node, const char *device);
/* Cuts the power of a node: everything on it ends. Power returns after `for_ms`. */
void lose_power(struct node *n, int64_t for_ms);
#define CONFIG_DAEMON "ComputeDomainDaemonConfig"
/* The pod has the name of the claim. */
void allocate(const char *claim, const char *ns, const char *node, const char *device, const char *config,
              const char *domain, bool own, const char *pod_uid);
void delete_claim(const char *ns, const char *name);

/* ---- users.c ---- */

void step_domain(struct domain *d);
/* Lets the users have ComputeDomains with pods that the Go driver formed. */
void users_migrate(void);
/* Handles a merge patch of the pod of a user, which is no object of the store. Returns false if there is no
 * such pod. */
bool users_patch_pod(const char *ns, const char *name, const char *body);
/* Force-deletes a ComputeDomain and its pods: their claims are deleted before their kubelets notice. */
void force_end(struct domain *d);
/* Deletes the users' pods on the node. The users recreate the pods of existing ComputeDomains. */
void end_pods_on(const struct node *n);
/* A pod whose claim is allocated on this node may wait, even if nothing has happened for a while. */
bool world_pod_may_wait(const struct node *n);
/* Returns a node with a free channel device for the claim template of the ComputeDomain, or NULL if there is
 * none. */
struct node *choose_node(const struct domain *d);
void end_pod(struct user_pod *p);
/* Returns the present ComputeDomain, or NULL if it does not exist. */
const struct version *object_of(const struct domain *d);
