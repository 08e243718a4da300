/* SPDX-License-Identifier: Apache-2.0 */
/* imex_ctl: parsers for the output of nvidia-imex-ctl. The text is foreign, and differs between builds: so
 * they are fuzzed, and ignore text around the expected output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* The state that `-q` prints: the last line that is exactly one of the known words (INITIALIZING,
 * STARTING_AUTH_SERVER, WAITING_FOR_PEERS, WAITING_FOR_RECOVERY, INIT_GPU, READY, SHUTTING_DOWN,
 * UNAVAILABLE), so warnings before it do no harm; "" when there is none. */
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
/* Parses the output of `-N -j`. Text before and after the object is ignored. */
int imex_ctl_parse_domain(struct str out, struct arena *a, struct imex_ctl_domain *ret, struct err *e);

/* The only node whose host is `ip` or `name`. NULL: there is none, or several (then nothing is known). */
const struct imex_ctl_node *imex_ctl_find(const struct imex_ctl_domain *d, const char *ip, const char *name);
bool imex_ctl_connected_to(const struct imex_ctl_node *n, int64_t id);
/* How many nodes other than itself the node is connected to. */
unsigned imex_ctl_connected(const struct imex_ctl_node *n);
