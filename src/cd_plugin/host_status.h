/* SPDX-License-Identifier: Apache-2.0 */
/* host_status: summarizes the answers of the host's own nvidia-imex. Pure. */
#pragma once

#include "imex/imex_ctl.h"

enum host_imex_state {
        HOST_IMEX_UNKNOWN,  /* no answer yet, or nothing to query, for nvidia-imex or for its domain */
        HOST_IMEX_DOWN,     /* nvidia-imex is not READY, or its domain is DOWN */
        HOST_IMEX_DEGRADED, /* nvidia-imex is READY, but not all nodes of its domain are */
        HOST_IMEX_UP,       /* nvidia-imex is READY, and its domain is UP or not queried */
        HOST_IMEX_STATES,
};
extern const char *const host_imex_state_names[HOST_IMEX_STATES];

struct host_imex_status {
        enum host_imex_state state;
        char word[40];               /* the state that nvidia-imex reports: READY, INITIALIZING, ...; "":
                                        unknown */
        char domain[16];             /* the state of the domain: UP, DEGRADED, DOWN; "": unknown */
        char version[64];            /* of this node's nvidia-imex; "" unknown */
        unsigned nodes, nodes_ready; /* in the domain's node list; 0: unknown */
        char reason[300];            /* an explanation for users why it is not UP; "" when UP */
};

/* Summarizes the IMEX domain as seen by the node with this name. Fills all members except `state` and `word`,
 * including `reason`. */
void host_status_summarize(const struct imex_ctl_domain *d, const char *node, struct host_imex_status *ret);
/* Combines the state `word` of nvidia-imex with the summary of its domain. `why` is the reason when `word` is
 * empty. `domain` is a summary. If the state of the domain could not be read, only its `reason` is set; if
 * the domain is not queried, it is all zero. */
void host_status_evaluate(const char *word, const char *why, const struct host_imex_status *domain,
                          struct host_imex_status *ret);
