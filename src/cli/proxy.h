/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: runs `kubectl proxy` on a Unix socket for the time of one command. kubectl authenticates with the
 * kubeconfig of the user, whatever plugin that needs, and starts the plugin once.
 *
 * The socket is in a new folder that only the user can enter. kubectl refuses every request except GET, and
 * those that open a stream into a pod or a node. A second process, the guard, ends kubectl and removes the
 * folder when the tool ends, even if the tool is killed: it holds the other end of a pipe. Only POSIX calls,
 * so that the tool also runs on macOS. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct proxy {
        char folder[72], socket[80];
        int pipe; /* closing it ends kubectl */
        pid_t guard;
};

/* Starts kubectl with these additional arguments, and waits until it serves. `program` is "kubectl" or a
 * path. The error contains the last line that kubectl printed. */
int proxy_start(struct proxy *p, const char *program, const char *const *args, size_t n_args, struct err *e);
/* Ends kubectl, and waits until the folder is removed. */
void proxy_stop(struct proxy *p);
/* Connects to the socket; returns the descriptor, or -1. */
int proxy_connect(const struct proxy *p, struct err *e);

/* Runs kubectl with these arguments, and returns what it prints in *ret, without white space at the end. The
 * caller frees it. ERR_INTERNAL if it does not exit with 0. */
int proxy_run(const char *program, const char *const *args, size_t n_args, char **ret, struct err *e);
