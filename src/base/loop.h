/* SPDX-License-Identifier: Apache-2.0 */
/* loop: timers, next turns, descriptors and signals on libuv's loop, whose owners may be freed at once.
 *
 * libuv closes its handles asynchronously, so an owner that embeds one must outlive it by a turn. Here a
 * handle is separate memory that outlives the turn instead of the owner. After x_done() no callback comes,
 * and the owner's memory may be freed, also inside the callback itself. x_done() of zeroed memory, or a
 * second x_done(), does nothing. Nor do x_stop() and x_done() if nothing waits.
 *
 * They are embedded in their owner, which must not move them. Each keeps the loop running while it waits for
 * something. A callback runs in the loop's thread, never inside the call that registered it. Before
 * uv_loop_close() the loop must run once more after the last x_done(), as with libuv's own handles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct loop__handle;
typedef void(loop_fn)(void *u);

/* The loop's clock at this moment. uv_now() returns an older value, from the beginning of the turn or
 * later. */
uint64_t loop_now_ms(uv_loop_t *loop);

/* A timer calls back once for each start. */
struct loop_timer {
        struct loop__handle *h;
};

void loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u);
/* Counts from now, not from the beginning of the turn. Starting a timer that waits sets it again. A timer of
 * 0 ms that restarts itself keeps libuv from polling: use loop_turn for that. */
void loop_timer_start(struct loop_timer *t, uint64_t ms);
/* The same at a time of the loop's clock; at once when that has passed. UINT64_MAX stops the timer. */
void loop_timer_at(struct loop_timer *t, uint64_t at_ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_waits(const struct loop_timer *t);
void loop_timer_done(struct loop_timer *t);

/* The next turn: calls back as soon as the present callback, and those that are due, have returned. Several
 * come in the order in which they were started. If one of them starts another, that one comes after the loop
 * has polled its descriptors. */
struct loop_turn {
        TAILQ_ENTRY(loop_turn) link;
        struct loop__turns *turns; /* of its loop */
        loop_fn *fn;
        void *u;
        unsigned round;
        bool waits;
};

void loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u);
void loop_turn_start(struct loop_turn *t); /* if it waits already, it keeps its place */
void loop_turn_stop(struct loop_turn *t);
void loop_turn_done(struct loop_turn *t);

/* A descriptor that can be polled; only one loop_fd at a time may use it. The owner keeps it, and closes it
 * after loop_fd_done(), never before. */
struct loop_fd {
        struct loop__handle *h;
};

/* events: UV_READABLE and UV_WRITABLE; 0 when the kernel reports an error: then the loop_fd waits for
 * nothing, and read(2) returns the error. */
typedef void(loop_fd_fn)(void *u, int events);

/* 0, or a negative errno (for uv_strerror()): then no loop_fd_done() is needed. */
int loop_fd_init(struct loop_fd *f, uv_loop_t *loop, int fd, loop_fd_fn *fn, void *u);
/* Calls back whenever one of `events` is present, until the next loop_fd_start() or loop_fd_done(). */
void loop_fd_start(struct loop_fd *f, int events);
void loop_fd_done(struct loop_fd *f);

/* A signal, from its init on. */
struct loop_signal {
        struct loop__handle *h;
};

typedef void(loop_signal_fn)(void *u, int signum);

/* 0, or a negative errno: then no loop_signal_done() is needed. */
int loop_signal_init(struct loop_signal *s, uv_loop_t *loop, int signum, loop_signal_fn *fn, void *u);
/* From now on the signal does not keep the loop running. */
void loop_signal_unref(struct loop_signal *s);
void loop_signal_done(struct loop_signal *s);
