/* SPDX-License-Identifier: Apache-2.0 */
/* replica: one of the two controllers: what main.c of the controller wires, several times in one process, to
 * be killed, stopped and started again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { REPLICAS = 2 };

/* Before the first one starts: a daemon is replaced between two ComputeDomains. */
void replicas_use_fresh_pods(void);
bool replicas_fresh_pods(void);
void replica_start(unsigned i, uv_loop_t *loop);
/* It ends without a word, and its next life begins a moment later. */
void replica_kill(unsigned i);
/* SIGTERM: it gives its lease back, and its next life begins when it has. */
void replica_stop(unsigned i);
/* All of them, for good. */
void replicas_end(void);
void replicas_dump(void);       /* logs what they know, as SIGUSR2 does */
bool replica_leads(unsigned i); /* it believes so, and writes */
