/* SPDX-License-Identifier: Apache-2.0 */
/* shortages: gathers the facts for the condition ChannelAvailable (rules/shortage) of ComputeDomains whose
 * pods wait.
 *
 * No change of a slice or of another claim queues the waiting ComputeDomains. Each of them is looked at again
 * when its time comes, with facts that are at most a few seconds old and shared by all. The number of
 * conditions that change per second has a limit. */
#pragma once

#include "base/mem.h"
#include "controller/records.h"
#include "rules/shortage.h"

struct shortages;
struct shortages *shortages_new(void);
void shortages_free(struct shortages *s);

/* Returns the condition that the status of a ComputeDomain should have, in the arena or in the object; NULL:
 * none. *ret_recheck_s: look again after this time; 0: no need. */
const struct cd_condition *shortages_condition(struct controller *c, const struct compute_domain *cd,
                                               struct arena *a, int64_t *ret_recheck_s);
