/* SPDX-License-Identifier: Apache-2.0 */
/* child: runs a program, collects its output, and kills it after a time-out. Work that can hang or crash
 * (NVML, nvidia-imex-ctl) runs in such a child and never in our own process. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct child;

struct child_result {
        bool timed_out;  /* the program was killed at the time-out */
        int exit_status; /* -1 when a signal ended the program */
        int term_signal; /* 0 when the program exited */
        struct str out;  /* stdout and stderr merged, at most max_output bytes */
        struct err *err; /* not NULL: the program could not be started */
};

/* Called once, never from inside child_run(). The child is freed after this callback returns. */
typedef void(child_done_fn)(void *u, const struct child_result *r);

struct child_options {
        const char *const *argv; /* argv[0] is looked up in PATH of `env`, or of our environment */
        const char *const *env;  /* NULL: ours */
        const char *chroot;      /* NULL: none (needs CAP_SYS_CHROOT) */
        unsigned timeout_ms;     /* after it, the process group gets SIGKILL; must not be 0 */
        size_t max_output;       /* 0: 256 KiB */
        child_done_fn *done;
        void *u;
};

/* Starts the program. Copies the options. */
struct child *child_run(uv_loop_t *loop, const struct child_options *o);
/* Kills the program and frees the child; `done` will not be called. NULL is allowed. */
void child_cancel(struct child *c);
