/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/process.h"

#define LINE_MAX_BYTES 2048

struct imex_process {
        uv_loop_t *loop;
        struct imex_process_options o;
        char **argv;
        uv_timer_t turn; /* acts on what is wanted and due */
        uv_timer_t term; /* the grace of what was told to end */
        uv_timer_t usr1; /* the rest of the interval */
        unsigned open;

        bool wanted;
        bool renew;            /* what runs is to be replaced */
        bool penalty;          /* ... after a pause */
        bool poke;             /* a SIGUSR1 is owed */
        uint64_t last_usr1_ms; /* 0: none in this life */
        unsigned pause_ms;     /* 0: the last life was stable */
        uint64_t due_ms;       /* no start before it */
        unsigned restarts;
        enum imex_process_state state;

        /* One life of the program */
        struct process *program; /* NULL: nothing runs */
        bool up;
        uint64_t started_ms;
        char line[LINE_MAX_BYTES];
        size_t line_n;
};

static void act(struct imex_process *p);

static void set_state(struct imex_process *p, enum imex_process_state s, const char *why) {
        if (p->state == s && s != IMEX_PROCESS_WAITING)
                return;
        p->state = s;
        p->o.changed(p->o.u, s, why);
}

static void on_turn(uv_timer_t *t) {
        act(t->data);
}

static void in_next_turn(struct imex_process *p) {
        uv_timer_start(&p->turn, on_turn, 0, 0);
}

/* The program's life */

static void flush_line(struct imex_process *p) {
        size_t n = p->line_n;

        p->line_n = 0;
        p->o.line(p->o.u, (struct str){ p->line, n });
}

static void on_output(void *u, const char *text, size_t n) {
        struct imex_process *p = u;

        for (size_t i = 0; i < n && p->program; i++) {
                if (text[i] == '\n') {
                        flush_line(p);
                        continue;
                }
                p->line[p->line_n++] = text[i];
                if (p->line_n == sizeof p->line)
                        flush_line(p);
        }
}

/* What the next start has to wait for. */
static void schedule_restart(struct imex_process *p) {
        p->pause_ms = p->pause_ms ? p->pause_ms * 2 : p->o.backoff_first_ms;
        if (p->pause_ms > p->o.backoff_max_ms)
                p->pause_ms = p->o.backoff_max_ms;
        p->due_ms = uv_now(p->loop) + p->pause_ms;
        in_next_turn(p);
}

/* Nothing is left to wait for. */
static void be_down(struct imex_process *p) {
        p->pause_ms = 0;
        p->due_ms = 0;
        set_state(p, IMEX_PROCESS_DOWN, "");
}

static void on_ended(void *u, int exit_status, int term_signal) {
        struct imex_process *p = u;
        char why[64];

        if (p->line_n)
                flush_line(p);
        if (!p->program) /* the owner freed us for what he read */
                return;
        p->program = NULL;
        p->poke = false;
        p->last_usr1_ms = 0;
        uv_timer_stop(&p->usr1);
        uv_timer_stop(&p->term);
        if (uv_now(p->loop) - p->started_ms >= p->o.stable_ms)
                p->pause_ms = 0;
        if (!p->wanted) {
                be_down(p);
                return;
        }
        if (p->renew && !p->penalty) {
                p->renew = false;
                in_next_turn(p);
                set_state(p, IMEX_PROCESS_WAITING, "");
                return;
        }
        p->renew = p->penalty = false;
        p->restarts++;
        schedule_restart(p);
        if (term_signal)
                snprintf(why, sizeof why, "was ended by signal %d (%s)", term_signal, strsignal(term_signal));
        else
                snprintf(why, sizeof why, "ended with exit code %d", exit_status);
        set_state(p, IMEX_PROCESS_WAITING, why);
}

static int spawn(struct imex_process *p, struct err *e) {
        const struct process_options o = {
                .argv = (const char *const *)p->argv, .output = on_output, .ended = on_ended, .u = p
        };

        p->up = false;
        p->line_n = 0;
        p->started_ms = uv_now(p->loop);
        return process_start(p->loop, &o, &p->program, e);
}

/* What should be, against what is */

static void try_start(struct imex_process *p) {
        struct err e = { 0 };
        char why[sizeof e.msg + 32];

        p->poke = false;
        if ((!p->o.prepare || p->o.prepare(p->o.u, &e) == 0) && spawn(p, &e) == 0) {
                set_state(p, IMEX_PROCESS_RUNNING, "");
                return;
        }
        p->restarts++;
        schedule_restart(p);
        snprintf(why, sizeof why, "could not be started: %s", e.msg);
        set_state(p, IMEX_PROCESS_WAITING, why);
}

static void on_term_timer(uv_timer_t *t) {
        struct imex_process *p = t->data;

        process_kill(p->program);
}

static void end_program(struct imex_process *p) {
        if (p->state == IMEX_PROCESS_ENDING)
                return;
        process_signal(p->program, SIGTERM);
        uv_timer_start(&p->term, on_term_timer, p->o.term_grace_ms, 0);
        set_state(p, IMEX_PROCESS_ENDING, "");
}

static void act(struct imex_process *p) {
        uint64_t now = uv_now(p->loop);

        if (p->program && (!p->wanted || p->renew))
                end_program(p);
        else if (!p->program && !p->wanted)
                be_down(p);
        else if (!p->program && now < p->due_ms)
                uv_timer_start(&p->turn, on_turn, p->due_ms - now, 0);
        else if (!p->program)
                try_start(p);
}

void imex_process_start(struct imex_process *p) {
        if (p->wanted)
                return;
        p->wanted = true;
        /* A program on its way out is followed by a fresh one. */
        p->renew = p->state == IMEX_PROCESS_ENDING;
        p->penalty = false;
        in_next_turn(p);
}

void imex_process_stop(struct imex_process *p) {
        p->wanted = p->renew = p->penalty = false;
        in_next_turn(p);
}

void imex_process_restart(struct imex_process *p, bool penalty) {
        p->wanted = true;
        p->renew = p->program != NULL;
        p->penalty = p->renew && penalty;
        in_next_turn(p);
}

/* SIGUSR1 */

static void on_usr1_timer(uv_timer_t *t) {
        struct imex_process *p = t->data;
        uint64_t due = p->last_usr1_ms + p->o.usr1_interval_ms, now = uv_now(p->loop);

        if (!p->poke || !p->program || !p->up || p->state != IMEX_PROCESS_RUNNING)
                return;
        if (p->last_usr1_ms && now < due) {
                uv_timer_start(&p->usr1, on_usr1_timer, due - now, 0);
                return;
        }
        p->poke = false;
        p->last_usr1_ms = now;
        process_signal(p->program, SIGUSR1);
}

void imex_process_poke(struct imex_process *p) {
        if (!p->program)
                return; /* the next start reads everything anew */
        p->poke = true;
        on_usr1_timer(&p->usr1);
}

void imex_process_up(struct imex_process *p) {
        if (!p->program || p->up)
                return;
        p->up = true;
        on_usr1_timer(&p->usr1);
}

/* Life cycle */

struct imex_process *imex_process_new(uv_loop_t *loop, const struct imex_process_options *o) {
        struct imex_process *p = xnew(struct imex_process);
        size_t n = 0;

        while (o->argv[n])
                n++;
        p->loop = loop;
        p->o = *o;
        p->argv = xnew_n(char *, n + 1);
        for (size_t i = 0; i < n; i++)
                p->argv[i] = xstrdup(o->argv[i]);
        p->o.argv = NULL;
        uv_timer_init(loop, &p->turn);
        uv_timer_init(loop, &p->term);
        uv_timer_init(loop, &p->usr1);
        p->turn.data = p->term.data = p->usr1.data = p;
        p->open = 3;
        return p;
}

static void on_closed(uv_handle_t *h) {
        struct imex_process *p = h->data;

        if (--p->open > 0)
                return;
        for (char **a = p->argv; *a; a++)
                free(*a);
        free(p->argv);
        free(p);
}

void imex_process_free(struct imex_process *p) {
        if (!p)
                return;
        process_free(TAKE(p->program));
        uv_close((uv_handle_t *)&p->turn, on_closed);
        uv_close((uv_handle_t *)&p->term, on_closed);
        uv_close((uv_handle_t *)&p->usr1, on_closed);
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

void imex_process_drain(struct imex_process *p) {
        if (p->program)
                process_drain(p->program);
}
