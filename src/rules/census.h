/* SPDX-License-Identifier: Apache-2.0 */
/* census: counts the nodes of a ComputeDomain by their state, for people who watch many ComputeDomains.
 * Pure. */
#pragma once

#include <stddef.h>

#include "rules/membership.h"
#include "rules/host_health.h"

enum census_state {
        CENSUS_READY,
        CENSUS_STARTING, /* no problem so far */
        CENSUS_FAILING,  /* a person should look: the daemon fails, another ComputeDomain uses the node, or no
                            index is free */
        CENSUS_LOST,     /* the node, or the driver's Pod on it, does not answer */
        CENSUS_LEAVING,  /* no claim needs the node any more, and its daemon is stopping IMEX */
        CENSUS_STATES
};
extern const char *const census_names[CENSUS_STATES]; /* "ready", ... */

struct census {
        size_t nodes[CENSUS_STATES];
        size_t peers_missing; /* nodes that are not connected to all peers; 0 if the nodes do not report it */
};

/* For a ComputeDomain with its own IMEX domain. `peers_missing` is the verdict's. */
struct census census_daemons(const struct membership *all, size_t peers_missing);
/* For a ComputeDomain that uses the IMEX of its hosts. DEGRADED and DOWN count as failing. A host without a
 * report counts as lost. */
struct census census_hosts(const struct host *hosts, size_t n);
