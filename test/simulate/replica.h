/* SPDX-License-Identifier: Apache-2.0 */
/* replica: one of the two controllers. It connects the modules as controller_main.c of the controller does,
 * several times in one process, and can be killed, stopped and restarted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { REPLICAS = 2 };

/* Call it before the first replica starts: a daemon is replaced between two ComputeDomains. */
void replicas_use_fresh_pods(void);
bool replicas_fresh_pods(void);
void replica_start(unsigned i, uv_loop_t *loop);
/* Kills the replica; it restarts a moment later. */
void replica_kill(unsigned i);
/* SIGTERM: the replica releases its Lease, and restarts after that. */
void replica_stop(unsigned i);
/* Ends all replicas for good. */
void replicas_end(void);
void replicas_dump(void);       /* logs their state, as SIGUSR2 does */
bool replica_leads(unsigned i); /* the replica considers itself the leader, and writes */
