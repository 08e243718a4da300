/* SPDX-License-Identifier: Apache-2.0 */
/* standing: the standing IMEX domain, which our daemons run in the partition of this node for all
 * ComputeDomains: whether this node is in it, and which channels depend on it. Loop thread only. */
#pragma once

#include "cd_plugin/state.h"

/* The UID of the standing domain of this node's partition, which is also the name of its folder. False: there
 * is none, or the node is in no partition. */
bool standing_uid(const struct cd *cd, char ret[static 37]);
/* The IMEX domain that a recorded claim's channel depends on: its ComputeDomain's own, or the standing domain
 * of the channel's partition. False: not known. */
bool standing_domain_of(const struct cd *cd, const struct checkpoint_claim *entry,
                        const struct node_device *d, char ret[static 37]);

enum standing_state {
        STANDING_NOT_KNOWN,  /* the prepared claims, or the node's driver, have not been read yet */
        STANDING_NOT_JOINED, /* this node is not in it: there is no daemon, it has no assignment, or IMEX has
                           not been READY with this assignment */
        STANDING_NOT_READY,  /* its IMEX was READY, and no longer is */
        STANDING_READY
};
struct standing {
        enum standing_state state;
        char why[400];    /* when it is not READY, for people */
        char version[40]; /* of its nvidia-imex; "" unknown */
        bool terminating; /* its daemon takes no new pods, and ends after the last one (may_prepare.h) */
};
void standing_get(struct cd *cd, struct standing *ret);
