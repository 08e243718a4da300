/* SPDX-License-Identifier: Apache-2.0 */
/* kubectl_run: starts kubectl, with the user's options in front of the arguments of a call. Only POSIX calls,
 * so that the tool also runs on macOS.
 *
 * kubectl starts with the default action of SIGPIPE. The caller of kubectl_call() ignores that signal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum {
        KUBECTL_CALL_MS = 300 * 1000, /* a user may have to log in with a browser */
        KUBECTL_OUTPUT_MAX = 16 << 20,
};

struct kubectl {
        const char *program;     /* "kubectl", or a path */
        const char *const *args; /* the user's options, which choose the cluster and the user */
        size_t n_args;
};

struct kubectl_call {
        const char *const *args; /* the first one names the subcommand */
        size_t n_args;
        struct str input;    /* the standard input */
        size_t limit;        /* bytes of each output; 0: KUBECTL_OUTPUT_MAX */
        int timeout_ms;      /* 0: KUBECTL_CALL_MS */
        bool ignores_ctrl_c; /* kubectl continues when the user presses Ctrl-C or closes the terminal */
};

struct kubectl_result {
        int status;             /* the exit status */
        struct buf out, errors; /* what it printed */
};

/* Runs kubectl until it exits. The caller frees *ret with kubectl_result_done(), also after an error.
 * ERR_RETRY: it did not end in time, and was killed. ERR_INVALID: it printed more than the limit, and was
 * killed. ERR_INTERNAL: it cannot be started, or a signal ended it. */
int kubectl_call(const struct kubectl *k, const struct kubectl_call *c, struct kubectl_result *ret,
                 struct err *e);
void kubectl_result_done(struct kubectl_result *x);

/* The same, but an exit status other than 0 is an error, too: ERR_DENIED if the API server refused the
 * request, or else ERR_INTERNAL. The error contains the last line that kubectl printed. `ret_text` NULL: the
 * output is discarded. Otherwise, the caller frees *ret_text, which has no white space at its end. */
int kubectl_run(const struct kubectl *k, const struct kubectl_call *c, char **ret_text, struct err *e);

/* Returns the error of an exit status other than 0, as kubectl_run() does. */
int kubectl_error(const struct kubectl_call *c, const struct kubectl_result *x, struct err *e);

/* Starts kubectl in the background, with an empty standard input. *ret_output is a descriptor with what it
 * prints. Its errors go to stderr. Returns its process ID, or -1. kubectl_stop() ends it, and closes the
 * descriptor. */
pid_t kubectl_start(const struct kubectl *k, const char *const *args, size_t n_args, int *ret_output,
                    struct err *e);
void kubectl_stop(pid_t pid, int output);

/* The parts that cli/proxy uses, too: a pipe that programs do not inherit; starting kubectl with these
 * descriptors (-1: those of the caller); and waiting for a process, whatever signals arrive. */
int kubectl_pipe(int ret[2], struct err *e);
pid_t kubectl_spawn(const struct kubectl *k, const struct kubectl_call *c, const int fds[3], struct err *e);
int kubectl_wait(pid_t pid); /* returns the status of waitpid() */
