/* SPDX-License-Identifier: Apache-2.0 */
/* batch: runs one turn of the node lock, in which the queued operations are recorded, carried out, recorded
 * again and answered together.
 *
 * A thread does the work that waits for the disk. So a batch is a chain of steps: each step is the `done` of
 * the job before it. The batch holds the lock from the first step to the last. Operations that arrive in the
 * meantime belong to the next batch. Loop thread only. */
#pragma once

#include "node/effects.h"
#include "node/node_lock.h"
#include "node/ops.h"

struct batch {
        struct claims *c;
        struct node_lock *lock;
        struct disk *disk;
        struct loop_timer expiry; /* fires when the next PrepareAborted entry can be removed */
        struct effects_unused_list unused;
        bool running;                  /* the batch holds the lock, and may wait for the disk */
        bool again;                    /* another batch is due after this one */
        bool changed;                  /* the table has changed and must be written */
        struct disk_task *written;     /* the current write */
        void (*next)(struct batch *b); /* the step after the current job */
        void (*started)(void *u, const struct err *e);
        void *started_u;
        void (*freed)(struct claims *c);
};

/* Creates the batch, and takes ownership of `lock`. */
struct batch *batch_new(struct claims *c, struct node_lock *lock);
/* Starts the first batch, which also removes files without an owner. Calls `done` once, never from inside
 * this call. */
void batch_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);
/* The function that ops_kick() runs; `u` is the claims. Takes the lock as soon as it is free, and then runs
 * all queued operations. */
loop_fn batch_run;
/* Frees the batch. Calls `freed` when the thread has finished its job, which may be inside this call. */
void batch_free(struct batch *b, void (*freed)(struct claims *c));
