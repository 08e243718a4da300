/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon_run: the process of the daemon: its loop, its signals, and orphaned child processes. */
#pragma once

#include "daemon/node_daemon.h"

/* Returns 0 after SIGTERM or SIGINT, or when the container has to start again. SIGUSR2 logs the state. -1: it
 * could not start. */
int node_daemon_run(const struct node_daemon_config *c, struct err *e);
