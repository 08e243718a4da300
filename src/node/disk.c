/* SPDX-License-Identifier: Apache-2.0 */
#include "node/disk.h"

#include "base/stderr.h"

STAILQ_HEAD(tasks, disk_task);

struct disk {
        uv_loop_t *loop;
        uv_work_t work;
        bool running;
        struct tasks next, now; /* collected; finished or running in the thread */
        void (*done)(void *u);
        void *u;
};

struct disk *disk_new(uv_loop_t *loop) {
        struct disk *d = xnew(struct disk);
        d->loop = loop;
        STAILQ_INIT(&d->next);
        STAILQ_INIT(&d->now);
        return d;
}

void *disk_task(struct disk *d, size_t size, int (*run)(struct disk_task *t, struct err *e)) {
        struct arena *a = arena_new(4096);
        struct disk_task *t = arena_alloc(a, size);
        BUG_ON(d->running);
        t->arena = a;
        t->run = run;
        STAILQ_INSERT_TAIL(&d->next, t, link);
        return t;
}

static void disk_drop(struct tasks *list) {
        while (!STAILQ_EMPTY(list)) {
                struct disk_task *t = STAILQ_FIRST(list);
                STAILQ_REMOVE_HEAD(list, link);
                arena_free(t->arena);
        }
}

static void disk_on_work(uv_work_t *w) {
        struct disk *d = CONTAINER(w, struct disk, work);
        struct disk_task *t;
        STAILQ_FOREACH (t, &d->now, link)
                t->r = t->run(t, &t->e);
}

static void disk_on_worked(uv_work_t *w, int status /* never cancelled */) {
        struct disk *d = CONTAINER(w, struct disk, work);
        d->running = false;
        d->done(d->u);
}

void disk_run(struct disk *d, void (*done)(void *u), void *u) {
        BUG_ON(d->running);
        disk_drop(&d->now);
        STAILQ_CONCAT(&d->now, &d->next);
        if (STAILQ_EMPTY(&d->now)) {
                done(u);
                return;
        }
        d->running = true;
        d->done = done;
        d->u = u;
        BUG_ON(uv_queue_work(d->loop, &d->work, disk_on_work, disk_on_worked) < 0);
}

void disk_clear(struct disk *d) {
        BUG_ON(d->running);
        disk_drop(&d->now);
}

bool disk_running(const struct disk *d) {
        return d->running;
}

void disk_free(struct disk *d) {
        BUG_ON(d->running);
        disk_drop(&d->next);
        disk_drop(&d->now);
        free(d);
}
