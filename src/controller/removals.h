/* SPDX-License-Identifier: Apache-2.0 */
/* removals: requests to delete daemons, because of their template or because their node should have none.
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

/* Requests the removal of a daemon. True: the caller may delete it now, because the fabric object marks this
 * Pod, or because the Pod cannot have an assignment. */
bool removals_ask(struct controller *c, const struct daemon_pod *p, enum removals_why why);
/* Withdraws the request of this reason for the daemon on the node. */
void removals_withdraw(struct controller *c, const char *node, enum removals_why why);
/* Whether the fabric object marks the daemon. */
bool removals_marked(const struct controller *c, const struct daemon_pod *p);
/* Whether the removal is requested for this reason. */
bool removals_asked(const struct controller *c, const char *node, enum removals_why why);
/* The UID of the Pod on the node that is requested to be removed; NULL: none. */
const char *removals_on(const struct controller *c, const char *node);
void removals_done(struct controller *c);
