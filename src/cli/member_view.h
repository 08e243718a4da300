/* SPDX-License-Identifier: Apache-2.0 */
/* member_view: the members of a ComputeDomain, as a controller that has just started on the same objects sees
 * them. With imex.isolation=channel, they are the nodes with a channel of the ComputeDomain, and their
 * indices are those in the standing domain of the partition. */
#pragma once

#include "cli/view.h"
#include "rules/membership.h"

/* Describes the members from the lists of the view. Reads the lists that it needs. Returns false if one of
 * them is not complete, or the hosts run IMEX: then the conditions of the ComputeDomain are the only
 * source. */
bool member_view_make(struct view *v, const struct compute_domain *cd, struct membership *ret);
/* The facts without a check that the lists are complete. Returns their number. */
size_t member_view_facts(struct view *v, const struct compute_domain *cd, const struct member_facts **ret);
