/* SPDX-License-Identifier: Apache-2.0 */
/* replica: runs each of the two controllers. It connects the modules as controller_main.c of the controller
 * does, several times in one process, and can be killed, stopped and restarted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { REPLICAS = 2 };

/* Enables the replacement of a daemon between two ComputeDomains. Call it before the first replica starts. */
void replicas_use_fresh_pods(void);
bool replicas_fresh_pods(void);
void replica_start(unsigned i, uv_loop_t *loop);
/* Kills the replica; it restarts a moment later. */
void replica_kill(unsigned i);
/* Sends SIGTERM: the replica releases its Lease, and restarts afterwards. */
void replica_stop(unsigned i);
/* Scales the Deployment: stops all replicas, which then do not restart, or starts them. */
void replicas_scale(bool up);
/* Ends all replicas permanently. */
void replicas_end(void);
void replicas_dump(void);       /* logs their state, as SIGUSR2 does */
bool replica_leads(unsigned i); /* the replica considers itself the leader, and writes */
/* Why no controller leads. NULL: one leads. */
const char *replicas_misses(void);
