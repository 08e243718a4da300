/* SPDX-License-Identifier: Apache-2.0 */
/* go_domains: ComputeDomains that the Go driver formed. As long as a daemon claim template, a DaemonSet, a
 * daemon Pod or a clique of such a domain exists, the Go driver's daemons serve it where they run, and no
 * other node joins it. controller/plan deletes these objects when no claim of the domain is left; its next
 * claim then forms it as a domain of ours. The facts are from the caches. */
#pragma once

#include "controller/records.h"

/* NULL or unknown: no. */
bool go_domains_is(const struct controller *c, const char *uid);
/* Has the node a daemon of the Go driver, or is it about to get one because it has the label of such a
 * domain? */
bool go_domains_hold(const struct controller *c, const struct node *n);
