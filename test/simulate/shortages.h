/* SPDX-License-Identifier: Apache-2.0 */
/* shortages: checks the condition ChannelAvailable of the ComputeDomains against the objects of the store. */
#pragma once

#include "rules/shortage.h"
#include "world_state.h"

/* What the objects show now, for the pods of this ComputeDomain. The result is valid until the next call. */
const struct shortage_facts *shortages_facts(const struct domain *d);
/* Call it regularly without faults: a condition that is no longer true must be removed. */
void shortages_look(void);
/* Returns NULL if exactly the ComputeDomains with a pod that waits for a channel have the condition, and it
 * is true; otherwise a description. Call it after nothing has happened for some time. */
const char *shortages_misses(void);
