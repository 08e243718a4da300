/* SPDX-License-Identifier: Apache-2.0 */
/* imex_process: keeps one program running: starts it, restarts it with a growing pause, ends it, signals it,
 * and reads its output.
 *
 * Level-triggered: the owner sets whether it should run. Nothing is called back from inside a call of this
 * module. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct imex_process;

enum imex_process_state {
        IMEX_PROCESS_DOWN, /* not wanted, and does not run */
        IMEX_PROCESS_RUNNING,
        IMEX_PROCESS_WAITING, /* it ended or could not be started; it will be started again */
        IMEX_PROCESS_ENDING,  /* SIGTERM is sent, and it still runs */
};

struct imex_process_options {
        const char *const *argv;   /* borrowed until imex_process_free(); argv[0] is looked up in PATH when it
                                      holds no slash */
        unsigned term_grace_ms;    /* after SIGTERM, then SIGKILL to its process group */
        unsigned usr1_interval_ms; /* shortest time between two SIGUSR1 */
        unsigned backoff_first_ms, backoff_max_ms; /* pause before a restart, doubled each time ... */
        unsigned stable_ms;                        /* ... until it has run for this long */
        /* Called right before each start. A failure counts as a failed start. May be NULL. */
        int (*prepare)(void *u, struct err *e);
        /* One line of output, without the line end; long lines come in pieces. All lines come before the end
         * is reported. */
        void (*line)(void *u, struct str line);
        /* The state changed. `why` continues "the program ..." ("ended with exit code 1") when the state
         * became WAITING without a call of the owner, otherwise "". */
        void (*changed)(void *u, enum imex_process_state s, const char *why);
        void *u;
};

struct imex_process *imex_process_new(uv_loop_t *loop, const struct imex_process_options *o);
/* Kills the program if it runs, and stops all callbacks. Allowed inside the callbacks, except `prepare`. NULL
 * is allowed. */
void imex_process_free(struct imex_process *p);

/* It should run: starts it in the next turn, or after the present pause. */
void imex_process_start(struct imex_process *p);
/* It should not run: SIGTERM, then SIGKILL. `changed` reports DOWN at the end (in the next turn when nothing
 * runs). */
void imex_process_stop(struct imex_process *p);
/* It should run again: ends the present process and starts another. With `penalty`, after the pause of a
 * crash. */
void imex_process_restart(struct imex_process *p, bool penalty);

/* It needs a SIGUSR1: sent at once, or when the interval since the last one has passed; never lost while the
 * process lives. It waits for imex_process_up(), because a signal before the handler is installed would end
 * the program. */
void imex_process_notify(struct imex_process *p);
/* The program has been seen to work. Reset when it ends. */
void imex_process_up(struct imex_process *p);

enum imex_process_state imex_process_state(const struct imex_process *p);
pid_t imex_process_pid(const struct imex_process *p); /* 0 when none */
unsigned imex_process_restarts(
        const struct imex_process *p); /* starts without a request of the owner, after the first one */
/* At its last stop, SIGTERM was not enough. */
bool imex_process_killed(const struct imex_process *p);
/* Reads now what it has printed so far, so that `line` has received it. */
void imex_process_drain(struct imex_process *p);
