/* SPDX-License-Identifier: Apache-2.0 */
/* disk: changes of files that wait for the disk, made in a thread of libuv's pool while the loop goes on.
 *
 * Tasks are collected and then run, one job at a time: all of its tasks in the order in which they were
 * added, in one thread, each whatever became of those before it. A disk that hangs holds up the job, and
 * nothing else of the process. All functions but a task's run() belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"

/* The first member of what is to be done; made by disk_task(), whose arena holds it and all that it needs. */
struct disk_task {
        STAILQ_ENTRY(disk_task) link;
        struct arena *arena;
        /* In the thread: touches nothing but what the task's arena holds, and strings that outlive the job.
         */
        int (*run)(struct disk_task *t, struct err *e);
        int r; /* what run() returned; e when it is below 0 */
        struct err e;
};

struct disk;

struct disk *disk_new(uv_loop_t *loop);
/* A task of `size` bytes at the end of the next job; zeroed but for its head. Not while one runs. */
void *disk_task(struct disk *d, size_t size, int (*run)(struct disk_task *t, struct err *e));
/* Runs the tasks. `done` in the loop, once, never from inside, and at once when there is no task (from
 * inside); the tasks and their results are there until the next disk_run() or disk_clear(). */
void disk_run(struct disk *d, void (*done)(void *u), void *u);
void disk_clear(struct disk *d);
bool disk_running(const struct disk *d);
/* Not while a job runs. */
void disk_free(struct disk *d);
