/* SPDX-License-Identifier: Apache-2.0 */
/* orphans: reaps the child processes that the first process of a container inherits when their parents
 * end. */
#pragma once

#include "base/loop.h"

struct orphans {
        struct loop_signal sigchld;
};

/* Reaps every ended child that was not started by this process. All programs that this process starts lead
 * their own process group. */
void orphans_start(struct orphans *o, uv_loop_t *loop);
void orphans_stop(struct orphans *o);
