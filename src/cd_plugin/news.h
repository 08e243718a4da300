/* SPDX-License-Identifier: Apache-2.0 */
/* news: what people should know of the daemons and channels on this node, though it changes nothing of the
 * claims: Events of claims, pods and the Node. */
#pragma once

#include "cd_plugin/state.h"

enum {
        NEWS_GRACE_MS = 5000 /* a daemon that leaves with its workload is no news, nor is one that is back at
                                once */
};

void news_init(struct cd *cd);
void news_done(struct cd *cd);
/* For readiness_options; u is the struct cd. */
void news_ready_lost(void *u, const char *domain_uid);
void news_session_taken(void *u);
/* A claim has been prepared: what its pods' owner should know about the channel, though it is no reason to
 * keep the pod from running. */
void news_prepared(void *u, struct op *op);
