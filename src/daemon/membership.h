/* SPDX-License-Identifier: Apache-2.0 */
/* membership: what a ComputeDomainClique says to one of its daemons. Pure. */
#pragma once

#include <stdbool.h>

#include "base/mem.h"
#include "imex/imex_members.h"
#include "model/clique.h"

struct membership {
        struct imex_members members; /* own_index < 0: IMEX must not run (yet) */
        const char *why;             /* then: the reason, for people; "" otherwise */
        bool unlisted;               /* the clique has no entry of ours; our index is the one that we held */
};

/* Strings are borrowed from the clique, the rest is from the arena. Without names IMEX cannot follow a change
 * of its list, so it is held back until the members are complete.
 *
 * `held`: the index that IMEX was started with last, < 0 for none. It ends when another has it, or when we
 * get another one. That our entry is missing ends nothing: somebody may have edited the clique, or a
 * controller may have written it without knowing all, and a running IMEX carries the memory of running
 * programs. */
void membership_of(const struct imex_domain *f, const char *node, bool dns_names, int64_t held,
                   struct arena *a, struct membership *ret);
