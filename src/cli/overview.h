/* SPDX-License-Identifier: Apache-2.0 */
/* overview: the text of `status`, which `watch` repeats, and how it describes a ComputeDomain. */
#pragma once

#include "cli/command.h"

/* Adds the overview of the driver, the racks and the ComputeDomains to the output. Returns the exit code. */
int overview_add(struct cli *c, struct view *v);

/* Whether a person should look at the ComputeDomain, and the message that shows why; "": there is none. */
bool overview_fails(const struct view *v, const struct compute_domain *cd);
const char *overview_message(struct view *v, const struct compute_domain *cd);
/* "all found", "connecting", "some missing", or "-": not applicable. */
const char *overview_peers(const struct view *v, const struct compute_domain *cd);
/* The names of its racks; "": it has no nodes. */
const char *overview_racks(struct view *v, const struct compute_domain *cd);
