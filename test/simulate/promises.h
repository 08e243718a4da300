/* SPDX-License-Identifier: Apache-2.0 */
/* promises: checks that must hold for each change of the store, whatever client made it. */
#pragma once

#include "store.h"

void promises_look(enum kind k, const struct change *c);
/* true: from now on only the controllers could make changes, and they have nothing to do. */
void promises_idle(bool is);
uint64_t promises_writes(void); /* of the programs, without Leases and Events */
void promises_done(void);
