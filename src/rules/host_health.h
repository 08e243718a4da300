/* SPDX-License-Identifier: Apache-2.0 */
/* host_health: makes the condition that shows whether IMEX is healthy on the nodes of a ComputeDomain. It is
 * for ComputeDomains that share their IMEX with others: either the hosts' IMEX, or the daemons' IMEX in the
 * standing domain. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/reasons.h"
#include "api/states.h"
#include "base/mem.h"
#include "model/domain.h"

/* A node where a channel of the ComputeDomain is allocated, and the reported state of its IMEX. The kubelet
 * plugin reports the state of the host's IMEX, and a daemon reports the state of the IMEX that it runs. */
struct host {
        const char *name;
        bool reported; /* false: also if the report does not count */
        enum host_state state;
        const char *reason; /* of the state; if none is reported: why, as the plugin reports it. NULL: none */
};

/* Fills type, status, reason and message of the condition CONDITION_HOST_IMEX_HEALTHY, or of
 * CONDITION_IMEX_HEALTHY if `of_daemons`. `hosts` are sorted by name, without duplicates. The message depends
 * on the problems and not on the number of nodes, so a healthy node that joins causes no write. */
void host_health(const struct host *hosts, size_t n, bool of_daemons, struct arena *a,
                 struct cd_condition *ret);
