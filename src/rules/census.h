/* SPDX-License-Identifier: Apache-2.0 */
/* census: how many nodes of a domain are in which state, for those who watch many domains. Pure. */
#pragma once

#include <stddef.h>

#include "rules/membership.h"
#include "rules/host_health.h"

enum census_state {
        CENSUS_READY,
        CENSUS_STARTING, /* nothing wrong so far */
        CENSUS_FAILING,  /* somebody should look: the daemon fails, another domain has the node, no index is
                            left */
        CENSUS_LOST,     /* the node, or what runs for us on it, does not answer */
        CENSUS_LEAVING,  /* nobody uses the domain there any more, and its daemon is ending */
        CENSUS_STATES
};
extern const char *const census_names[CENSUS_STATES]; /* "ready", ... */

struct census {
        size_t nodes[CENSUS_STATES];
        size_t peers_missing; /* nodes that have not found all of their peers; those that do not tell apart */
};

/* Of a domain whose IMEX daemons we run; `peers_missing` is the verdict's. */
struct census census_daemons(const struct membership *all, size_t peers_missing);
/* Of one that uses the IMEX of its hosts: DEGRADED and DOWN are failing, who says nothing is lost. */
struct census census_hosts(const struct host *hosts, size_t n);
