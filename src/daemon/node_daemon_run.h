/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon_run: runs the process of the daemon: the loop, signals, and orphaned child processes. */
#pragma once

#include "daemon/node_daemon.h"

/* Runs the daemon. Returns 0 after SIGTERM or SIGINT, or when the container must be restarted. Returns -1 if
 * the daemon could not start. SIGUSR2 logs the state. */
int node_daemon_run(const struct node_daemon_config *c, struct err *e);
