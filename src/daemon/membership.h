/* membership: what a ComputeDomainClique says to one of its daemons. Pure. */
#ifndef DAEMON_MEMBERSHIP_H
#define DAEMON_MEMBERSHIP_H

#include <stdbool.h>

#include "base/mem.h"
#include "domain/compute_domain.h"
#include "imex/imex_members.h"

struct membership {
        struct imex_members members; /* own_index < 0: IMEX must not run (yet) */
        const char *why;             /* then: the reason, for people; "" otherwise */
};

/* Strings are borrowed from the clique, the rest is from the arena. Without names IMEX cannot follow a change
 * of its list, so it is held back until the members are complete; `started`: it runs already, so they have
 * been. */
void membership_of(const struct clique *c, const char *node, bool dns_names, bool started, struct arena *a,
                   struct membership *ret);

#endif
