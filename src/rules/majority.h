/* SPDX-License-Identifier: Apache-2.0 */
/* majority: what most nodes of a fabric say of themselves, and who says otherwise. Pure.
 *
 * No single node decides for the others: of two values that as many nodes state, the one that is said already
 * stays, else the smaller one counts, and who has told nothing counts for none. */
#pragma once

#include "rules/channels.h"

struct majority {
        const struct channels_node *const *nodes; /* of the fabric */
        size_t n;
        int64_t channel_count;           /* 0: nobody has told */
        const char *rack, *imex_version; /* NULL: nobody has told */
};
/* `old` is the fabric's object, which stands for what is said already; NULL: there is none. */
void majority_find(const struct channels_node *const *nodes, size_t n,
                   const struct compute_domain_fabric *old, struct majority *ret);

/* What a person should know of the nodes that say otherwise, and of those that offer no devices, as a
 * condition of the fabric: its reason and message, in the arena. False: there are none. */
struct majority_words {
        const char *reason, *message;
};
bool majority_differ(const struct majority *m, struct arena *a, struct majority_words *ret);
bool majority_withhold(const struct majority *m, struct arena *a, struct majority_words *ret);
