/* SPDX-License-Identifier: Apache-2.0 */
/* imex_ctl: parses the output of nvidia-imex-ctl, and the log of nvidia-imex. The output comes from another
 * program and differs between builds, so the parsers are fuzzed, and ignore text around the expected output.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/states.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Returns the state that `-q` prints: the last line that is exactly one of the known words (INITIALIZING,
 * STARTING_AUTH_SERVER, WAITING_FOR_PEERS, WAITING_FOR_RECOVERY, INIT_GPU, READY, SHUTTING_DOWN,
 * UNAVAILABLE), so warnings before that line are ignored; IMEX_STATE_NONE when there is no such line. */
enum imex_status imex_ctl_parse_status(struct str out);

struct imex_ctl_connection {
        int64_t to;
        bool connected; /* the status is CONNECTED, and not NEVER_CONNECTED, ... */
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

/* Returns the only node whose host is `ip` or `name`. NULL: there is none, or there are several, so it is not
 * known which of them is meant. */
const struct imex_ctl_node *imex_ctl_find(const struct imex_ctl_domain *d, const char *ip, const char *name);
bool imex_ctl_connected_to(const struct imex_ctl_node *n, int64_t id);
/* Returns to how many other nodes the node is connected. */
unsigned imex_ctl_connected(const struct imex_ctl_node *n);

/* Facts that only the log of nvidia-imex contains. Each function reads one line. */

/* Finds "... Identified this node as ID <n> ...": the ID that IMEX determined for itself from its
 * addresses. */
bool imex_log_node_id(struct str line, int64_t *ret);

/* If the line reports a fault that no restart fixes, returns the cause and the remedy, for people; otherwise
 * NULL. The text is static. */
const char *imex_log_fault(struct str line);
/* The beginning of the text that imex_log_fault() returns when the host's own nvidia-imex holds the
 * session. */
#define IMEX_LOG_SESSION_TAKEN "another nvidia-imex on this node owns the driver's only IMEX session"
