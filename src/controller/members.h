/* SPDX-License-Identifier: Apache-2.0 */
/* members: the nodes of one ComputeDomain, from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/membership.h"

/* The nodes that a claim brings in, and those that a fabric object lists. Sorted by name, in the arena. */
size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                  const struct member_facts **ret);
/* The write error that keeps one of these nodes from getting a daemon or an assignment; NULL: none known. */
const char *members_error(const struct controller *c, const struct member_facts *list, size_t n);
/* The number of assignments of the ComputeDomain that fabric objects still list; *ret_names: on which nodes,
 * for people. */
size_t members_assigned(const struct controller *c, const char *uid, struct arena *a, const char **ret_names);
