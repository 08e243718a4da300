/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: makes the status of a ComputeDomain from the state of its nodes or of the hosts' IMEX, and the
 * Events that report a change of the status. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/mode.h"
#include "rules/channel_condition.h"
#include "rules/membership.h"
#include "rules/host_health.h"

/* A problem of the whole ComputeDomain. The first problem in a list that applies becomes the reason of the
 * condition Ready. */
struct verdict_problem {
        const char *reason, *message; /* reason NULL: none */
};

enum {
        VERDICT_CONDITIONS = 6,
        /* A status lists at most this number of nodes: etcd accepts objects of 1.5 MiB, and a node needs 280
         * bytes, including what the API server records about its writer. The counts include all nodes, and
         * the fabric objects list each node. */
        VERDICT_NODES = 1000
};

struct verdict {
        const char *status;        /* the name of an enum domain_status */
        struct domain_node *nodes; /* sorted by name. If there are too many nodes, those that the object
                                      already lists take precedence */
        size_t n_nodes;
        size_t n_joined;                            /* including nodes that are not listed */
        int64_t nodes_ready, nodes_wanted, cliques; /* nodes_wanted is never below nodes_ready, because a node
                                                       that leaves counts while its daemon is ready */
        size_t peers_missing; /* nodes that are not connected to all peers, or cannot be asked */
        bool has_nodes;       /* the controller writes the nodes and their counts */
        struct cd_condition conditions[VERDICT_CONDITIONS]; /* Ready; then PeersConnected, HostIMEXHealthy or
                                                               IMEXHealthy; then ChannelAssigned; then
                                                               ChannelAvailable; then SharedClaimAvailable;
                                                               then StartGateOpen */
        size_t n_conditions;
        bool warns;   /* a person should look at the reason of Ready */
        bool changed; /* the verdict differs from the status of the object */
};

/* The input of every verdict. */
struct verdict_input {
        const struct compute_domain *cd;
        struct verdict_problem problem; /* verdict_make() and verdict_make_host() read it */
        bool conditions; /* false: the API server has the Go driver's schema and drops the fields that it
                            lacks, so differences there do not count */
        int64_t now;     /* in seconds since 1970, for transition times */
        /* The condition ChannelAvailable, which verdict_make() and verdict_make_host() add; NULL: none. */
        const struct cd_condition *shortage;
        /* The condition SharedClaimAvailable, which both add, too; NULL: none. */
        const struct cd_condition *shared_claim;
};

/* Makes the verdict for a ComputeDomain with its own IMEX domain. */
void verdict_make(const struct verdict_input *in, const struct membership *all, struct arena *a,
                  struct verdict *ret);

/* The hosts, and the channels of the ComputeDomain. */
struct verdict_hosts {
        const struct host *list;
        size_t n;
        bool of_daemons;                    /* daemons run the standing domain */
        const struct own_channel *channels; /* the assigned channels; NULL: all ComputeDomains share one */
        size_t n_channels;
        bool unknown; /* the list is empty, but nodes that have not reported may use the ComputeDomain. Its
                         conditions stay as they are */
};

/* Makes the verdict for a ComputeDomain that uses the IMEX of its hosts, or the standing domain
 * (`of_daemons`). Ready means only that it was admitted and that its claim template exists. A separate
 * condition shows the state of IMEX, and delays nothing. */
void verdict_make_host(const struct verdict_input *in, const struct verdict_hosts *hosts, struct arena *a,
                       struct verdict *ret);

/* Makes the verdict for a ComputeDomain that was formed in another mode (`formed_in`) than the present mode
 * of the controller (`mode`). Such a ComputeDomain is not ready. The nodes in its status stay as they are,
 * because no controller updates them any more. */
void verdict_make_other(const struct verdict_input *in, const struct imex_mode *mode, const char *formed_in,
                        struct arena *a, struct verdict *ret);

/* Checks the invariants of every status that the controller writes: Ready agrees with the condition Ready; no
 * node is listed twice, and the list is not too long; no more nodes are ready than belong to the
 * ComputeDomain. Returns NULL if they hold, otherwise a description of the violation, in the arena. */
const char *verdict_check(const struct verdict *v, struct arena *a);

/* Makes the verdict that replaces one that failed its check: not ready, with the reason DecisionWrong and the
 * message `why`. The nodes in the status and their counts stay as they are. */
void verdict_make_wrong(const struct verdict_input *in, const char *why, struct arena *a,
                        struct verdict *ret);

struct verdict_event {
        bool warning;
        const char *reason, *message;
};
/* Makes the Events for the change from the object's status to the verdict. Returns their number; *ret is in
 * the arena. */
size_t verdict_events(const struct compute_domain *cd, const struct membership *all, const struct verdict *v,
                      struct arena *a, struct verdict_event **ret);
