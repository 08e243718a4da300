/* SPDX-License-Identifier: Apache-2.0 */
/* controller: reconciles ComputeDomains, their objects, the labels of Nodes, and fabric objects.
 *
 * A replica fills its caches from the start, even while another replica leads. So a new leader only has to
 * handle all keys once. A change queues keys (controller/records.h). The handler of a key decides with pure
 * functions, and sends the resulting writes. Loop thread only. */
#pragma once

#include "controller/records.h"

/* The options of controller_start(). The objects must stay valid until controller_stop(). */
struct controller_options {
        const struct config *config;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        void (*synced)(void *u); /* called once, when all caches are filled. Before that, the replica must not
                                    lead, because its caches are incomplete. NULL is allowed */
        void *u;
};
void controller_start(struct controller *c, const struct controller_options *o);
/* Call this when the replica has become the leader: from now on, it writes. */
void controller_lead(struct controller *c);
void controller_stop(struct controller *c);

/* Logs the caches, ComputeDomains, paused removals and writes of the controller. May be called before
 * controller_start(). */
void controller_dump(const struct controller *c);
