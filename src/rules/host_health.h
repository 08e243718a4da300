/* SPDX-License-Identifier: Apache-2.0 */
/* host_health: how the IMEX that the hosts run themselves is doing on the nodes of a domain, as one
 * condition. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "model/domain.h"

/* A node where a channel of the domain is allocated, and what the kubelet plugin there says of the host's
 * IMEX. */
struct host {
        const char *name;
        const char *state, *reason; /* annotations of the plugin's Pod; state NULL: it has not said, or cannot
                                       be believed */
};

/* The reason of the condition while no pod uses the domain. */
#define HOST_HEALTH_UNUSED "NoNodes"

#define HOST_UP "UP"
#define HOST_DEGRADED "DEGRADED"
#define HOST_DOWN "DOWN"

/* Fills type, status, reason and message of condition HostIMEXHealthy. `hosts` are sorted by name, each once.
 * The message changes with what is wrong and not with the number of nodes: a node that joins healthily costs
 * no write. */
void host_health(const struct host *hosts, size_t n, struct arena *a, struct cd_condition *ret);
