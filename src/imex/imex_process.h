/* SPDX-License-Identifier: Apache-2.0 */
/* imex_process: keeps one program running: starts it, restarts it after a growing pause, ends it, sends it
 * signals, and reads its output.
 *
 * Level-triggered: the owner sets whether the program should run. No callback runs inside a call of this
 * module. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct imex_process;

enum imex_process_state {
        IMEX_PROCESS_DOWN, /* the program should not run, and does not run */
        IMEX_PROCESS_RUNNING,
        IMEX_PROCESS_WAITING, /* the program ended or could not be started; it will be started again */
        IMEX_PROCESS_ENDING,  /* the program got SIGTERM, and is still running */
};

/* Why a process has ended without a call of the owner. */
enum imex_process_end {
        IMEX_PROCESS_WANTED,       /* the owner has called */
        IMEX_PROCESS_EXITED,       /* or was ended by a signal */
        IMEX_PROCESS_NOT_STARTED,  /* such as for a failure of `prepare` */
        IMEX_PROCESS_NOT_EXECUTED, /* the system cannot execute the file, or there is no such file */
};

struct imex_process_options {
        const char *const *argv;   /* borrowed until imex_process_free(); argv[0] is looked up in PATH when it
                                      contains no slash */
        unsigned term_grace_ms;    /* time between SIGTERM and SIGKILL to the process group */
        unsigned usr1_interval_ms; /* shortest time between two SIGUSR1 */
        unsigned backoff_first_ms, backoff_max_ms; /* pause before a restart, doubled each time ... */
        unsigned stable_ms;                        /* ... until the program has run for this long */
        /* Called right before each start. A failure counts as a failed start. May be NULL. */
        int (*prepare)(void *u, struct err *e);
        /* Called for each line of output, without the line end; long lines are passed in pieces. All lines
         * are passed before the end of the program is reported. */
        void (*line)(void *u, struct str line);
        /* Called when the state has changed. If the state became WAITING without a call of the owner, `end`
         * is the cause, and `why` continues the sentence "the program ..." ("ended with exit code 1");
         * otherwise `why` is "". */
        void (*changed)(void *u, enum imex_process_state s, enum imex_process_end end, const char *why);
        void *u;
};

struct imex_process *imex_process_new(uv_loop_t *loop, const struct imex_process_options *o);
/* Kills the program if it is running, and stops all callbacks. Allowed inside the callbacks, except
 * `prepare`. NULL is allowed. */
void imex_process_free(struct imex_process *p);

/* Starts the program in the next turn, or after the present pause, and keeps it running. */
void imex_process_start(struct imex_process *p);
/* Ends the program with SIGTERM, later SIGKILL, and does not restart it. `changed` reports DOWN at the end
 * (in the next turn if the program is not running). */
void imex_process_stop(struct imex_process *p);
/* Ends the present process and starts another: at once, or with `penalty` after the same pause as after a
 * crash. */
void imex_process_restart(struct imex_process *p, bool penalty);

/* Sends SIGUSR1 to the program, at once or when the interval since the last SIGUSR1 has passed. The signal is
 * never lost while the process lives. It is not sent before imex_process_up(), because a signal before the
 * program has installed its handler would end the program. */
void imex_process_notify(struct imex_process *p);
/* Reports that the program works, so that it may get SIGUSR1. Reset when the program ends. */
void imex_process_up(struct imex_process *p);

enum imex_process_state imex_process_state(const struct imex_process *p);
pid_t imex_process_pid(const struct imex_process *p); /* 0 when none */
unsigned imex_process_restarts(
        const struct imex_process *p); /* number of restarts that the owner did not request */
/* Returns whether SIGKILL was necessary when the program was last stopped, or whether a signal other than
 * SIGTERM ended it (a crash, the OOM killer). */
bool imex_process_killed(const struct imex_process *p);
/* Reads the output that the program has printed so far, and passes it to `line` before it returns. */
void imex_process_drain(struct imex_process *p);
