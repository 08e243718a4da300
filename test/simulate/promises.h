/* SPDX-License-Identifier: Apache-2.0 */
/* promises: what must never be seen of any change of the store, whoever made it. */
#pragma once

#include "store.h"

void promises_look(enum kind k, const struct change *c);
/* From now on nothing changes but by the controllers, and they have nothing to do. */
void promises_idle(bool is);
uint64_t promises_writes(void); /* of the programs, Leases and Events apart */
void promises_done(void);
