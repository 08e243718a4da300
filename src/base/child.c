/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include <signal.h>

#include "base/stderr.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/process.h"

#define DEFAULT_MAX_OUTPUT ((size_t)256 * 1024)

struct child {
        struct process *process; /* NULL: could not be started, or has ended */
        struct loop_timer timer; /* the time-out, then the grace after the kill; at once for a failed start */
        struct buf out;
        size_t max_output;
        bool timed_out;
        struct err err;
        child_done_fn *done; /* NULL: already called */
        void *u;
};

static void child_destroy(struct child *c) {
        loop_timer_done(&c->timer);
        buf_done(&c->out);
        free(c);
}

static void child_finish(struct child *c, struct child_result r) {
        child_done_fn *done = c->done;

        c->done = NULL;
        r.timed_out = c->timed_out;
        r.out = (struct str){ buf_str(&c->out), c->out.n };
        done(c->u, &r);
        child_destroy(c);
}

/* Output beyond the limit is read and dropped, so that the child does not block. */
static void child_on_output(void *u, const char *p, size_t n) {
        struct child *c = u;
        size_t room = c->max_output - c->out.n;

        buf_add(&c->out, p, n < room ? n : room);
}

static void child_on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct child *c = u;

        c->process = NULL;
        if (failed)
                c->err = *failed;
        child_finish(c, (struct child_result){ .exit_status = failed ? -1 : exit_status,
                                               .term_signal = term_signal,
                                               .err = failed ? &c->err : NULL });
}

static void child_on_timer(void *u) {
        struct child *c = u;

        if (!c->process) {
                child_finish(c, (struct child_result){ .exit_status = -1, .err = &c->err });
        } else if (!c->timed_out) {
                c->timed_out = true;
                process_kill(c->process);
                loop_timer_start(&c->timer, PROCESS_REAP_GRACE_MS);
        } else {
                /* The caller gets its answer now: it must not wait until the kernel releases the process. */
                process_free(TAKE(c->process));
                child_finish(c, (struct child_result){ .exit_status = -1, .term_signal = SIGKILL });
        }
}

struct child *child_run(uv_loop_t *loop, const struct child_options *o) {
        struct child *c = xnew(struct child);
        const struct process_options po = { .argv = o->argv,
                                            .env = o->env,
                                            .chroot = o->chroot,
                                            .output = child_on_output,
                                            .ended = child_on_ended,
                                            .u = c };

        BUG_ON(o->timeout_ms == 0);
        c->done = o->done;
        c->u = o->u;
        c->max_output = o->max_output ? o->max_output : DEFAULT_MAX_OUTPUT;
        c->out = BUF_INIT(c->max_output + 1);
        loop_timer_init(&c->timer, loop, child_on_timer, c);
        loop_timer_start(&c->timer, process_start(loop, &po, &c->process, &c->err) < 0 ? 0 : o->timeout_ms);
        return c;
}

void child_cancel(struct child *c) {
        if (!c || !c->done)
                return;
        process_free(TAKE(c->process));
        child_destroy(c);
}
