/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: runs `kubectl proxy` on a Unix socket for the time of one command. kubectl authenticates with the
 * kubeconfig of the user, whatever plugin that needs, and starts the plugin once.
 *
 * The socket is in a new folder that only the user can enter. kubectl refuses every request except GET, and
 * those that open a stream into a pod or a node. A second process, the guard, ends kubectl and removes the
 * folder when the tool ends, even if the tool is killed: it holds the other end of a pipe. Only POSIX calls,
 * so that the tool also runs on macOS. */
#pragma once

#include <sys/types.h>

#include "cli/kubectl_run.h"

struct proxy {
        char folder[72], socket[80];
        int pipe; /* closing it ends kubectl */
        pid_t guard;
};

/* Starts kubectl, and waits until it serves. kubectl's errors go to stderr, and the returned one
 * contains the first line of its output. */
int proxy_start(struct proxy *p, const struct kubectl *k, struct err *e);
/* Ends kubectl, and waits until the folder is removed. */
void proxy_stop(struct proxy *p);
/* Connects to the socket; returns the descriptor, or -1. */
int proxy_connect(const struct proxy *p, struct err *e);
