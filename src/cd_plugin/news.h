/* SPDX-License-Identifier: Apache-2.0 */
/* news: reports on the daemons and channels of this node that do not change claims: Events of claims, pods
 * and the Node. */
#pragma once

#include "cd_plugin/state.h"

enum {
        NEWS_GRACE_MS = 5000 /* not reported: a daemon that leaves with its workload, or is back within this
                                time */
};

void news_init(struct cd *cd);
void news_done(struct cd *cd);
/* For readiness_options; u is the struct cd. */
void news_ready_lost(void *u, const char *domain_uid);
void news_session_taken(void *u);
/* A claim has been prepared: reports problems of the channel that do not prevent the pod from running. */
void news_prepared(void *u, struct op *op);
