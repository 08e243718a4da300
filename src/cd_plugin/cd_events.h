/* SPDX-License-Identifier: Apache-2.0 */
/* cd_events: reports problems of this node's daemons and channels as Events of claims, pods and the Node. It
 * does not change claims. */
#pragma once

#include "cd_plugin/state.h"

enum {
        CD_EVENTS_GRACE_MS = 5000 /* a daemon is not reported if it stops with its workload or is READY again
                                     within this time */
};

void cd_events_init(struct cd *cd);
void cd_events_done(struct cd *cd);
/* Callbacks for struct readiness_options; u is the struct cd. */
void cd_events_ready_lost(void *u, const char *domain_uid);
void cd_events_session_taken(void *u);
/* Reports problems of the channel of a claim that has just been prepared, if they do not prevent the pod from
 * running. */
void cd_events_prepared(void *u, struct op *op);
