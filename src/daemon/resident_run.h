/* SPDX-License-Identifier: Apache-2.0 */
/* resident_run: the process around a resident agent: its loop and its signals. */
#pragma once

#include "daemon/resident.h"

/* Returns after SIGTERM or SIGINT, or when the container is to start anew: 0. -1: it could not start. */
int resident_run(const struct resident_config *c, struct err *e);
