/* SPDX-License-Identifier: Apache-2.0 */
/* orphans: the first process of a container inherits the children of those that die, and nobody else reaps
 * them. */
#pragma once

#include "base/loop.h"

struct orphans {
        struct loop_signal sigchld;
};

/* Reaps every ended child that was not started by this process. All that this process starts leads a process
 * group of its own. */
void orphans_start(struct orphans *o, uv_loop_t *loop);
void orphans_stop(struct orphans *o);
