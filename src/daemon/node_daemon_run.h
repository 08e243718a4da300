/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon_run: runs the process of the daemon: the loop, signals, and orphaned child processes. */
#pragma once

#include "base/loop.h"
#include "daemon/node_daemon.h"

/* Child processes that the first process of a container inherits when their parents end. */
struct orphans {
        struct loop_signal sigchld;
};

/* Reaps every ended child that base/process did not start. */
void orphans_start(struct orphans *o, uv_loop_t *loop);
void orphans_stop(struct orphans *o);

/* Runs the daemon. Returns 0 after SIGTERM or SIGINT, or when the container must be restarted. Returns -1 if
 * the daemon could not start. SIGUSR2 logs the state. */
int node_daemon_run(const struct node_daemon_config *c, struct err *e);
