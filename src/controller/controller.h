/* SPDX-License-Identifier: Apache-2.0 */
/* controller: keeps ComputeDomains, their objects, the labels of nodes and the fabrics as they should be.
 *
 * Caches are filled from the start, also while another replica leads, so that taking over means no more than
 * looking at everything once. What changes queues keys ("d/<UID of a domain>", "n/<name of a node>"); a key's
 * handler decides by pure functions and sends what they say. Loop thread only. */
#pragma once

#include "controller/records.h"

/* Starts when kube_discover() is through. synced is called once, when all caches have been
 * filled: who leads before that knows nothing. */
void controller_start(struct controller *c, const struct config *config, struct kube_client *client,
                      struct event_recorder *events, struct metrics *metrics, void (*synced)(void *u),
                      void *u);
/* From now on we write. */
void controller_lead(struct controller *c);
void controller_stop(struct controller *c);
