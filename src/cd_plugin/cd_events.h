/* SPDX-License-Identifier: Apache-2.0 */
/* cd_events: reports on the daemons and channels of this node that do not change claims: Events of claims,
 * pods and the Node. */
#pragma once

#include "cd_plugin/state.h"

enum {
        CD_EVENTS_GRACE_MS = 5000 /* not reported: a daemon that leaves with its workload, or is back within
                                this time */
};

void cd_events_init(struct cd *cd);
void cd_events_done(struct cd *cd);
/* For readiness_options; u is the struct cd. */
void cd_events_ready_lost(void *u, const char *domain_uid);
void cd_events_session_taken(void *u);
/* A claim has been prepared: reports problems of the channel that do not prevent the pod from running. */
void cd_events_prepared(void *u, struct op *op);
