/* SPDX-License-Identifier: Apache-2.0 */
/* resident_run: the process around the daemon: its loop, its signals, and the children that others leave to
 * it. */
#pragma once

#include "daemon/resident.h"

/* Returns after SIGTERM or SIGINT, or when the container has to start again: 0. SIGUSR2 logs the state. -1:
 * it could not start. */
int resident_run(const struct resident_config *c, struct err *e);
