/* SPDX-License-Identifier: Apache-2.0 */
#include "disks.h"

#include "base/stderr.h"
#include "sim.h"

STAILQ_HEAD(tasks, disk_task);

struct disk {
        struct tasks next, now;
        struct disk_task *at; /* the next task of the job */
        struct sim_event *event;
        bool running;
        void (*done)(void *u);
        void *u;
};

struct disk *disk_new(uv_loop_t *loop) {
        struct disk *d = xnew(struct disk);
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

static void drop(struct tasks *list) {
        while (!STAILQ_EMPTY(list)) {
                struct disk_task *t = STAILQ_FIRST(list);
                STAILQ_REMOVE_HEAD(list, link);
                arena_free(t->arena);
        }
}

/* Usually milliseconds; now and then the disk is busy. */
static int64_t soon_ms(void) {
        return sim_now_ms() + (sim_chance(2) ? sim_between(20, 200) : sim_between(0, 3));
}

static uint64_t n_tasks;

uint64_t disks_tasks(void) {
        return n_tasks;
}

static void on_task(void *u) {
        struct disk *d = u;
        struct disk_task *t = d->at;
        d->event = NULL;
        if (t) {
                t->r = t->run(t, &t->e);
                n_tasks++;
                d->at = STAILQ_NEXT(t, link);
                d->event = sim_at(soon_ms(), on_task, d);
                return;
        }
        d->running = false;
        d->done(d->u);
}

void disk_run(struct disk *d, void (*done)(void *u), void *u) {
        BUG_ON(d->running);
        drop(&d->now);
        STAILQ_CONCAT(&d->now, &d->next);
        if (STAILQ_EMPTY(&d->now)) {
                done(u);
                return;
        }
        d->running = true;
        d->done = done;
        d->u = u;
        d->at = STAILQ_FIRST(&d->now);
        d->event = sim_at(soon_ms(), on_task, d);
}

void disk_clear(struct disk *d) {
        BUG_ON(d->running);
        drop(&d->now);
}

bool disk_running(const struct disk *d) {
        return d->running;
}

void disk_kill(struct disk *d) {
        sim_cancel(TAKE(d->event));
        d->running = false;
}

void disk_free(struct disk *d) {
        if (!d)
                return;
        BUG_ON(d->running);
        drop(&d->next);
        drop(&d->now);
        free(d);
}
