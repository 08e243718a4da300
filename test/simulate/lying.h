/* SPDX-License-Identifier: Apache-2.0 */
/* lying: one node whose daemon writes false reports during the storm. It runs IMEX as all other daemons do,
 * but its report on its own Pod is wrong; an admission policy allows it to write the report and nothing else.
 * All promises hold for the ComputeDomains of the other nodes. In the calm its reports are true. */
#pragma once

#include <stdbool.h>

#include "server.h"

void lying_use(void);
bool lying_used(void);
/* Call it when all nodes exist: draws the node whose daemon lies. */
void lying_begin(void);
/* Now and then somebody with the daemon's token writes a false report. */
void lying_step(void);
/* Call it before a request of the client `who` is answered. If it is a report of the daemon that lies, *body
 * is replaced by a false report. */
void lying_take(const char *who, const struct asked *q, char **body);
/* From now on the reports are true. The node is drained once. It restarts if its daemon has seen an epoch
 * that is too high to count. */
void lying_calm(void);
/* Call it when nothing happens any more: until then false reports may have consequences. */
void lying_over(void);

bool lying_is(unsigned node);
/* The promises do not hold for this node now. */
bool lying_excuses(unsigned node);
/* The number of false reports. Each may change the fabric object and the ComputeDomain that it names. */
unsigned lying_count(void);
