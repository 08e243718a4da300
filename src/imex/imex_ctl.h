/* SPDX-License-Identifier: Apache-2.0 */
/* imex_ctl: parsers of what nvidia-imex-ctl prints. Foreign text, whose builds differ: fuzzed, and lenient
 * about what surrounds it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* The word of `-q`: the last line that is exactly one of the known words (INITIALIZING, STARTING_AUTH_SERVER,
 * WAITING_FOR_PEERS, WAITING_FOR_RECOVERY, INIT_GPU, READY, SHUTTING_DOWN, UNAVAILABLE), so that a warning
 * line in front does no harm; "" when none. */
const char *imex_ctl_parse_status(struct str out);

struct imex_ctl_connection {
        int64_t to;
        const char *status; /* CONNECTED, NEVER_CONNECTED, ... */
};
struct imex_ctl_node {
        int64_t id;
        const char *host, *host_name, *status, *version; /* "" when absent */
        struct imex_ctl_connection *connections;         /* from this node to the others */
        size_t n_connections;
};
struct imex_ctl_domain {
        const char *status; /* UP, DEGRADED, DOWN */
        struct imex_ctl_node *nodes;
        size_t n_nodes;
};
/* Output of `-N -j`; what is printed in front of and behind the object is ignored. */
int imex_ctl_parse_domain(struct str out, struct arena *a, struct imex_ctl_domain *ret, struct err *e);

/* The one node whose host is `ip` or `name`; NULL when there is none, or several (then nothing is known). */
const struct imex_ctl_node *imex_ctl_find(const struct imex_ctl_domain *d, const char *ip, const char *name);
bool imex_ctl_connected_to(const struct imex_ctl_node *n, int64_t id);
/* How many nodes other than itself the node is connected to. */
unsigned imex_ctl_connected(const struct imex_ctl_node *n);
