/* SPDX-License-Identifier: Apache-2.0 */
/* host_status: what the answers of the host's own nvidia-imex come down to. Pure. */
#pragma once

#include "imex/imex_ctl.h"

enum host_imex_state {
        HOST_IMEX_UNKNOWN,  /* not asked yet, or nobody to ask, of the daemon or of its domain */
        HOST_IMEX_DOWN,     /* the daemon is not READY, or its domain is DOWN */
        HOST_IMEX_DEGRADED, /* the daemon is READY, some of its domain is not */
        HOST_IMEX_UP,       /* the daemon is READY, and its domain is UP, unless that is not asked for */
        HOST_IMEX_STATES,
};
extern const char *const host_imex_state_names[HOST_IMEX_STATES];

struct host_imex_status {
        enum host_imex_state state;
        char word[40];               /* the daemon's own: READY, INITIALIZING, ...; "" unknown */
        char domain[16];             /* UP, DEGRADED, DOWN; "" unknown */
        char version[64];            /* of this node's daemon; "" unknown */
        unsigned nodes, nodes_ready; /* of the domain's list; 0 when unknown */
        char reason[300];            /* why it is not UP, for people; "" when it is */
};

/* What a domain comes down to, for the node of this name; into all members but state and word, `reason` too.
 */
void host_status_summarize(const struct imex_ctl_domain *d, const char *node, struct host_imex_status *ret);
/* `why` says why there is no word; `domain` is a summary, or of a domain that could not be had zeroed but for
 * `reason`, which says why, or zeroed when nobody wants to know. */
void host_status_judge(const char *word, const char *why, const struct host_imex_status *domain,
                       struct host_imex_status *ret);
