/* SPDX-License-Identifier: Apache-2.0 */
/* node_lock: ensures that only one plugin process of a node changes local state at a time, with flock() on
 * <plugin dir>/pu.lock, as the Go driver does.
 *
 * During an update, two plugin processes run side by side. A process holds the lock only while it changes
 * local state, never across an API request or a wait. So the lock is nearly always free, and the loop's
 * thread takes it. Otherwise, a helper thread waits for it. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct node_lock;

int node_lock_new(uv_loop_t *loop, const char *path, struct node_lock **ret, struct err *e);

/* Tries to take the lock. Returns true if the lock was free and this process now holds it. */
bool node_lock_try(struct node_lock *l);
/* e NULL: this process now holds the lock. Otherwise the lock did not become free within limit_ms
 * (ERR_RETRY). */
typedef void(node_lock_fn)(void *u, const struct err *e);
/* Waits for the lock after a failed node_lock_try(); only one wait at a time. fn is never called from inside
 * this call. */
void node_lock_wait(struct node_lock *l, unsigned limit_ms, node_lock_fn *fn, void *u);
void node_lock_release(struct node_lock *l);

/* Returns true if a thread waits for the lock. The thread cannot be stopped, so the process must end by
 * _exit(). */
bool node_lock_stuck(const struct node_lock *l);
void node_lock_free(struct node_lock *l);
