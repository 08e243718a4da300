/* SPDX-License-Identifier: Apache-2.0 */
/* batch: one turn of the node lock: what is queued is recorded, carried out, recorded again and answered
 * together.
 *
 * The disk is waited for in a thread, so a batch is a chain of steps, each the `done` of the job before it;
 * the lock is held from the first to the last. What comes meanwhile is of the next batch. Loop thread only.
 */
#pragma once

#include "node/effects.h"
#include "node/node_lock.h"
#include "node/ops.h"

struct batch {
        struct claims *c;
        struct node_lock *lock;
        struct disk *disk;
        struct loop_timer expiry; /* the next PrepareAborted entry to forget */
        struct effects_leavings leavings;
        bool locking;                  /* waiting for the node lock */
        bool running;                  /* holding it, perhaps waiting for the disk */
        bool again;                    /* another batch is due after this one */
        bool changed;                  /* the table: it must be written */
        struct disk_task *written;     /* the write under way */
        void (*next)(struct batch *b); /* the step behind the job that is under way */
        uint64_t began_ns;
        void (*started)(void *u, const struct err *e);
        void *started_u;
        void (*freed)(struct claims *c);
};

/* Takes the lock. */
struct batch *batch_new(struct claims *c, struct node_lock *lock);
/* The first one, which also sweeps; `done` once, never from inside. */
void batch_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);
/* ops_kick() comes here, with the claims: takes the lock, when it can be had, and all that is queued. */
loop_fn batch_run;
/* `freed` when the thread has ended what it was doing, perhaps from inside. */
void batch_free(struct batch *b, void (*freed)(struct claims *c));
