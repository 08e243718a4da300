/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: what the status of a ComputeDomain reports about its nodes, or about the hosts' own IMEX, and
 * which Events report the change. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/mode.h"
#include "rules/channel_condition.h"
#include "rules/membership.h"
#include "rules/host_health.h"

/* Something that concerns the domain as a whole. The first of a list that applies becomes the reason of the
 * condition Ready. */
struct verdict_problem {
        const char *reason, *message; /* reason NULL: none */
};

enum {
        VERDICT_CONDITIONS = 3,
        /* A status lists no more nodes than these: etcd takes objects of 1.5 MiB, and a node is 280 bytes
         * with what the server notes of who wrote it. The counts are of all nodes, and the objects of the
         * partitions have each of them. */
        VERDICT_NODES = 1000
};

struct verdict {
        const char *status;        /* "Ready" or "NotReady" */
        struct domain_node *nodes; /* sorted by name; those that the object lists already come first into a
                                  list that is full */
        size_t n_nodes;
        size_t n_joined;                            /* with those that are not listed */
        int64_t nodes_ready, nodes_wanted, cliques; /* wanted is never below ready: a node that leaves belongs
                                                       as long as its daemon is ready */
        size_t peers_missing; /* nodes that have not found all of their peers, or cannot be asked */
        bool has_nodes;       /* nodes and their counts are ours to write */
        struct cd_condition conditions[VERDICT_CONDITIONS]; /* Ready, then PeersConnected or HostIMEXHealthy,
                                                               then ChannelAssigned */
        size_t n_conditions;
        bool warns;   /* the reason of Ready is something a person should look at */
        bool changed; /* it differs from what the object says */
};

/* Of a domain whose IMEX daemons we run. `now` in seconds since 1970, for transitions. `conditions` false:
 * the server's schema drops what the Go driver's does not have, so differences there do not count. */
void verdict_make(const struct compute_domain *cd, const struct membership *all,
                  const struct verdict_problem *problem, bool conditions, int64_t now, struct arena *a,
                  struct verdict *ret);

/* Of a domain that uses an IMEX that stands before it, of its hosts or `of_daemons`: Ready means that it was
 * admitted and that its claim template exists, and nothing else; how IMEX is is told beside it and holds
 * nothing back. `channels`: its own, NULL where all share one. */
void verdict_make_host(const struct compute_domain *cd, const struct host *hosts, size_t n_hosts,
                       bool of_daemons, const struct own_channel *channels, size_t n_channels,
                       const struct verdict_problem *problem, bool conditions, int64_t now, struct arena *a,
                       struct verdict *ret);

/* Of a domain that was formed in another mode, `formed_in`, than `mode`, in which the controller runs now:
 * not ready; what its status says of nodes stays, because nobody looks after them any more. */
void verdict_make_other(const struct compute_domain *cd, const struct imex_mode *mode, const char *formed_in,
                        bool conditions, int64_t now, struct arena *a, struct verdict *ret);

struct verdict_event {
        bool warning;
        const char *reason, *message;
};
/* What a person would want to know of the step from what the object says to the verdict. Returns the number;
 * *ret is from the arena. */
size_t verdict_events(const struct compute_domain *cd, const struct membership *all, const struct verdict *v,
                      struct arena *a, struct verdict_event **ret);
