/* SPDX-License-Identifier: Apache-2.0 */
/* controller: reconciles ComputeDomains, their objects, the labels of Nodes, and fabric objects.
 *
 * Caches are filled from the start, also while another replica leads, so that taking over means no more than
 * looking at everything once. What changes queues keys (controller/keys.h); a key's
 * handler decides by pure functions and sends what they say. Loop thread only. */
#pragma once

#include "controller/records.h"

/* synced is called once, when all caches have been filled. It must not lead before that. */
void controller_start(struct controller *c, const struct config *config, struct kube_client *client,
                      struct event_recorder *events, struct metrics *metrics, void (*synced)(void *u),
                      void *u);
/* This replica leads: from now on it writes. */
void controller_lead(struct controller *c);
void controller_stop(struct controller *c);
