/* SPDX-License-Identifier: Apache-2.0 */
/* removals: daemons that the controller wants to delete, because of their template or because their node is
 * to have none. The wish goes into the partition's object first (rules/assignment), which marks an idle
 * daemon, and from then on gives it no assignment. Only a marked daemon is deleted, and each marked daemon
 * is, because a mark is never withdrawn. Wishes are not remembered across a restart: who wants a removal asks
 * for it each time it looks. */
#pragma once

#include <stdbool.h>

#include "controller/records.h"

enum removals_why {
        REMOVALS_TEMPLATE = 1, /* its Pod has an earlier template */
        REMOVALS_NODE = 2,     /* its node is to have no daemon */
};

/* Asks for the removal of a daemon. True: it is granted, because the partition's object marks this Pod, or
 * because nobody can have assigned anything to it. */
bool removals_ask(struct controller *c, const struct daemon_pod *p, enum removals_why why);
/* The daemon on the node need not go, as far as this reason is concerned. */
void removals_withdraw(struct controller *c, const char *node, enum removals_why why);
/* The partition's object marks it. */
bool removals_marked(const struct controller *c, const struct daemon_pod *p);
/* Is the removal asked for, for this reason? */
bool removals_asked(const struct controller *c, const char *node, enum removals_why why);
/* The UID of the Pod whose removal is asked for on a node, NULL: none. */
const char *removals_on(const struct controller *c, const char *node);
void removals_done(struct controller *c);
