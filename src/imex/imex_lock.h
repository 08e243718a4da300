/* SPDX-License-Identifier: Apache-2.0 */
/* imex_lock: lock files in the folder that the kubelet plugin and the daemon of a node share. A process holds
 * a lock to show the other program that it is alive. The locks are shared open-file-description locks, so
 * several processes may hold one, as during an update. The files are empty, and stay. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* The name of the daemon's lock file. The daemon holds the lock from its start until its end, also while it
 * has no state file. A daemon of an earlier version does not hold it. */
#define IMEX_DAEMON_LOCK "daemon.lock"

/* Takes the lock, and creates the file if it does not exist. The process holds the lock while the descriptor
 * *ret is open; the caller owns it. */
int imex_lock_take(const char *path, int *ret, struct err *e);
/* Finds whether a process holds the lock. ERR_NOT_FOUND: there is no file. ERR_INVALID: it is not a regular
 * file. */
int imex_lock_held(const char *path, bool *ret, struct err *e);
