/* SPDX-License-Identifier: Apache-2.0 */
/* watch: what is watched, and which keys and seats a change concerns. */
#pragma once

#include "controller/records.h"

/* Once. The caches of daemons too, where we run them. */
void watch_start(struct controller *c);
/* No effect when they are watched. */
void watch_daemons(struct controller *c);
/* What agents need: their own objects, and the fabrics. No effect when they are watched. */
void watch_agents(struct controller *c);
void watch_stop(struct controller *c);
/* Everything is to be looked at once. */
void watch_queue_all(struct controller *c);
