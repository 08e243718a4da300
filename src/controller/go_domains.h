/* SPDX-License-Identifier: Apache-2.0 */
/* go_domains: finds ComputeDomains that the Go driver formed. While a daemon claim template, a DaemonSet or a
 * daemon's Pod of such a ComputeDomain exists, the Go driver's daemons serve it on their nodes, and no other
 * node joins it. A ComputeDomainClique alone does not count, because each daemon of the Go driver may write
 * those of all ComputeDomains. controller/plan deletes these objects when the ComputeDomain has no claim any
 * more. With the next claim, this driver forms the ComputeDomain again. The facts are from the caches. */
#pragma once

#include "controller/records.h"

/* Returns whether the Go driver formed the ComputeDomain; false if `uid` is NULL or unknown. */
bool go_domains_is(const struct controller *c, const char *uid);
/* Returns whether the node has a daemon of the Go driver, or will get one because it has the label of such a
 * ComputeDomain. */
bool go_domains_occupy(const struct controller *c, const struct node *n);
