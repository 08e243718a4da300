/* SPDX-License-Identifier: Apache-2.0 */
/* imex_process: keeps one program running: starts it, restarts it with a growing pause, ends it, signals it,
 * reads what it prints.
 *
 * Level-triggered: the owner says whether it should run. Nothing is called back from inside a call of ours.
 * Loop thread only. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct imex_process;

enum imex_process_state {
        IMEX_PROCESS_DOWN, /* not wanted, not there */
        IMEX_PROCESS_RUNNING,
        IMEX_PROCESS_WAITING, /* it ended or could not be started; the next start follows by itself */
        IMEX_PROCESS_ENDING,  /* told to end, still there */
};

struct imex_process_options {
        const char *const *argv;   /* borrowed until imex_process_free(); argv[0] is looked up in PATH when it
                                      holds no slash */
        unsigned term_grace_ms;    /* SIGTERM, SIGKILL to its process group after this */
        unsigned usr1_interval_ms; /* shortest time between two SIGUSR1 */
        unsigned backoff_first_ms, backoff_max_ms; /* pause before a restart, doubled each time ... */
        unsigned stable_ms;                        /* ... until it has run for so long */
        /* Runs right before each start; failing counts as a failed start. May be NULL. */
        int (*prepare)(void *u, struct err *e);
        /* One line that it printed, without the line end; long ones come in pieces. All of them come before
         * its end is told. */
        void (*line)(void *u, struct str line);
        /* The state changed; `why` continues "the program ..." ("ended with exit code 1") when it went to
         * WAITING by itself, else "". */
        void (*changed)(void *u, enum imex_process_state s, const char *why);
        void *u;
};

struct imex_process *imex_process_new(uv_loop_t *loop, const struct imex_process_options *o);
/* Kills what runs; nothing is called back any more. Allowed inside the callbacks, but for `prepare`. NULL is
 * allowed. */
void imex_process_free(struct imex_process *p);

/* It should run: starts it in the next turn, or after the pause that is under way. */
void imex_process_start(struct imex_process *p);
/* It should not: SIGTERM, then SIGKILL. `changed` tells DOWN at the end (in the next turn when nothing runs).
 */
void imex_process_stop(struct imex_process *p);
/* It should run, anew: ends what runs and starts it again. With `penalty` the pause of a crash comes between.
 */
void imex_process_restart(struct imex_process *p, bool penalty);

/* It needs a SIGUSR1: sent at once, or as soon as the interval since the last one is over, never lost while
 * the process lives. It is kept back until imex_process_up(), because a signal that comes before its handler
 * is installed would end the program. */
void imex_process_notify(struct imex_process *p);
/* The program has been seen at work. Forgotten when it ends. */
void imex_process_up(struct imex_process *p);

enum imex_process_state imex_process_state(const struct imex_process *p);
pid_t imex_process_pid(const struct imex_process *p); /* 0 when none */
unsigned imex_process_restarts(
        const struct imex_process *p); /* starts after the first one that the owner did not ask for */
/* SIGTERM was not enough the last time that it was told to end. */
bool imex_process_killed(const struct imex_process *p);
/* Reads now what it has printed so far, so that `line` has seen it. */
void imex_process_drain(struct imex_process *p);
