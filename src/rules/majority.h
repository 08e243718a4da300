/* SPDX-License-Identifier: Apache-2.0 */
/* majority: finds the values that most nodes of a partition report, and the nodes that report other values.
 * Pure.
 *
 * A single node never decides for the others. If equally many nodes report two values, the value in the
 * fabric object stays; if it is neither of the two, the smaller value counts. A node without a report does
 * not count. */
#pragma once

#include "rules/channels.h"

struct majority {
        const struct channels_node *const *nodes; /* the nodes of the partition */
        size_t n;
        int64_t channel_count;           /* 0: no node has reported it */
        const char *rack, *imex_version; /* NULL: no node has reported it */
};
/* Finds the majority values. `old` is the fabric object with the previous values; NULL: there is none. */
void majority_find(const struct channels_node *const *nodes, size_t n,
                   const struct compute_domain_fabric *old, struct majority *ret);

/* Reason and message of a condition of the fabric object, in the arena. majority_differ() makes them for
 * nodes that report other values, and majority_withhold() for nodes that offer no devices. Both return false
 * if there are no such nodes. */
struct majority_words {
        const char *reason, *message;
};
bool majority_differ(const struct majority *m, struct arena *a, struct majority_words *ret);
bool majority_withhold(const struct majority *m, struct arena *a, struct majority_words *ret);
