/* SPDX-License-Identifier: Apache-2.0 */
/* host_health: how an IMEX that stands before any ComputeDomain uses it, and that none has to itself, is
 * doing on the nodes of a ComputeDomain, as one condition: that of the hosts, or that of our daemons. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/reasons.h"
#include "api/states.h"
#include "base/mem.h"
#include "model/domain.h"

/* A node where a channel of the domain is allocated, and what is said of its IMEX: by the kubelet plugin
 * there of the host's, by the daemon there of its own. */
struct host {
        const char *name;
        const char *state, *reason; /* state NULL: nothing is said, or it cannot be believed */
};

/* Fills type, status, reason and message of the condition, CONDITION_HOST_IMEX_HEALTHY, or of
 * CONDITION_IMEX_HEALTHY if `of_daemons`. `hosts` are sorted by name, each once. The message changes with
 * what is wrong and not with the number of nodes: a node that joins healthily costs no write. */
void host_health(const struct host *hosts, size_t n, bool of_daemons, struct arena *a,
                 struct cd_condition *ret);
