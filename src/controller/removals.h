/* SPDX-License-Identifier: Apache-2.0 */
/* removals: records requests to delete daemons, either because a daemon has an earlier Pod template or
 * because its node should have no daemon.
 *
 * A request first leads to a mark in the fabric object: rules/assignment marks the daemon when it is idle,
 * and gives it no assignment from then on. Only a marked daemon is deleted, and every marked daemon is
 * deleted, because a mark is never withdrawn. Requests do not survive a restart, so a caller repeats its
 * request in each pass. */
#pragma once

#include <stdbool.h>

#include "controller/records.h"

enum removals_why {
        REMOVALS_TEMPLATE = 1, /* its Pod has an earlier template */
        REMOVALS_NODE = 2,     /* its node should have no daemon */
};

/* Requests the removal of a daemon. Returns true if the caller may delete its Pod now, because the fabric
 * object marks this Pod, or because the Pod cannot have an assignment. */
bool removals_ask(struct controller *c, const struct daemon_pod *p, enum removals_why why);
/* Withdraws the request for the daemon on the node that was made for this reason. */
void removals_withdraw(struct controller *c, const char *node, enum removals_why why);
/* Returns whether the fabric object marks the daemon. */
bool removals_marked(const struct controller *c, const struct daemon_pod *p);
/* Returns whether the removal of the daemon on the node is requested for this reason. */
bool removals_asked(const struct controller *c, const char *node, enum removals_why why);
/* Returns the UID of the Pod on the node whose removal is requested; NULL: none. */
const char *removals_on(const struct controller *c, const char *node);
void removals_done(struct controller *c);
