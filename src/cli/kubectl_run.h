/* SPDX-License-Identifier: Apache-2.0 */
/* kubectl_run: runs kubectl for the commands that write. Only POSIX calls, as in cli/proxy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct kubectl_call {
        const char *program;       /* "kubectl", or a path */
        const char *const *common; /* the user's arguments */
        size_t n_common;
        const char *const *args;
        size_t n_args;
        struct str input;    /* its standard input */
        bool ignores_ctrl_c; /* it goes on when the user presses Ctrl-C */
};

/* Runs kubectl until it exits. Its output is discarded; the error contains the last line that it printed. */
int kubectl_run(const struct kubectl_call *c, struct err *e);

/* Starts kubectl in the background; *ret_output is a descriptor with what it prints. Returns its process ID,
 * or -1. kubectl_stop() ends it, and closes the descriptor. */
pid_t kubectl_start(const struct kubectl_call *c, int *ret_output, struct err *e);
void kubectl_stop(pid_t pid, int output);
