/* SPDX-License-Identifier: Apache-2.0 */
/* promises: checks the promises that must hold for each change of the store, whichever client made it. */
#pragma once

#include "store.h"

void promises_look(enum kind k, const struct change *c);
/* Sets whether nothing may change: only the controllers could make changes, and they have nothing to do. */
void promises_idle(bool is);
uint64_t promises_writes(void); /* number of writes of the programs, without Leases and Events */
void promises_done(void);
