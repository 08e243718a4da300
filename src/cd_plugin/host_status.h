/* SPDX-License-Identifier: Apache-2.0 */
/* host_status: summarizes the answers of the host's own nvidia-imex. Pure. */
#pragma once

#include "api/states.h"
#include "imex/imex_ctl.h"

struct host_imex_status {
        enum host_state state;
        enum imex_status imex;       /* as nvidia-imex reports it; IMEX_STATE_NONE: not known */
        char domain[16];             /* the state of the domain: UP, DEGRADED, DOWN; "": unknown */
        char version[64];            /* of this node's nvidia-imex; "" unknown */
        unsigned nodes, nodes_ready; /* in the domain's node list; 0: unknown */
        char reason[300];            /* an explanation for users why it is not UP; "" when UP */
};

/* Summarizes the IMEX domain as seen by the node with this name. Fills all members except `state` and `imex`,
 * including `reason`. */
void host_status_summarize(const struct imex_ctl_domain *d, const char *node, struct host_imex_status *ret);
/* Combines the state of nvidia-imex with the summary of its domain. `why` is the reason when `imex` is
 * IMEX_STATE_NONE. `domain` is a summary. If the state of the domain could not be read, only its `reason` is
 * set; if the domain is not queried, it is all zero. */
void host_status_evaluate(enum imex_status imex, const char *why, const struct host_imex_status *domain,
                          struct host_imex_status *ret);
