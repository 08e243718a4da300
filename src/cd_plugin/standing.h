/* SPDX-License-Identifier: Apache-2.0 */
/* standing: determines whether this node is in the standing domain, and which channels depend on it. The
 * standing domain is the IMEX domain that our daemons run in the partition of this node for all
 * ComputeDomains. Loop thread only. */
#pragma once

#include "cd_plugin/state.h"

/* Sets `ret` to the UID of the standing domain of this node's partition, which is also the name of its
 * folder. Returns false if there is no standing domain, or if the node is in no partition. */
bool standing_uid(const struct cd *cd, char ret[static 37]);
/* Sets `ret` to the UID of the IMEX domain that the channel of a recorded claim depends on: that of its
 * ComputeDomain, or the standing domain of the channel's partition. Returns false if it is not known. */
bool standing_domain_of(const struct cd *cd, const struct checkpoint_claim *entry,
                        const struct node_device *d, char ret[static 37]);

enum standing_state {
        STANDING_NOT_KNOWN,  /* the prepared claims, or the facts of the NVIDIA driver, have not been read
                                yet */
        STANDING_NOT_JOINED, /* this node is not in the domain: there is no daemon, the node has no
                                assignment, or IMEX has not been READY with this assignment */
        STANDING_NOT_READY,  /* IMEX of this node was READY, and no longer is */
        STANDING_READY
};
struct standing {
        enum standing_state state;
        char why[400];    /* if not READY: an explanation for users */
        char version[40]; /* of the node's nvidia-imex; "": unknown */
        bool terminating; /* the node's daemon accepts no new pods, and ends after the last pod
                             (may_prepare.h) */
};
void standing_get(struct cd *cd, struct standing *ret);
