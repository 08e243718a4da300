/* SPDX-License-Identifier: Apache-2.0 */
/* world_state: what the cluster of the simulation consists of, for the files that move it: world.c what is of
 * Kubernetes, users.c what is of its users. */
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
        NODE_GRACE_MS = 40000,
        POD_GC_MS = 40000,
        NODE_GONE_MS = 60000,
        FORCED_MS = 2000 /* of a Pod that is deleted by force */
};
/* Of a daemon's Pod: it serves as long as claims are prepared. */
#define GRACE_MS INT64_C(2592000000)
#define CLIQUE "clique.%u"
#define BOOT_ID "bbbbbbbb-0000-4000-8000-%012u"

/* A daemon's Pod on a node, as its kubelet knows it. */
struct run {
        /* up: the container runs; lost: its Pod is not there any more; forced: so it is killed in a moment */
        bool used, up, ending, lost, forced;
        char pod[128], uid[48], ip[16];
        char served[48];  /* the domain for which it was READY when a plugin looked last */
        struct held held; /* its claim */
        struct daemon *daemon;
        int64_t crashes_ms;    /* without a daemon: when its container ends */
        const char *killed_by; /* the fault that ends its container just now; NULL: none does */
        int64_t starts_ms, ends_ms;
};

enum { MAX_RUNS = 8 };
struct node {
        char name[16], clique[16];
        bool power, connected, exists, ready; /* exists: the Node object; ready: as its condition says */
        bool back;                            /* connected again: what was deleted meanwhile is seen now */
        bool wipes;                           /* its kubelet has just started */
        int64_t power_ms, connected_ms, exists_ms; /* when it is so again, 0: not by itself */
        int64_t heard_ms, gone_ms;
        unsigned boots, addresses, told_boots; /* told: as its Node has it */
        struct run runs[MAX_RUNS];
};

enum state { POD_NONE, POD_WAITS, POD_CLAIMED, POD_ALLOCATED, POD_RUNS, POD_ENDS };
struct user_pod {
        enum state state;
        bool ran;       /* before it began to end */
        bool collected; /* with its Node; `again`: and its owner makes another */
        bool again;
        bool own; /* its claim is for an assigned channel */
        struct node *node;
        struct held held; /* as the kubelet of the node knows its claim */
        char claim[64];
        int64_t since_ms, ends_ms;
};

struct domain {
        char name[16], uid[48];
        bool lives, ends;
        bool steady;  /* its pod runs as long as it lives, and that is long */
        bool of_rack; /* the controllers make it */
        int64_t next_ms;
        struct user_pod pods[MAX_PODS];
        unsigned n_pods;
};

struct world_state {
        struct node nodes[MAX_NODES];
        struct domain domains[MAX_DOMAINS];
        unsigned n_nodes, n_domains, serial;
        bool calm, empty, leaves_one_off;
        struct node *off; /* it stays without power until the end; NULL: none */
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
/* Nothing that runs on the node outlives it, and power returns after a while. */
void lose_power(struct node *n, int64_t for_ms);
#define CONFIG_DAEMON "ComputeDomainDaemonConfig"
void allocate(const char *claim, const char *ns, const char *node, const char *device, const char *config,
              const char *domain, bool own, const char *pod_uid);
void delete_claim(const char *ns, const char *name);

/* ---- users.c ---- */

void step_domain(struct domain *d);
/* Somebody deletes a domain and its pods by force: their claims go before their kubelets know. */
void force_end(struct domain *d);
/* Users end their pods there; those of ComputeDomains that live are made again. */
void end_pods_on(const struct node *n);
/* Any node that has a channel to give for the claim template of the domain, NULL: none has. */
struct node *choose_node(const struct domain *d);
/* The ComputeDomain as it is, NULL: it is not there. */
const struct version *object_of(const struct domain *d);
