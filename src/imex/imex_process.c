/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "base/process.h"

#define LINE_MAX_BYTES 2048

struct imex_process {
        uv_loop_t *loop;
        struct imex_process_options o;
        struct loop_turn turn;  /* applies the desired state and due times */
        struct loop_timer due;  /* the same, when the pause has passed */
        struct loop_timer term; /* the grace after SIGTERM */
        struct loop_timer usr1; /* the rest of the interval */
        struct guard guard;

        bool wanted;
        bool renew;            /* replace the present process */
        bool penalty;          /* ... after a pause */
        bool notify;           /* a SIGUSR1 must be sent */
        uint64_t last_usr1_ms; /* 0: none since this start */
        unsigned pause_ms;     /* 0: the last process was stable */
        uint64_t due_ms;       /* no start before it */
        unsigned restarts;
        enum imex_process_state state;

        /* One process */
        struct process *program; /* NULL: nothing runs */
        bool up;
        bool killed; /* SIGKILL was necessary, or another signal ended it */
        uint64_t started_ms;
        char line[LINE_MAX_BYTES];
        size_t line_n;
};

static void imex_process_act(struct imex_process *p);

static void set_state(struct imex_process *p, enum imex_process_state s, enum imex_process_end end,
                      const char *why) {
        if (p->state == s && s != IMEX_PROCESS_WAITING)
                return;
        p->state = s;
        p->o.changed(p->o.u, s, end, why);
}

static void imex_process_leave(struct imex_process *p) {
        if (guard_leave(&p->guard))
                free(p);
}

static void imex_process_on_turn(void *u) {
        struct imex_process *p = u;

        guard_enter(&p->guard);
        imex_process_act(p);
        imex_process_leave(p);
}

/* One process of the program */

static void flush_line(struct imex_process *p) {
        size_t n = p->line_n;

        p->line_n = 0;
        p->o.line(p->o.u, (struct str){ p->line, n });
}

static void imex_process_on_output(void *u, const char *text, size_t n) {
        struct imex_process *p = u;

        guard_enter(&p->guard);
        for (size_t i = 0; i < n && p->program; i++) {
                if (text[i] == '\n') {
                        flush_line(p);
                        continue;
                }
                p->line[p->line_n++] = text[i];
                if (p->line_n == sizeof p->line)
                        flush_line(p);
        }
        imex_process_leave(p);
}

/* Sets the pause before the next start. */
static void schedule_restart(struct imex_process *p) {
        p->pause_ms = p->pause_ms ? p->pause_ms * 2 : p->o.backoff_first_ms;
        if (p->pause_ms > p->o.backoff_max_ms)
                p->pause_ms = p->o.backoff_max_ms;
        p->due_ms = uv_now(p->loop) + p->pause_ms;
        loop_turn_start(&p->turn);
}

/* Nothing runs, and nothing is wanted. */
static void set_down(struct imex_process *p) {
        p->pause_ms = 0;
        p->due_ms = 0;
        set_state(p, IMEX_PROCESS_DOWN, IMEX_PROCESS_WANTED, "");
}

static void end_life(struct imex_process *p, int exit_status, int term_signal, const struct err *failed) {
        char why[sizeof failed->msg + 32];

        if (p->line_n)
                flush_line(p);
        if (p->guard.dead) /* the owner freed us in its callback for the output */
                return;
        p->program = NULL;
        p->notify = false;
        p->last_usr1_ms = 0;
        loop_timer_stop(&p->usr1);
        loop_timer_stop(&p->term);
        if (!failed && uv_now(p->loop) - p->started_ms >= p->o.stable_ms)
                p->pause_ms = 0;
        p->killed = p->killed || (term_signal && term_signal != SIGTERM);
        if (!p->wanted) {
                set_down(p);
                return;
        }
        if (p->renew && !p->penalty) {
                p->renew = false;
                loop_turn_start(&p->turn);
                set_state(p, IMEX_PROCESS_WAITING, IMEX_PROCESS_WANTED, "");
                return;
        }
        p->renew = p->penalty = false;
        p->restarts++;
        schedule_restart(p);
        if (failed)
                snprintf(why, sizeof why, "could not be started: %s", failed->msg);
        else if (term_signal)
                snprintf(why, sizeof why, "was ended by signal %d (%s)", term_signal,
                         strsignal(term_signal));
        else
                snprintf(why, sizeof why, "ended with exit code %d", exit_status);
        set_state(p, IMEX_PROCESS_WAITING, failed ? IMEX_PROCESS_NOT_EXECUTED : IMEX_PROCESS_EXITED, why);
}

static void imex_process_on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct imex_process *p = u;

        guard_enter(&p->guard);
        end_life(p, exit_status, term_signal, failed);
        imex_process_leave(p);
}

static int spawn(struct imex_process *p, struct err *e) {
        const struct process_options o = {
                .argv = p->o.argv, .output = imex_process_on_output, .ended = imex_process_on_ended, .u = p
        };

        p->up = p->killed = false;
        p->line_n = 0;
        p->started_ms = uv_now(p->loop);
        return process_start(p->loop, &o, &p->program, e);
}

/* From the desired state to the actual one */

static void try_start(struct imex_process *p) {
        struct err e = { 0 };
        char why[sizeof e.msg + 32];

        p->notify = false;
        if ((!p->o.prepare || p->o.prepare(p->o.u, &e) == 0) && spawn(p, &e) == 0) {
                set_state(p, IMEX_PROCESS_RUNNING, IMEX_PROCESS_WANTED, "");
                return;
        }
        p->restarts++;
        schedule_restart(p);
        snprintf(why, sizeof why, "could not be started: %s", e.msg);
        set_state(p, IMEX_PROCESS_WAITING, IMEX_PROCESS_NOT_STARTED, why);
}

static void on_term_timer(void *u) {
        struct imex_process *p = u;

        p->killed = true;
        process_kill(p->program);
}

static void end_program(struct imex_process *p) {
        if (p->state == IMEX_PROCESS_ENDING)
                return;
        process_signal(p->program, SIGTERM);
        loop_timer_start(&p->term, p->o.term_grace_ms);
        set_state(p, IMEX_PROCESS_ENDING, IMEX_PROCESS_WANTED, "");
}

static void imex_process_act(struct imex_process *p) {
        loop_timer_stop(&p->due);
        if (p->program && (!p->wanted || p->renew))
                end_program(p);
        else if (!p->program && !p->wanted)
                set_down(p);
        else if (!p->program && uv_now(p->loop) < p->due_ms)
                loop_timer_at(&p->due, p->due_ms);
        else if (!p->program)
                try_start(p);
}

void imex_process_start(struct imex_process *p) {
        if (p->wanted)
                return;
        p->wanted = true;
        /* After a process that is ending, a new one is started. */
        p->renew = p->state == IMEX_PROCESS_ENDING;
        p->penalty = false;
        loop_turn_start(&p->turn);
}

void imex_process_stop(struct imex_process *p) {
        p->wanted = p->renew = p->penalty = false;
        loop_turn_start(&p->turn);
}

void imex_process_restart(struct imex_process *p, bool penalty) {
        p->wanted = true;
        p->renew = p->program != NULL;
        p->penalty = p->renew && penalty;
        loop_turn_start(&p->turn);
}

/* SIGUSR1 */

static void on_usr1_timer(void *u) {
        struct imex_process *p = u;
        uint64_t due = p->last_usr1_ms + p->o.usr1_interval_ms, now = uv_now(p->loop);

        if (!p->notify || !p->program || !p->up || p->state != IMEX_PROCESS_RUNNING)
                return;
        if (p->last_usr1_ms && now < due) {
                loop_timer_at(&p->usr1, due);
                return;
        }
        p->notify = false;
        p->last_usr1_ms = now;
        process_signal(p->program, SIGUSR1);
}

void imex_process_notify(struct imex_process *p) {
        if (!p->program)
                return; /* the next start reads everything again */
        p->notify = true;
        on_usr1_timer(p);
}

void imex_process_up(struct imex_process *p) {
        if (!p->program || p->up)
                return;
        p->up = true;
        on_usr1_timer(p);
}

/* Life cycle */

struct imex_process *imex_process_new(uv_loop_t *loop, const struct imex_process_options *o) {
        struct imex_process *p = xnew(struct imex_process);

        BUG_ON(!o->argv || !o->argv[0] || !o->line || !o->changed);
        p->loop = loop;
        p->o = *o;
        loop_turn_init(&p->turn, loop, imex_process_on_turn, p);
        loop_timer_init(&p->due, loop, imex_process_on_turn, p);
        loop_timer_init(&p->term, loop, on_term_timer, p);
        loop_timer_init(&p->usr1, loop, on_usr1_timer, p);
        return p;
}

void imex_process_free(struct imex_process *p) {
        if (!p)
                return;
        process_free(TAKE(p->program));
        loop_turn_done(&p->turn);
        loop_timer_done(&p->due);
        loop_timer_done(&p->term);
        loop_timer_done(&p->usr1);
        if (guard_free(&p->guard))
                free(p);
}

enum imex_process_state imex_process_state(const struct imex_process *p) {
        return p->state;
}

pid_t imex_process_pid(const struct imex_process *p) {
        return p->program ? process_pid(p->program) : 0;
}

unsigned imex_process_restarts(const struct imex_process *p) {
        return p->restarts;
}

bool imex_process_killed(const struct imex_process *p) {
        return p->killed;
}

void imex_process_drain(struct imex_process *p) {
        if (p->program)
                process_drain(p->program);
}
