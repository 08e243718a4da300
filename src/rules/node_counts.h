/* SPDX-License-Identifier: Apache-2.0 */
/* node_counts: counts the nodes of a ComputeDomain by their state, for people who watch many ComputeDomains.
 * Pure. */
#pragma once

#include <stddef.h>

#include "rules/membership.h"
#include "rules/host_health.h"

enum node_counts_state {
        NODE_COUNTS_READY,
        NODE_COUNTS_STARTING, /* no problem so far */
        NODE_COUNTS_FAILING,  /* a person should look: the daemon fails, another ComputeDomain uses the node,
                            or no index is free */
        NODE_COUNTS_LOST,     /* the node, or the driver's Pod on it, does not answer */
        NODE_COUNTS_LEAVING,  /* no claim needs the node any more, and its daemon is stopping IMEX */
        NODE_COUNTS_STATES
};
extern const char *const node_counts_names[NODE_COUNTS_STATES]; /* "ready", ... */

struct node_counts {
        size_t nodes[NODE_COUNTS_STATES];
        size_t peers_missing; /* nodes that are not connected to all peers; 0 if the nodes do not report it */
};

/* Counts the nodes of a ComputeDomain with its own IMEX domain. `peers_missing` comes from the verdict. */
struct node_counts node_counts_daemons(const struct membership *all, size_t peers_missing);
/* Counts the nodes of a ComputeDomain that uses the IMEX of its hosts. DEGRADED and DOWN count as failing. A
 * host without a report counts as lost. */
struct node_counts node_counts_hosts(const struct host *hosts, size_t n);
