/* SPDX-License-Identifier: Apache-2.0 */
/* lying: one node whose daemon lies during the storm. It runs IMEX as all others do, but what it reports on
 * its own Pod is wrong: an admission policy lets it write that much and nothing else. The ComputeDomains of
 * the other nodes keep all promises. In the calm it reports the truth. */
#pragma once

#include <stdbool.h>

#include "server.h"

void lying_use(void);
bool lying_used(void);
/* When all nodes exist: draws the one that lies. */
void lying_begin(void);
/* Someone with the token of the daemon writes a lie now and then. */
void lying_step(void);
/* A request of `who` is about to be answered: a report of the daemon that lies becomes a lie. *body is
 * replaced then. */
void lying_take(const char *who, const struct asked *q, char **body);
/* From now on it reports the truth. Its node is drained once, and restarts if its daemon has seen an epoch
 * that is too high to count. */
void lying_calm(void);
/* What it has reported may have consequences until nothing happens any more. */
void lying_over(void);

bool lying_is(unsigned node);
/* What concerns this node is not promised now. */
bool lying_excuses(unsigned node);
/* How often it has lied: each lie may change the fabric object and the ComputeDomain that it names. */
unsigned lying_count(void);
