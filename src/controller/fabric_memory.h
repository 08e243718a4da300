/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_memory: remembers fabric objects that were deleted, or that a restore of etcd replaced by an earlier
 * version, as far as this process has seen it. Leaders and followers remember, so that a new leader knows
 * them. The arguments `name` are the names of fabric objects, which are clique IDs. */
#pragma once

#include "controller/records.h"

/* Call this when a fabric object has changed. `was` NULL: it is new; `is` NULL: it was deleted. */
void fabric_memory_changed(struct controller *c, const struct compute_domain_fabric *was,
                           const struct compute_domain_fabric *is);
/* Returns the last version of the deleted object, until another object contains its entries; NULL: there is
 * none. The memory keeps its reference until the next change. */
const struct compute_domain_fabric *fabric_memory_lost(struct controller *c, const char *name);
/* Returns whether the object may lack assignments that daemons have, because a recount has not begun since it
 * was deleted or restored. */
bool fabric_memory_awaits_recount(struct controller *c, const char *name);
/* Returns for how many more seconds plugins may not have noticed that etcd was restored, so that their
 * reports may be those of the backup; 0: the object was not restored lately. `now`: clock_mono_s(). */
int64_t fabric_memory_restored_s(struct controller *c, const char *name, int64_t now);
void fabric_memory_done(struct controller *c);
