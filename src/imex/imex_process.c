#include "imex/imex_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define LINE_MAX_BYTES 2048
/* More than a full pipe, and an end to a program that never stops printing. */
#define READS_PER_TURN 32

/* One life of the program. It outlives the owner until libuv has closed its handles. */
struct run {
        struct imex_process *owner; /* NULL: abandoned */
        uv_process_t proc;
        uv_poll_t output;
        uv_timer_t kill_timer;
        unsigned open;
        int out_fd; /* -1: closed */
        bool ended;
        bool up;
        uint64_t started_ms;
        char line[LINE_MAX_BYTES];
        size_t line_n;
};

struct imex_process {
        uv_loop_t *loop;
        struct imex_process_options o;
        char **argv;
        uv_timer_t turn; /* acts on `wanted`, and the pause before a restart */
        uv_timer_t usr1; /* the rest of the interval */
        unsigned open;

        bool wanted;
        bool renew;            /* what runs is to be replaced */
        bool penalty;          /* ... after a pause */
        bool poke;             /* a SIGUSR1 is owed */
        uint64_t last_usr1_ms; /* 0: none in this life */
        unsigned pause_ms;     /* 0: the last life was stable */
        unsigned restarts;
        enum imex_process_state state;
        struct run *run;
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

static void on_run_closed(uv_handle_t *h) {
        struct run *r = h->data;

        if (--r->open == 0)
                free(r);
}

static void stop_output(struct run *r) {
        if (r->out_fd < 0)
                return;
        uv_close((uv_handle_t *)&r->output, on_run_closed);
        close(r->out_fd);
        r->out_fd = -1;
}

static void flush_line(struct run *r) {
        size_t n = r->line_n;

        r->line_n = 0;
        if (r->owner)
                r->owner->o.line(r->owner->o.u, (struct str){ r->line, n });
}

static void take_output(struct run *r, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (p[i] == '\n') {
                        flush_line(r);
                        continue;
                }
                r->line[r->line_n++] = p[i];
                if (r->line_n == sizeof r->line)
                        flush_line(r);
        }
}

static void read_output(struct run *r) {
        char tmp[4096];

        for (unsigned i = 0; i < READS_PER_TURN && r->out_fd >= 0; i++) {
                ssize_t n = read(r->out_fd, tmp, sizeof tmp);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        if (r->line_n)
                                flush_line(r);
                        stop_output(r);
                        return;
                }
                take_output(r, tmp, (size_t)n);
        }
}

static void on_output(uv_poll_t *h, int status, int events) {
        (void)status;
        (void)events;
        read_output(h->data);
}

/* What the next start has to wait for. */
static void schedule_restart(struct imex_process *p) {
        p->pause_ms = p->pause_ms ? p->pause_ms * 2 : p->o.backoff_first_ms;
        if (p->pause_ms > p->o.backoff_max_ms)
                p->pause_ms = p->o.backoff_max_ms;
        uv_timer_start(&p->turn, on_turn, p->pause_ms, 0);
}

static void close_run(struct run *r) {
        stop_output(r);
        uv_close((uv_handle_t *)&r->kill_timer, on_run_closed);
        uv_close((uv_handle_t *)&r->proc, on_run_closed);
}

static void on_ended(uv_process_t *proc, int64_t status, int signum) {
        struct run *r = proc->data;
        struct imex_process *p = r->owner;
        char why[64];

        /* Children that it may have left would keep the ports, and the driver's session. */
        kill(-proc->pid, SIGKILL);
        r->ended = true;
        read_output(r);
        if (r->line_n)
                flush_line(r);
        close_run(r);
        if (!p)
                return;

        p->run = NULL;
        p->poke = false;
        p->last_usr1_ms = 0;
        uv_timer_stop(&p->usr1);
        if (uv_now(p->loop) - r->started_ms >= p->o.stable_ms)
                p->pause_ms = 0;
        if (!p->wanted) {
                p->pause_ms = 0;
                set_state(p, IMEX_PROCESS_DOWN, "");
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
        if (signum)
                snprintf(why, sizeof why, "was ended by signal %d (%s)", signum, strsignal(signum));
        else
                snprintf(why, sizeof why, "ended with exit code %d", (int)status);
        set_state(p, IMEX_PROCESS_WAITING, why);
}

static int open_output(struct run *r, int *ret_w) {
        int fds[2], rc;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        rc = uv_poll_init(r->owner->loop, &r->output, fds[0]);
        if (rc < 0) {
                close(fds[0]);
                close(fds[1]);
                return rc;
        }
        r->output.data = r;
        r->out_fd = fds[0];
        r->open++;
        *ret_w = fds[1];
        return 0;
}

static int spawn(struct imex_process *p, struct err *e) {
        _cleanup_(closep) int out_w = -1;
        struct run *r = xnew(struct run);
        uv_stdio_container_t stdio[3] = { { .flags = UV_IGNORE } };
        uv_process_options_t po = { .exit_cb = on_ended,
                                    .file = p->argv[0],
                                    .args = p->argv,
                                    .stdio = stdio,
                                    .stdio_count = 3,
                                    /* A process group of its own, which can be killed as one. */
                                    .flags = UV_PROCESS_DETACHED };
        int rc;

        r->owner = p;
        r->out_fd = -1;
        r->started_ms = uv_now(p->loop);
        uv_timer_init(p->loop, &r->kill_timer);
        r->kill_timer.data = r->proc.data = r;
        r->open = 1;
        rc = open_output(r, &out_w);
        if (rc == 0) {
                for (int i = 1; i < 3; i++)
                        stdio[i] = (uv_stdio_container_t){ .flags = UV_INHERIT_FD, .data.fd = out_w };
                rc = uv_spawn(p->loop, &r->proc, &po);
                if (rc < 0) /* a handle all the same, which has to be closed */
                        uv_close((uv_handle_t *)&r->proc, on_run_closed);
                r->open++;
        }
        if (rc < 0) {
                r->owner = NULL;
                stop_output(r);
                uv_close((uv_handle_t *)&r->kill_timer, on_run_closed);
                return err_errno(e, -rc, "start '%s'", p->argv[0]);
        }
        uv_poll_start(&r->output, UV_READABLE, on_output);
        p->run = r;
        return 0;
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

static void on_kill_timer(uv_timer_t *t) {
        struct run *r = t->data;

        if (!r->ended)
                kill(-r->proc.pid, SIGKILL);
}

static void end_run(struct imex_process *p) {
        if (p->state == IMEX_PROCESS_ENDING)
                return;
        kill(p->run->proc.pid, SIGTERM);
        uv_timer_start(&p->run->kill_timer, on_kill_timer, p->o.term_grace_ms, 0);
        set_state(p, IMEX_PROCESS_ENDING, "");
}

static void act(struct imex_process *p) {
        if (p->run && (!p->wanted || p->renew))
                end_run(p);
        else if (!p->run && p->wanted)
                try_start(p);
        else if (!p->run) {
                p->pause_ms = 0;
                set_state(p, IMEX_PROCESS_DOWN, "");
        }
}

void imex_process_start(struct imex_process *p) {
        bool pausing = p->state == IMEX_PROCESS_WAITING;

        if (p->wanted)
                return;
        p->wanted = true;
        /* A program on its way out is followed by a fresh one; a pause under way is kept. */
        p->renew = p->state == IMEX_PROCESS_ENDING;
        p->penalty = false;
        if (!pausing)
                in_next_turn(p);
}

void imex_process_stop(struct imex_process *p) {
        p->wanted = p->renew = p->penalty = false;
        in_next_turn(p);
}

void imex_process_restart(struct imex_process *p, bool penalty) {
        bool pausing = p->wanted && p->state == IMEX_PROCESS_WAITING;

        p->wanted = true;
        p->renew = p->run != NULL;
        p->penalty = p->renew && penalty;
        if (!pausing)
                in_next_turn(p);
}

/* SIGUSR1 */

static void on_usr1_timer(uv_timer_t *t) {
        struct imex_process *p = t->data;
        struct run *r = p->run;
        uint64_t due = p->last_usr1_ms + p->o.usr1_interval_ms, now = uv_now(p->loop);

        if (!p->poke || !r || r->ended || !r->up || p->state != IMEX_PROCESS_RUNNING)
                return;
        if (p->last_usr1_ms && now < due) {
                uv_timer_start(&p->usr1, on_usr1_timer, due - now, 0);
                return;
        }
        p->poke = false;
        p->last_usr1_ms = now;
        kill(r->proc.pid, SIGUSR1);
}

void imex_process_poke(struct imex_process *p) {
        if (!p->run)
                return; /* the next start reads everything anew */
        p->poke = true;
        on_usr1_timer(&p->usr1);
}

void imex_process_up(struct imex_process *p) {
        if (!p->run || p->run->up)
                return;
        p->run->up = true;
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
        uv_timer_init(loop, &p->usr1);
        p->turn.data = p->usr1.data = p;
        p->open = 2;
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
        if (p->run) {
                p->run->owner = NULL;
                kill(-p->run->proc.pid, SIGKILL);
        }
        uv_close((uv_handle_t *)&p->turn, on_closed);
        uv_close((uv_handle_t *)&p->usr1, on_closed);
}

enum imex_process_state imex_process_state(const struct imex_process *p) {
        return p->state;
}

pid_t imex_process_pid(const struct imex_process *p) {
        return p->run ? p->run->proc.pid : 0;
}

unsigned imex_process_restarts(const struct imex_process *p) {
        return p->restarts;
}

void imex_process_drain(struct imex_process *p) {
        if (p->run)
                read_output(p->run);
}
