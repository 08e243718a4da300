/* SPDX-License-Identifier: Apache-2.0 */
/* standing: the IMEX domain that daemons of ours run in the fabric of this node for all ComputeDomains:
 * whether this node is in it, and whose channels count on it. Loop thread only. */
#pragma once

#include "cd_plugin/state.h"

/* The domain of this node's fabric, by what takes the place of a ComputeDomain's UID, also as the name of its
 * folder. False: there is none, or the node is in no fabric. */
bool standing_uid(const struct cd *cd, char ret[static 37]);
/* The IMEX domain that a recorded claim's channel counts on: its ComputeDomain's own, or that of the fabric
 * that the channel is of. False: nobody knows. */
bool standing_domain_of(const struct cd *cd, const struct checkpoint_claim *entry,
                        const struct node_device *d, char ret[static 37]);

enum standing_state {
        STANDING_NOT_KNOWN, /* the prepared claims, or the node's driver, have not been looked at yet */
        STANDING_APART, /* this node is not in it: there is no daemon, it has no assignment, or IMEX has not
                           been READY with this one */
        STANDING_NOT_READY, /* its IMEX was READY, and is not any more */
        STANDING_READY
};
struct standing {
        enum standing_state state;
        char why[400];    /* when it is not READY, for people */
        char version[40]; /* of its nvidia-imex; "" unknown */
        bool terminating; /* its daemon takes no new pods, and ends after the last one (may_prepare.h) */
};
void standing_get(struct cd *cd, struct standing *ret);
