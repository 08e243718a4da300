/* SPDX-License-Identifier: Apache-2.0 */
/* loop: timers, next turns, descriptors and signals on libuv's loop, whose owners may go at once.
 *
 * libuv closes its handles asynchronously, so that whoever embeds one must outlive it by a turn. Here a
 * handle is memory of its own that does so in its owner's place: after x_done() no callback comes, and the
 * memory around it may be freed, also inside the callback itself. x_done() of zeroed memory, or for a second
 * time, does nothing; so do x_stop() and x_done() of what does not wait.
 *
 * They are embedded in their owner, who must not move them. Each keeps the loop running while it waits for
 * something. A callback runs in the loop's thread, never inside the call that registered it. Before
 * uv_loop_close() the loop runs once more after the last x_done(), as with libuv's own handles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct loop__handle;
typedef void(loop_fn)(void *u);

/* The loop's clock as it is now; uv_now() says how it was when the present turn began, or later. */
uint64_t loop_now_ms(uv_loop_t *loop);

/* A timer calls back once each time that it is started. */
struct loop_timer {
        struct loop__handle *h;
};

void loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u);
/* Counted from now, and not from the begin of the turn. A timer that waits is set anew. One of 0 ms that
 * starts itself again keeps libuv from polling: that is for loop_turn. */
void loop_timer_start(struct loop_timer *t, uint64_t ms);
/* At a time of the loop's clock, at once when that has passed; UINT64_MAX stops it. */
void loop_timer_at(struct loop_timer *t, uint64_t at_ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_waits(const struct loop_timer *t);
void loop_timer_done(struct loop_timer *t);

/* The next turn: calls back as soon as the present callback and those that are due have returned. Several
 * come in the order in which they were started; what one of them starts comes when the loop has looked at its
 * descriptors in between. */
struct loop_turn {
        TAILQ_ENTRY(loop_turn) link;
        struct loop__turns *turns; /* of its loop */
        loop_fn *fn;
        void *u;
        unsigned round;
        bool waits;
};

void loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u);
void loop_turn_start(struct loop_turn *t); /* one that waits keeps its place */
void loop_turn_stop(struct loop_turn *t);
void loop_turn_done(struct loop_turn *t);

/* A descriptor that can be polled, of which there is one of these at a time. It stays its owner's, who closes
 * it after loop_fd_done(), never before. */
struct loop_fd {
        struct loop__handle *h;
};

/* events: UV_READABLE and UV_WRITABLE; 0 when the kernel reports an error: then nothing is waited for, and
 * read(2) tells which. */
typedef void(loop_fd_fn)(void *u, int events);

/* 0, or a negative errno (as uv_strerror() wants it), and then there is nothing to be done. */
int loop_fd_init(struct loop_fd *f, uv_loop_t *loop, int fd, loop_fd_fn *fn, void *u);
/* Calls back whenever one of `events` is there, until it is told otherwise. */
void loop_fd_start(struct loop_fd *f, int events);
void loop_fd_done(struct loop_fd *f);

/* A signal, from the init on. */
struct loop_signal {
        struct loop__handle *h;
};

typedef void(loop_signal_fn)(void *u, int signum);

/* 0, or a negative errno, and then there is nothing to be done. */
int loop_signal_init(struct loop_signal *s, uv_loop_t *loop, int signum, loop_signal_fn *fn, void *u);
/* From now on it does not keep the loop running. */
void loop_signal_unref(struct loop_signal *s);
void loop_signal_done(struct loop_signal *s);
