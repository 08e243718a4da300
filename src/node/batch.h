/* SPDX-License-Identifier: Apache-2.0 */
/* batch: one turn of the node lock. The queued operations are recorded, carried out, recorded again and
 * answered together.
 *
 * A thread does the work that waits for the disk. So a batch is a chain of steps: each step is the `done` of
 * the job before it. The lock is held from the first step to the last. Operations that arrive in the meantime
 * belong to the next batch. Loop thread only. */
#pragma once

#include "node/effects.h"
#include "node/node_lock.h"
#include "node/ops.h"

struct batch {
        struct claims *c;
        struct node_lock *lock;
        struct disk *disk;
        struct loop_timer expiry; /* the next PrepareAborted entry to forget */
        struct effects_unused_list unused;
        bool locking;                  /* waits for the node lock */
        bool running;                  /* holds it, and may wait for the disk */
        bool again;                    /* another batch is due after this one */
        bool changed;                  /* the table has changed and must be written */
        struct disk_task *written;     /* the current write */
        void (*next)(struct batch *b); /* the step after the current job */
        uint64_t began_ns;
        void (*started)(void *u, const struct err *e);
        void *started_u;
        void (*freed)(struct claims *c);
};

/* Takes the lock. */
struct batch *batch_new(struct claims *c, struct node_lock *lock);
/* Starts the first batch, which also sweeps. Calls `done` once, never from inside this call. */
void batch_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);
/* The target of ops_kick(); `u` is the claims. Takes the lock as soon as it is free, and then all queued
 * operations. */
loop_fn batch_run;
/* Calls `freed` when the thread has finished its job; this may happen inside the call. */
void batch_free(struct batch *b, void (*freed)(struct claims *c));
