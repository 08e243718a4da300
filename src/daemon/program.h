/* SPDX-License-Identifier: Apache-2.0 */
/* program: the process around a daemon: its loop, its signals, and the children that others leave to it. */
#pragma once

#include "base/loop.h"
#include "daemon/orphans.h"

struct program {
        uv_loop_t *loop;           /* the default one */
        void *owner;               /* whom a signal is for; set before the loop runs */
        void (*stop)(void *owner); /* SIGTERM, SIGINT */
        void (*dump)(void *owner); /* SIGUSR2 */
        struct loop_signal signals[3];
        struct orphans orphans;
};

/* First of all: as the first process of a container one is sent no signal that one does not handle. */
void program_start(struct program *p, void (*stop)(void *owner), void (*dump)(void *owner));
/* As a callback, `u` is the program: ends the loop. */
void program_done(void *u);
void program_stop(struct program *p);
