/* SPDX-License-Identifier: Apache-2.0 */
/* agent_members: the nodes of one ComputeDomain whose IMEX agents run, from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/seated.h"

/* Those that a claim brings in, and those that a fabric lists; sorted by name, in the arena. */
size_t agent_members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                        const struct seated_facts **ret);
/* Why one of these nodes gets no agent or no place, because something cannot be written; NULL: nothing known.
 */
const char *agent_members_error(const struct controller *c, const struct seated_facts *list, size_t n);
/* How many places fabrics list for it yet; *ret_names is for people. */
size_t agent_members_left(const struct controller *c, const char *uid, struct arena *a,
                          const char **ret_names);
