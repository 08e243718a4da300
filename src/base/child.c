/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include <signal.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/process.h"

#define DEFAULT_MAX_OUTPUT ((size_t)256 * 1024)

struct child {
        struct process *process; /* NULL: could not be started, or has ended */
        uv_timer_t timer;        /* the time-out, then the grace of the killed */
        struct buf out;
        size_t max_output;
        bool timed_out;
        struct err err;
        child_done_fn *done; /* NULL: cancelled or already called */
        void *u;
};

static void on_closed(uv_handle_t *h) {
        struct child *c = h->data;

        buf_done(&c->out);
        free(c);
}

/* Answers, and frees the child when the loop lets go of its timer. */
static void finish(struct child *c, struct child_result r) {
        child_done_fn *done = c->done;

        c->done = NULL;
        r.timed_out = c->timed_out;
        r.out = (struct str){ buf_str(&c->out), c->out.n };
        uv_close((uv_handle_t *)&c->timer, on_closed);
        if (done)
                done(c->u, &r);
}

/* What exceeds the limit is read and dropped, so that the child does not block. */
static void on_output(void *u, const char *p, size_t n) {
        struct child *c = u;
        size_t room = c->max_output - c->out.n;

        buf_add(&c->out, p, n < room ? n : room);
}

static void on_ended(void *u, int exit_status, int term_signal) {
        struct child *c = u;

        c->process = NULL;
        finish(c, (struct child_result){ .exit_status = exit_status, .term_signal = term_signal });
}

/* The caller is answered without it: nobody shall wait for the kernel to let go of it. */
static void on_not_reaped(uv_timer_t *t) {
        struct child *c = t->data;

        process_free(TAKE(c->process));
        finish(c, (struct child_result){ .exit_status = -1, .term_signal = SIGKILL });
}

static void on_timeout(uv_timer_t *t) {
        struct child *c = t->data;

        c->timed_out = true;
        process_kill(c->process);
        uv_timer_start(&c->timer, on_not_reaped, PROCESS_REAP_GRACE_MS, 0);
}

static void on_start_failed(uv_timer_t *t) {
        struct child *c = t->data;

        finish(c, (struct child_result){ .exit_status = -1, .err = &c->err });
}

struct child *child_run(uv_loop_t *loop, const struct child_options *o) {
        struct child *c = xnew(struct child);
        const struct process_options po = { .argv = o->argv,
                                            .env = o->env,
                                            .chroot = o->chroot,
                                            .output = on_output,
                                            .ended = on_ended,
                                            .u = c };

        BUG_ON(o->timeout_ms == 0);
        c->done = o->done;
        c->u = o->u;
        c->max_output = o->max_output ? o->max_output : DEFAULT_MAX_OUTPUT;
        c->out = BUF_INIT(c->max_output + 1);
        uv_timer_init(loop, &c->timer);
        c->timer.data = c;
        if (process_start(loop, &po, &c->process, &c->err) < 0)
                uv_timer_start(&c->timer, on_start_failed, 0, 0);
        else
                uv_timer_start(&c->timer, on_timeout, o->timeout_ms, 0);
        return c;
}

void child_cancel(struct child *c) {
        if (!c || !c->done)
                return;
        c->done = NULL;
        process_free(TAKE(c->process));
        uv_close((uv_handle_t *)&c->timer, on_closed);
}
