/* SPDX-License-Identifier: Apache-2.0 */
/* rack: an NVLink partition under a name that stays when its nodes reboot or it is partitioned anew. Pure. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* A rack is known by the value of a Node label in lower case, with "-" for what no DNS label may hold, or, on
 * a Node without one, by the id of its clique ("<cluster UUID>.<number>"), which is the only one of the two
 * with a ".". Either is the value of the devices' attribute `rack` and of the label CD_LABEL_RACK, of 63
 * bytes at most (the limit of both). */
enum { RACK_MAX = 63 };

/* The rack of a Node; `label` and `clique` may be NULL or "". False: it is in none. */
bool rack_id(const char *label, const char *clique, char ret[static RACK_MAX + 1]);

/* The name of its ComputeDomain: the label's value, or "rack-<first 8 of the cluster's UUID>-<number>", or
 * with the `whole` UUID, where two racks would have the same name. */
void rack_domain_name(const char *id, bool whole, struct buf *out);

/* What the claim template of its ComputeDomain is called: "imex-channel-" before that. */
#define RACK_TEMPLATE_PREFIX "imex-channel-"
