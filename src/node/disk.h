/* SPDX-License-Identifier: Apache-2.0 */
/* disk: changes files in a thread of libuv's pool, because changes wait for the disk and the loop must
 * continue.
 *
 * The module collects tasks and runs them as one job at a time, in one thread, in the order in which they
 * were added. A task runs even if an earlier one failed. A disk that hangs blocks only the job, not the rest
 * of the process. All functions except a task's run() must be called in the loop's thread. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"

/* The first member of a task's struct. disk_task() creates it. The task's arena holds the task and everything
 * it needs. */
struct disk_task {
        STAILQ_ENTRY(disk_task) link;
        struct arena *arena;
        /* Runs in the thread. Uses only the content of the task's arena, and strings that outlive the job. */
        int (*run)(struct disk_task *t, struct err *e);
        int r; /* the result of run(); e is set when it is below 0 */
        struct err e;
};

struct disk;

struct disk *disk_new(uv_loop_t *loop);
/* Adds a task of `size` bytes to the end of the next job, and returns it. The task is zeroed except its head.
 * Must not be called while a job runs. */
void *disk_task(struct disk *d, size_t size, int (*run)(struct disk_task *t, struct err *e));
/* Runs the tasks. Calls `done` once in the loop, never from inside this call; without tasks, calls it
 * immediately, from inside. The tasks and their results are valid until the next disk_run() or
 * disk_clear(). */
void disk_run(struct disk *d, void (*done)(void *u), void *u);
void disk_clear(struct disk *d);
bool disk_running(const struct disk *d);
/* Must not be called while a job runs. */
void disk_free(struct disk *d);
