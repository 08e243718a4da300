/* SPDX-License-Identifier: Apache-2.0 */
/* members: the nodes of one ComputeDomain, from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/membership.h"

/* Those that a claim brings in, and those that a partition's object lists; sorted by name, in the arena. */
size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                  const struct member_facts **ret);
/* Why one of these nodes gets no daemon or no assignment, because something cannot be written; NULL: nothing
 * known. */
const char *members_error(const struct controller *c, const struct member_facts *list, size_t n);
/* How many assignments of the domain the objects of partitions still list; *ret_names is for people. */
size_t members_assigned(const struct controller *c, const char *uid, struct arena *a, const char **ret_names);
