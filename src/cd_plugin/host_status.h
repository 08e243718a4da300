/* SPDX-License-Identifier: Apache-2.0 */
/* host_status: summarizes the answers of the host's own nvidia-imex. Pure. */
#pragma once

#include "imex/imex_ctl.h"

enum host_imex_state {
        HOST_IMEX_UNKNOWN,  /* no answer yet, or nothing to query, for nvidia-imex or its domain */
        HOST_IMEX_DOWN,     /* nvidia-imex is not READY, or its domain is DOWN */
        HOST_IMEX_DEGRADED, /* nvidia-imex is READY, but not all nodes of its domain are */
        HOST_IMEX_UP,       /* nvidia-imex is READY, and its domain is UP or not queried */
        HOST_IMEX_STATES,
};
extern const char *const host_imex_state_names[HOST_IMEX_STATES];

struct host_imex_status {
        enum host_imex_state state;
        char word[40];               /* from nvidia-imex: READY, INITIALIZING, ...; "" unknown */
        char domain[16];             /* UP, DEGRADED, DOWN; "" unknown */
        char version[64];            /* of this node's nvidia-imex; "" unknown */
        unsigned nodes, nodes_ready; /* of the domain's list; 0 when unknown */
        char reason[300];            /* why it is not UP, for people; "" when UP */
};

/* Summarizes a domain for the node of this name: fills all members except state and word, also `reason`. */
void host_status_summarize(const struct imex_ctl_domain *d, const char *node, struct host_imex_status *ret);
/* `why` is the reason when there is no word. `domain` is a summary; or zeroed except `reason` when the state
 * of the domain could not be read; or all zero when it is not queried. */
void host_status_evaluate(const char *word, const char *why, const struct host_imex_status *domain,
                          struct host_imex_status *ret);
