/* SPDX-License-Identifier: Apache-2.0 */
/* loop: provides timers, next turns, descriptors and signals on libuv's loop. Their owners may be freed at
 * once.
 *
 * libuv closes its handles asynchronously, so the owner of an embedded libuv handle must stay allocated for
 * one more turn. This module allocates the libuv handles separately, so that the owner need not. After
 * x_done() no callback runs, and the owner's memory may be freed, also inside the callback itself. x_done()
 * does nothing for zeroed memory or when called again. x_stop() and x_done() do nothing if nothing waits.
 *
 * The owner embeds these structs and must not move them. Each keeps the loop running while it waits for
 * something. A callback runs in the loop's thread, never inside the call that registered it. After the last
 * x_done(), the loop must run once more before uv_loop_close(), as with libuv's own handles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct loop__handle;
typedef void(loop_fn)(void *u);

/* Returns the loop's clock at this moment. uv_now() returns an older value, from the beginning of the turn or
 * later. */
uint64_t loop_now_ms(uv_loop_t *loop);

/* A timer calls back once for each start. */
struct loop_timer {
        struct loop__handle *h;
};

void loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u);
/* Starts the timer. The time counts from now, not from the beginning of the turn. If the timer is already
 * waiting, the new time replaces the old one. A timer of 0 ms that restarts itself keeps libuv from polling:
 * use loop_turn instead. */
void loop_timer_start(struct loop_timer *t, uint64_t ms);
/* Starts the timer for a time of the loop's clock. If that time has passed, the timer fires at once.
 * UINT64_MAX stops the timer. */
void loop_timer_at(struct loop_timer *t, uint64_t at_ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_waits(const struct loop_timer *t);
void loop_timer_done(struct loop_timer *t);

/* A callback in the next turn: runs as soon as the present callback, and the callbacks that are due, have
 * returned. Several loop_turns run in the order in which they were started. A loop_turn that another one
 * starts runs after the loop has polled its descriptors. */
struct loop_turn {
        TAILQ_ENTRY(loop_turn) link;
        struct loop__turns *turns; /* all turns of the loop */
        loop_fn *fn;
        void *u;
        unsigned round;
        bool waits;
};

void loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u);
void loop_turn_start(struct loop_turn *t); /* a turn that already waits keeps its place */
void loop_turn_stop(struct loop_turn *t);
void loop_turn_done(struct loop_turn *t);

/* Polls a descriptor. Only one loop_fd at a time may use the descriptor. The owner keeps the descriptor, and
 * closes it after loop_fd_done(), never before. */
struct loop_fd {
        struct loop__handle *h;
};

/* `events` is a set of UV_READABLE and UV_WRITABLE. It is 0 if the kernel reports an error: then the loop_fd
 * stops waiting, and read(2) returns the error. */
typedef void(loop_fd_fn)(void *u, int events);

/* Returns 0, or a negative errno (for uv_strerror()). After a failure, loop_fd_done() is not needed. */
int loop_fd_init(struct loop_fd *f, uv_loop_t *loop, int fd, loop_fd_fn *fn, void *u);
/* Calls back whenever one of `events` is present, until the next loop_fd_start() or loop_fd_done(). */
void loop_fd_start(struct loop_fd *f, int events);
void loop_fd_done(struct loop_fd *f);

/* Calls back for each signal, from loop_signal_init() on. */
struct loop_signal {
        struct loop__handle *h;
};

typedef void(loop_signal_fn)(void *u, int signum);

/* Returns 0, or a negative errno. After a failure, loop_signal_done() is not needed. */
int loop_signal_init(struct loop_signal *s, uv_loop_t *loop, int signum, loop_signal_fn *fn, void *u);
/* Stops the signal from keeping the loop running. */
void loop_signal_unref(struct loop_signal *s);
void loop_signal_done(struct loop_signal *s);
