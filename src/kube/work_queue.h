/* SPDX-License-Identifier: Apache-2.0 */
/* work_queue: calls a handler for keys that need processing. A key is queued only once, however often it is
 * added. Failed keys are retried with exponential back-off and jitter.
 *
 * The handler compares the present state with the desired state and starts writes. When a write completes,
 * the handler's owner adds the key again. The handler runs in the loop, never from inside
 * work_queue_add(). */
#pragma once

#include <stddef.h>
#include <uv.h>

struct work_queue;
typedef void(work_queue_fn)(void *u, const char *key);

struct work_queue *work_queue_new(uv_loop_t *loop, unsigned backoff_min_ms, unsigned backoff_max_ms,
                                  work_queue_fn *fn, void *u);
void work_queue_free(struct work_queue *q);                 /* allowed inside the handler */
void work_queue_add(struct work_queue *q, const char *key); /* handles the key in the next turn */
void work_queue_add_after(struct work_queue *q, const char *key,
                          unsigned ms);                       /* the earliest of several times counts */
void work_queue_retry(struct work_queue *q, const char *key); /* after the key's next back-off step, +-25 % */
void work_queue_forget(struct work_queue *q, const char *key); /* after a success: resets the back-off */
size_t work_queue_depth(
        const struct work_queue *q); /* keys that are ready, without keys that wait for their time */

/* A set of keys that wait for the same event. NULL is the empty set. */
struct work_queue_waiter;
void work_queue_waiters_add(struct work_queue_waiter **set, const char *key);
/* Adds all keys of the set to the queue, `ms` later if it is not 0, and empties the set. */
void work_queue_waiters_queue(struct work_queue_waiter **set, struct work_queue *q, unsigned ms);
void work_queue_waiters_drop(struct work_queue_waiter **set); /* empties the set */
