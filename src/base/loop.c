/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include "base/magic.h"
#include "base/mem.h"

/* The memory that libuv holds, freed when libuv has closed it. The owner knows it until x_done() only. */
struct loop__handle {
        unsigned magic;
        union {
                uv_handle_t any;
                uv_timer_t timer;
                uv_poll_t poll;
                uv_signal_t signal;
        } uv;
        union {
                loop_fn *timer;
                loop_fd_fn *fd;
                loop_signal_fn *signal;
        } fn;
        void *u;
};

enum { HANDLE_MAGIC = 0x10093a7d };

static struct loop__handle *handle_of(void *data) {
        return MAGIC_CAST(struct loop__handle, data, HANDLE_MAGIC);
}

static struct loop__handle *handle_new(void *u) {
        struct loop__handle *h = xnew(struct loop__handle);
        h->magic = HANDLE_MAGIC;
        h->uv.any.data = h;
        h->u = u;
        return h;
}

static void on_closed(uv_handle_t *uv) {
        struct loop__handle *h = handle_of(uv->data);
        h->magic = 0;
        free(h);
}

static void handle_done(struct loop__handle **h) {
        if (*h)
                uv_close(&TAKE(*h)->uv.any, on_closed);
}

uint64_t loop_now_ms(uv_loop_t *loop) {
        uv_update_time(loop);
        return uv_now(loop);
}

/* ---- timers ---- */

static void loop_on_timer(uv_timer_t *uv) {
        struct loop__handle *h = handle_of(uv->data);
        h->fn.timer(h->u);
}

void loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u) {
        t->h = handle_new(u);
        t->h->fn.timer = fn;
        uv_timer_init(loop, &t->h->uv.timer);
}

void loop_timer_start(struct loop_timer *t, uint64_t ms) {
        uv_update_time(t->h->uv.any.loop);
        uv_timer_start(&t->h->uv.timer, loop_on_timer, ms, 0);
}

void loop_timer_at(struct loop_timer *t, uint64_t at_ms) {
        /* Uses the clock that uv_timer_start() counts from, so the timer is due at the same time whenever
         * this is called. */
        uint64_t now = uv_now(t->h->uv.any.loop);
        if (at_ms == UINT64_MAX)
                loop_timer_stop(t);
        else
                uv_timer_start(&t->h->uv.timer, loop_on_timer, at_ms > now ? at_ms - now : 0, 0);
}

void loop_timer_stop(struct loop_timer *t) {
        if (t->h)
                uv_timer_stop(&t->h->uv.timer);
}

bool loop_timer_waits(const struct loop_timer *t) {
        return t->h && uv_is_active(&t->h->uv.any);
}

void loop_timer_done(struct loop_timer *t) {
        handle_done(&t->h);
}

/* ---- next turns ---- */

/* All turns of a loop share one idle handle. libuv calls it once between two polls, and does not wait in the
 * poll while it is active. Several handles would be called in the wrong order. */
struct loop__turns {
        LIST_ENTRY(loop__turns) link;
        TAILQ_HEAD(, loop_turn) waiting;
        uv_idle_t idle;
        unsigned users;
        unsigned round; /* separates turns that were started before from those that callbacks start */
};

static LIST_HEAD(, loop__turns) all_turns = LIST_HEAD_INITIALIZER(all_turns);

static void on_idle(uv_idle_t *idle) {
        struct loop__turns *s = idle->data;
        unsigned round = ++s->round;
        struct loop_turn *t;
        while ((t = TAILQ_FIRST(&s->waiting)) && t->round != round) {
                loop_turn_stop(t);
                t->fn(t->u);
        }
}

static void on_idle_closed(uv_handle_t *uv) {
        free(uv->data);
}

void loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u) {
        struct loop__turns *s;
        LIST_FOREACH (s, &all_turns, link)
                if (s->idle.loop == loop)
                        break;
        if (!s) {
                s = xnew(struct loop__turns);
                TAILQ_INIT(&s->waiting);
                LIST_INSERT_HEAD(&all_turns, s, link);
                uv_idle_init(loop, &s->idle);
                s->idle.data = s;
        }
        s->users++;
        *t = (struct loop_turn){ .turns = s, .fn = fn, .u = u };
}

void loop_turn_start(struct loop_turn *t) {
        struct loop__turns *s = t->turns;
        if (t->waits)
                return;
        t->waits = true;
        t->round = s->round;
        TAILQ_INSERT_TAIL(&s->waiting, t, link);
        uv_idle_start(&s->idle, on_idle);
}

void loop_turn_stop(struct loop_turn *t) {
        struct loop__turns *s = t->turns;
        if (!t->waits)
                return;
        t->waits = false;
        TAILQ_REMOVE(&s->waiting, t, link);
        if (TAILQ_EMPTY(&s->waiting))
                uv_idle_stop(&s->idle);
}

void loop_turn_done(struct loop_turn *t) {
        struct loop__turns *s = t->turns;
        if (!s)
                return;
        loop_turn_stop(t);
        t->turns = NULL;
        if (--s->users)
                return;
        LIST_REMOVE(s, link);
        uv_close((uv_handle_t *)&s->idle, on_idle_closed);
}

/* ---- descriptors ---- */

static void on_fd(uv_poll_t *uv, int status, int events) {
        struct loop__handle *h = handle_of(uv->data);
        h->fn.fd(h->u, status < 0 ? 0 : events);
}

int loop_fd_init(struct loop_fd *f, uv_loop_t *loop, int fd, loop_fd_fn *fn, void *u) {
        struct loop__handle *h = handle_new(u);
        int r = uv_poll_init(loop, &h->uv.poll, fd);
        f->h = NULL;
        if (r < 0) {
                free(h);
                return r;
        }
        h->fn.fd = fn;
        f->h = h;
        return 0;
}

void loop_fd_start(struct loop_fd *f, int events) {
        uv_poll_start(&f->h->uv.poll, events, on_fd);
}

void loop_fd_done(struct loop_fd *f) {
        handle_done(&f->h);
}

/* ---- signals ---- */

static void loop_on_signal(uv_signal_t *uv, int signum) {
        struct loop__handle *h = handle_of(uv->data);
        h->fn.signal(h->u, signum);
}

int loop_signal_init(struct loop_signal *s, uv_loop_t *loop, int signum, loop_signal_fn *fn, void *u) {
        struct loop__handle *h = handle_new(u);
        int r = uv_signal_init(loop, &h->uv.signal);
        s->h = NULL;
        if (r < 0) {
                free(h);
                return r;
        }
        h->fn.signal = fn;
        s->h = h;
        r = uv_signal_start(&h->uv.signal, loop_on_signal, signum);
        if (r < 0)
                loop_signal_done(s);
        return r;
}

void loop_signal_unref(struct loop_signal *s) {
        if (s->h)
                uv_unref(&s->h->uv.any);
}

void loop_signal_done(struct loop_signal *s) {
        handle_done(&s->h);
}
