/* SPDX-License-Identifier: Apache-2.0 */
/* members: collects the facts about the nodes of one ComputeDomain from the caches. */
#pragma once

#include "controller/records.h"
#include "rules/membership.h"

/* Collects the nodes that a claim brings into the ComputeDomain, and those that a fabric object lists for it.
 * Returns their number; *ret is sorted by name and in the arena. */
size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                  const struct member_facts **ret);
/* Returns the write error that keeps one of these nodes from getting a daemon or an assignment; NULL: none is
 * known. */
const char *members_error(const struct controller *c, const struct member_facts *list, size_t n);
/* Returns the number of assignments of the ComputeDomain that fabric objects still list. *ret_names is the
 * text with their nodes, for people. */
size_t members_assigned(const struct controller *c, const char *uid, struct arena *a, const char **ret_names);
