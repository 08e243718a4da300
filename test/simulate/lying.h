/* SPDX-License-Identifier: Apache-2.0 */
/* lying: simulates one node whose daemon writes false reports during the storm. The daemon runs IMEX as all
 * other daemons do, but its report on its own Pod is wrong; an admission policy allows it to write only the
 * report. With assigned channels, the report of the node's plugin has false channels, too. All promises must
 * hold for the ComputeDomains of the other nodes. In the calm, the reports of the daemon are true. */
#pragma once

#include <stdbool.h>

#include "server.h"

void lying_use(void);
bool lying_used(void);
/* Draws the node whose daemon lies. Call it when all nodes exist. */
void lying_begin(void);
/* Occasionally writes a false report, as somebody with the daemon's token could. */
void lying_step(void);
/* Replaces *body by a false report if the request is a report of the daemon that lies. Call it before a
 * request of the client `who` is answered. */
void lying_take(const char *who, const struct asked *q, char **body);
/* Begins the calm: from now on the reports are true. Drains the node once. Reboots each node of its
 * partition whose daemon advises that. */
void lying_calm(void);
/* Ends the consequences of false reports: from now on, promises hold for all nodes. Call it when nothing
 * happens any more. */
void lying_over(void);

bool lying_is(unsigned node);
/* Returns true if the promises do not have to hold for this node now. */
bool lying_excuses(unsigned node);
/* Returns the number of false reports. Each may change the fabric object and the ComputeDomain that it
 * names. */
unsigned lying_count(void);
