/* SPDX-License-Identifier: Apache-2.0 */
/* node_lock: excludes the plugin processes of a node from each other: flock() on <plugin dir>/pu.lock, as in
 * the Go driver.
 *
 * During an update two plugin processes run side by side. The lock is held only around changes of local
 * state, never across a call to the API or a wait. So it is nearly always free, and is then taken in the
 * loop's thread. Otherwise a helper thread waits for it. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct node_lock;

int node_lock_new(uv_loop_t *loop, const char *path, struct node_lock **ret, struct err *e);

/* True if it was free and is now ours. */
bool node_lock_try(struct node_lock *l);
/* e NULL: it is now ours. Otherwise it was not free within limit_ms (ERR_RETRY). */
typedef void(node_lock_fn)(void *u, const struct err *e);
/* After a failed try; one at a time. fn is never called from inside. */
void node_lock_wait(struct node_lock *l, unsigned limit_ms, node_lock_fn *fn, void *u);
void node_lock_release(struct node_lock *l);

/* A thread waits for the lock. It cannot be stopped, so the process must end by _exit(). */
bool node_lock_stuck(const struct node_lock *l);
void node_lock_free(struct node_lock *l);
