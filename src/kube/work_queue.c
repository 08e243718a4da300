/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/work_queue.h"

#include <stdbool.h>
#include <sys/queue.h>

#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/backoff.h"

#include <uthash.h>

/* The number of keys that are handled before the loop polls the network again. */
enum { BATCH = 64 };

enum item_state { ITEM_IDLE, ITEM_READY, ITEM_WAITING };

/* A key that is ready, waits, is being handled, or has failures. */
struct item {
        UT_hash_handle hh;
        struct work_queue *queue;
        TAILQ_ENTRY(item) entry; /* while READY */
        enum item_state state;
        uint64_t due_ms;
        struct loop_timer timer; /* while WAITING */
        unsigned failures;
        bool handled; /* inside its handler */
        char key[];
};

struct work_queue {
        uv_loop_t *loop;
        struct loop_turn turn;
        unsigned backoff_min_ms, backoff_max_ms;
        work_queue_fn *fn;
        void *u;
        struct item *items;
        TAILQ_HEAD(, item) ready;
        size_t n_ready;
        struct guard guard;
};

/* ---- keys ---- */

static struct item *work_queue_find(const struct work_queue *q, const char *key) {
        struct item *x;
        HASH_FIND_STR(q->items, key, x);
        return x;
}

static struct item *work_queue_find_or_add(struct work_queue *q, const char *key) {
        struct item *x = work_queue_find(q, key);
        if (!x) {
                x = xnew_keyed(struct item, key, key);
                x->queue = q;
                HASH_ADD_STR(q->items, key, x);
        }
        return x;
}

static void free_if_unused(struct work_queue *q, struct item *x) {
        if (x->state != ITEM_IDLE || x->handled || x->failures)
                return;
        HASH_DEL(q->items, x);
        free(x);
}

static void make_ready(struct item *x) {
        struct work_queue *q = x->queue;

        if (x->state == ITEM_READY)
                return;
        loop_timer_done(&x->timer);
        x->state = ITEM_READY;
        TAILQ_INSERT_TAIL(&q->ready, x, entry);
        q->n_ready++;
        if (!q->guard.dead)
                loop_turn_start(&q->turn);
}

static void work_queue_on_timer(void *u) {
        make_ready(u);
}

void work_queue_add(struct work_queue *q, const char *key) {
        make_ready(work_queue_find_or_add(q, key));
}

static void add_after(struct work_queue *q, struct item *x, unsigned ms) {
        uint64_t due = loop_now_ms(q->loop) + ms;

        if (x->state == ITEM_READY || (x->state == ITEM_WAITING && x->due_ms <= due))
                return;
        if (x->state == ITEM_IDLE)
                loop_timer_init(&x->timer, q->loop, work_queue_on_timer, x);
        x->state = ITEM_WAITING;
        x->due_ms = due;
        loop_timer_at(&x->timer, due);
}

void work_queue_add_after(struct work_queue *q, const char *key, unsigned ms) {
        add_after(q, work_queue_find_or_add(q, key), ms);
}

void work_queue_retry(struct work_queue *q, const char *key) {
        struct item *x = work_queue_find_or_add(q, key);
        x->failures++;
        add_after(q, x, backoff_ms(q->backoff_min_ms, q->backoff_max_ms, x->failures));
}

void work_queue_forget(struct work_queue *q, const char *key) {
        struct item *x = work_queue_find(q, key);
        if (!x)
                return;
        x->failures = 0;
        free_if_unused(q, x);
}

size_t work_queue_depth(const struct work_queue *q) {
        return q->n_ready;
}

/* ---- the loop ---- */

static void work_queue_destroy(struct work_queue *q);

static void work_queue_on_turn(void *u) {
        struct work_queue *q = u;
        struct item *x;
        /* Without the keys that are added in the meantime: the network is polled first. */
        size_t n = q->n_ready < BATCH ? q->n_ready : BATCH;

        guard_enter(&q->guard);
        while (n-- && !q->guard.dead && (x = TAILQ_FIRST(&q->ready))) {
                TAILQ_REMOVE(&q->ready, x, entry);
                q->n_ready--;
                x->state = ITEM_IDLE;
                x->handled = true;
                q->fn(q->u, x->key);
                x->handled = false;
                free_if_unused(q, x);
        }
        if (q->n_ready && !q->guard.dead)
                loop_turn_start(&q->turn);
        if (guard_leave(&q->guard))
                work_queue_destroy(q);
}

/* ---- the queue ---- */

struct work_queue *work_queue_new(uv_loop_t *loop, unsigned backoff_min_ms, unsigned backoff_max_ms,
                                  work_queue_fn *fn, void *u) {
        struct work_queue *q = xnew(struct work_queue);
        q->loop = loop;
        q->backoff_min_ms = backoff_min_ms;
        q->backoff_max_ms = backoff_max_ms;
        q->fn = fn;
        q->u = u;
        TAILQ_INIT(&q->ready);
        loop_turn_init(&q->turn, loop, work_queue_on_turn, q);
        return q;
}

static void work_queue_destroy(struct work_queue *q) {
        struct item *x, *next;

        HASH_ITER (hh, q->items, x, next) {
                HASH_DEL(q->items, x);
                loop_timer_done(&x->timer);
                free(x);
        }
        loop_turn_done(&q->turn);
        free(q);
}

void work_queue_free(struct work_queue *q) {
        if (q && guard_free(&q->guard))
                work_queue_destroy(q);
}

/* ---- waiters ---- */

struct work_queue_waiter {
        UT_hash_handle hh;
        char key[];
};

void work_queue_waiters_add(struct work_queue_waiter **set, const char *key) {
        struct work_queue_waiter *w;
        HASH_FIND_STR(*set, key, w);
        if (w)
                return;
        w = xnew_keyed(struct work_queue_waiter, key, key);
        HASH_ADD_STR(*set, key, w);
}

void work_queue_waiters_queue(struct work_queue_waiter **set, struct work_queue *q, unsigned ms) {
        for (const struct work_queue_waiter *w = *set; w; w = w->hh.next)
                if (ms)
                        work_queue_add_after(q, w->key, ms);
                else
                        work_queue_add(q, w->key);
        work_queue_waiters_drop(set);
}

void work_queue_waiters_drop(struct work_queue_waiter **set) {
        for (struct work_queue_waiter *w = *set, *next; w; w = next) {
                next = w->hh.next;
                HASH_DEL(*set, w);
                free(w);
        }
}
