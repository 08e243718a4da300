/* SPDX-License-Identifier: Apache-2.0 */
/* cd_health: reports the health of the channels of prepared claims, for the status of pods
 * (dra/dra_health.h).
 *
 * A channel is unhealthy if IMEX of this node is not READY, or a peer is lost (imex/imex_links.h): a node
 * with pods of the same ComputeDomain. It is unknown what the Go driver's daemon does, and what an old daemon
 * of ours does. */
#pragma once

#include <sys/queue.h>

#include "cd_plugin/host_imex.h"
#include "dra/dra_health.h"
#include "imex/imex_state.h"
#include "model/fabric.h"

struct cd;
struct cd_lost_watch;

enum cd_health_runner {
        CD_HEALTH_NO_IMEX, /* the node is in no NVLink partition, so the pod has no channel */
        CD_HEALTH_OWN,
        CD_HEALTH_GO,
        CD_HEALTH_HOST
};

struct cd_health_facts {
        enum cd_health_runner runner;
        const char *node;
        /* With our daemon: */
        bool ready;
        bool unreadable; /* its state file cannot be read */
        const char *why; /* if not ready: the reason, which begins with the node's name */
        const struct imex_state *state;
        const char *const *lost; /* the lost nodes with pods of the ComputeDomain */
        size_t n_lost;
        bool undecided; /* other nodes are lost, and it is not known whether they have such pods */
        /* With the host's IMEX: */
        enum host_imex_own host;
        const struct host_imex_status *host_status;
};

struct cd_health_verdict {
        enum dra_health_state state;
        char message[DRA_HEALTH_MESSAGE_MAX];
};

/* Judges a channel. Pure. */
void cd_health_judge(const struct cd_health_facts *f, struct cd_health_verdict *ret);

/* Returns the names of the lost nodes that have an active assignment in the IMEX domain, without this node;
 * in the arena. Pure. */
size_t cd_health_lost(const struct fabric_domain *d, const char *lost, const char *node, struct arena *a,
                      const char ***ret);

/* The state of the module, in struct cd. */
struct cd_health {
        LIST_HEAD(, cd_lost_watch) watches; /* of the reports of lost nodes */
};
void cd_health_init(struct cd *cd);
void cd_health_done(struct cd *cd);
/* Lists the channels of prepared claims. For struct node_driver; `u` is the struct cd. */
void cd_health_list(void *u, struct arena *a, struct dra_health_list *ret);
