/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_session.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/stderr.h"
#include "nvidia/nvml_worker.h"

enum { CHUNK = 16384, READS_PER_TURN = 32, PRINTED_MAX = 1024, AT_SIZE = 64 };

/* The part that both uses have. A use is a struct that begins with it. */
struct session {
        uv_loop_t *loop;
        struct guard guard;
        struct channel *channel;   /* NULL: no process */
        char *library;             /* path of libnvidia-ml.so.1 */
        struct nvml_limits limits; /* of the open question */
        char at[AT_SIZE];          /* the GPU that is being queried; "": the library starts */
        /* With an open question: its time-out. Otherwise it belongs to the use. */
        struct loop_timer timer;
        unsigned failures; /* how many processes failed in a row */
        int64_t id;        /* of the last question */
        const char *role;  /* NVML_WORKER_QUERY or NVML_WORKER_EVENTS */
        /* Called for each line, without its newline; `line` is valid during the call. It may stop the
         * session, as may ended(). */
        void (*line)(struct session *s, struct str line);
        /* Called when the process has ended and all its lines have been delivered, or when its output is not
         * a valid line. Afterwards the use stops the session. The error is ERR_RETRY with the code
         * NVML_CRASHED. */
        void (*ended)(struct session *s, const struct err *e);
};

/* ---- the process ---- */

struct channel {
        struct session *s;
        struct guard guard;
        struct process *process; /* NULL: ended, but its last lines may still arrive */
        int fd;                  /* -1: closed */
        struct loop_fd io;
        struct buf in;
        size_t printed; /* bytes of its output that are in the log: at most PRINTED_MAX */
};

static void close_socket(struct channel *c) {
        if (c->fd < 0)
                return;
        loop_fd_done(&c->io);
        close(TAKE_FD(c->fd));
}

static void channel_destroy(struct channel *c) {
        buf_done(&c->in);
        free(c);
}

/* Kills the process and frees the channel. No callback is called afterwards. NULL is allowed. */
static void channel_free(struct channel *c) {
        if (!c)
                return;
        close_socket(c);
        process_free(TAKE(c->process));
        if (guard_free(&c->guard))
                channel_destroy(c);
}

/* The process cannot be used any more. */
static void channel_end(struct channel *c, const struct err *e) {
        close_socket(c);
        process_free(TAKE(c->process));
        guard_enter(&c->guard);
        c->s->ended(c->s, e);
        if (guard_leave(&c->guard))
                channel_destroy(c);
}

/* Reads the available bytes; 1: end of file. */
static int receive(struct channel *c) {
        char chunk[CHUNK];
        for (unsigned i = 0; i < READS_PER_TURN; i++) {
                ssize_t n = recv(c->fd, chunk, sizeof chunk, MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0)
                        return 1;
                buf_add(&c->in, chunk, (size_t)n);
        }
        return 0;
}

/* Delivers the received lines. -1: one of them is too long. The use may have freed the channel. */
static int deliver_lines(struct channel *c, struct err *e) {
        bool whole = true;
        while (!c->guard.dead) {
                struct str rest = { buf_str(&c->in), c->in.n }, line;
                if (c->in.failed)
                        return err_set(e, ERR_RETRY, NVML_CRASHED, "NVML's process writes too much at once");
                if (nvml_line_next(&rest, &line, &whole, e) < 0) {
                        e->kind = ERR_RETRY;
                        e->code = NVML_CRASHED;
                        return -1;
                }
                if (!whole)
                        return 0;
                _cleanup_(freep) char *text = xstrndup(line.p, line.n);
                size_t n = line.n;
                buf_consume(&c->in, c->in.n - rest.n);
                c->s->line(c->s, (struct str){ text, n });
        }
        return 0;
}

/* Reads and delivers lines. False: the channel has ended, and may have been freed. */
static bool take_in(struct channel *c, bool *ret_eof) {
        struct err e;
        *ret_eof = receive(c) == 1;
        guard_enter(&c->guard);
        int r = deliver_lines(c, &e);
        if (guard_leave(&c->guard)) {
                channel_destroy(c);
                return false;
        }
        if (r < 0)
                channel_end(c, &e);
        return r == 0;
}

static void on_io(void *u, int events) {
        struct channel *c = u;
        bool eof;
        if (take_in(c, &eof) && eof)
                close_socket(c); /* channel_on_ended() reports how it ended */
}

/* NVIDIA's library prints details that it does not return, such as the versions that do not match. */
static void channel_on_output(void *u, const char *p, size_t n) {
        struct channel *c = u;
        char text[PRINTED_MAX + 1];
        size_t room = PRINTED_MAX - c->printed, take = n < room ? n : room;
        if (!take)
                return;
        c->printed += take;
        for (size_t i = 0; i < take; i++)
                text[i] = p[i] >= 0x20 && p[i] <= 0x7e ? p[i] : p[i] == '\n' ? ' ' : '?';
        text[take] = '\0';
        log_info("NVML's process prints", kv_str("text", text), kv_int("bytes", (int64_t)n));
}

static void channel_on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct channel *c = u;
        bool eof;
        struct err e;
        c->process = NULL;
        if (c->fd >= 0 && !take_in(c, &eof)) /* its last lines */
                return;
        if (failed)
                err_set(&e, ERR_RETRY, NVML_CRASHED, "%s", failed->msg);
        else if (term_signal)
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML ended its process with signal %d", term_signal);
        else
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML ended its process with status %d", exit_status);
        channel_end(c, &e);
}

static int channel_open_socket(struct channel *c, int *ret_theirs, struct err *e) {
        int fds[2], r;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return err_errno(e, errno, "a socket for NVML's process");
        r = loop_fd_init(&c->io, c->s->loop, fds[0], on_io, c);
        if (r < 0) {
                close(fds[0]);
                close(fds[1]);
                return err_errno(e, -r, "a socket for NVML's process");
        }
        c->fd = fds[0];
        c->in = BUF_INIT(2 * NVML_LINE_MAX);
        loop_fd_start(&c->io, UV_READABLE);
        *ret_theirs = fds[1];
        return 0;
}

static int channel_start_process(struct channel *c, struct err *e) {
        const char *const argv[] = { "/proc/self/exe", NVML_WORKER, c->s->role, c->s->library, NULL };
        _cleanup_(closep) int theirs = -1;
        if (channel_open_socket(c, &theirs, e) < 0)
                return -1;
        return process_start(c->s->loop,
                             &(struct process_options){ .argv = argv,
                                                        .pass_fd = theirs,
                                                        .output = channel_on_output,
                                                        .ended = channel_on_ended,
                                                        .u = c },
                             &c->process, e);
}

/* Starts the process. Calls no callback before it returns. Errors are ERR_RETRY. Code NVML_CRASHED: the
 * process cannot be started. Code NVML_HUNG: an earlier process is stuck (process.h). */
static int channel_open(struct session *s, struct err *e) {
        struct channel *c = xnew(struct channel);
        c->s = s;
        c->fd = -1;
        if (channel_start_process(c, e) < 0) {
                channel_free(c);
                e->kind = ERR_RETRY;
                e->code = e->code == PROCESS_STUCK ? NVML_HUNG : NVML_CRASHED;
                return -1;
        }
        s->channel = c;
        return 0;
}

/* ---- a session ---- */

/* Returns how long to wait before the next process starts. `failures`: how many processes failed in a row
 * before this one. Pure. */
static unsigned backoff_of(unsigned failures) {
        unsigned ms = failures < 6 ? (unsigned)NVML_BACKOFF_MIN_MS << failures : NVML_BACKOFF_MAX_MS;
        return ms < NVML_BACKOFF_MAX_MS ? ms : NVML_BACKOFF_MAX_MS;
}

/* Ends the process, and stops the timer. */
static void session_stop(struct session *s) {
        channel_free(TAKE(s->channel));
        loop_timer_stop(&s->timer);
}

/* Frees the use. */
static void session_destroy(struct session *s) {
        channel_free(s->channel);
        loop_timer_done(&s->timer);
        free(s->library);
        free(s);
}

static void session_leave(struct session *s) {
        if (guard_leave(&s->guard))
                session_destroy(s);
}

static pid_t session_pid(const struct session *s) {
        return s->channel && s->channel->process ? process_pid(s->channel->process) : 0;
}

/* Sends a question to the process, which starts if there is none. */
static int session_ask(struct session *s, const char *verb, struct err *e) {
        struct buf text = BUF_INIT(NVML_QUESTION_MAX);
        if (!s->channel && channel_open(s, e) < 0)
                return -1;
        s->at[0] = '\0';
        nvml_question_write(++s->id, verb, &text);
        /* An empty socket has room for it. If the process has ended, ended() reports this. */
        if (s->channel->fd >= 0)
                (void)send(s->channel->fd, buf_str(&text), text.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        buf_done(&text);
        loop_timer_start(&s->timer, s->limits.start_ms);
        return 0;
}

/* The process is about to query a GPU. */
static void session_at(struct session *s, const struct nvml_answer *a) {
        snprintf(s->at, sizeof s->at, "%.*s", (int)a->text.n, a->text.p);
        loop_timer_start(&s->timer, s->limits.silent_ms);
}

/* Sets the error for a process that exceeded the limits. */
static void session_hung(const struct session *s, struct err *e) {
        if (*s->at)
                err_set(e, ERR_RETRY, NVML_HUNG,
                        "NVML did not answer in time: after a query of %s, it has been silent for %u s",
                        s->at, s->limits.silent_ms / 1000);
        else
                err_set(e, ERR_RETRY, NVML_HUNG,
                        "NVML did not answer in time: it has not started within %u s",
                        s->limits.start_ms / 1000);
}

/* ---- queries ---- */

struct nvml_client {
        struct session s;
        struct stat file; /* of the library. Another file is another driver, also with the same path */
        uint64_t not_before_ms;
        /* The open query, if there is one. Otherwise the timer ends the process. */
        bool asking;
        const char *verb;
        nvml_answered_fn *fn;
        void *u;
};

/* The callback may free the client. */
static void nvml_client_answer(struct nvml_client *c, const struct str *json, const struct err *e) {
        c->asking = false;
        guard_enter(&c->s.guard);
        c->fn(c->u, json, e);
        session_leave(&c->s);
}

/* The process cannot be used any more. */
static void nvml_client_failed(struct nvml_client *c, const struct err *e) {
        c->not_before_ms = loop_now_ms(c->s.loop) + backoff_of(c->s.failures++);
        session_stop(&c->s);
        if (c->asking)
                nvml_client_answer(c, NULL, e);
}

static void nvml_client_on_line(struct session *s, struct str line) {
        struct nvml_client *c = CONTAINER(s, struct nvml_client, s);
        struct nvml_answer a;
        struct err e;
        int r = nvml_answer_parse(line, &a, &e);
        if (r == 0 && (!c->asking || a.id != s->id))
                r = err_set(&e, ERR_INVALID, 0, "NVML's process answers an unknown question");
        if (r < 0) { /* the process violates the protocol */
                e.kind = ERR_RETRY;
                e.code = NVML_CRASHED;
                nvml_client_failed(c, &e);
                return;
        }
        if (a.kind == NVML_AT) {
                session_at(s, &a);
                return;
        }
        s->failures = 0;
        loop_timer_stop(&s->timer);
        if (!session_pid(s))
                session_stop(s); /* this was its last line */
        if (a.kind == NVML_YES) {
                if (s->channel)
                        loop_timer_start(&s->timer, NVML_LINGER_MS);
                nvml_client_answer(c, &a.text, NULL);
                return;
        }
        err_set(&e, ERR_RETRY, (int)a.code, "%.*s", (int)a.text.n, a.text.p);
        session_stop(s); /* it is about to exit, and must not get another question */
        nvml_client_answer(c, NULL, &e);
}

static void nvml_client_on_ended(struct session *s, const struct err *e) {
        struct nvml_client *c = CONTAINER(s, struct nvml_client, s);
        if (c->asking)
                nvml_client_failed(c, e);
        else
                session_stop(s);
}

static void put_question(struct nvml_client *c) {
        struct err e;
        if (session_ask(&c->s, c->verb, &e) < 0)
                nvml_client_failed(c, &e);
}

static void nvml_client_on_timer(void *u) {
        struct nvml_client *c = u;
        struct err e;
        if (!c->asking) {
                session_stop(&c->s);
        } else if (!c->s.channel) {
                put_question(c);
        } else {
                session_hung(&c->s, &e);
                nvml_client_failed(c, &e);
        }
}

struct nvml_client *nvml_client_new(uv_loop_t *loop) {
        struct nvml_client *c = xnew(struct nvml_client);
        c->s = (struct session){ .loop = loop,
                                 .role = NVML_WORKER_QUERY,
                                 .line = nvml_client_on_line,
                                 .ended = nvml_client_on_ended };
        loop_timer_init(&c->s.timer, loop, nvml_client_on_timer, c);
        return c;
}

void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, struct nvml_limits limits,
                     nvml_answered_fn *fn, void *u) {
        struct stat now;
        BUG_ON(c->asking || !limits.start_ms || !limits.silent_ms);
        if (stat(library, &now) < 0)
                now = (struct stat){ 0 }; /* the process will report the error */
        if (!streq(c->s.library, library) || !file_same(&now, &c->file)) {
                session_stop(&c->s);
                c->s.failures = 0;
                c->not_before_ms = 0;
                free(c->s.library);
                c->s.library = xstrdup(library);
                c->file = now;
        }
        c->asking = true;
        c->verb = verb;
        c->s.limits = limits;
        c->fn = fn;
        c->u = u;
        if (c->s.channel)
                put_question(c);
        else
                loop_timer_at(&c->s.timer, c->not_before_ms); /* a failed start is reported in a later turn */
}

bool nvml_client_asking(const struct nvml_client *c) {
        return c->asking;
}

pid_t nvml_client_pid(const struct nvml_client *c) {
        return session_pid(&c->s);
}

void nvml_client_free(struct nvml_client *c) {
        if (c && guard_free(&c->s.guard))
                session_destroy(&c->s);
}

/* ---- the watch ---- */

struct nvml_watch {
        struct session s; /* without a library, nothing is watched. Without a process, the timer starts one */
        struct nvml_watch_options o;
        uint64_t state;
        bool begun;    /* the process has answered */
        bool outdated; /* the process is still starting, and will be replaced */
};

static void nvml_watch_stop(struct nvml_watch *w) {
        session_stop(&w->s);
        w->begun = w->outdated = false;
}

/* Starts again with the current library, if there is one. */
static void start_over(struct nvml_watch *w) {
        nvml_watch_stop(w);
        w->s.failures = 0;
        if (w->s.library)
                loop_timer_start(&w->s.timer, 0); /* a failed start is reported in a later turn */
}

static void nvml_watch_failed(struct nvml_watch *w, const struct err *e) {
        if (w->outdated) { /* regardless of its result */
                start_over(w);
                return;
        }
        nvml_watch_stop(w);
        loop_timer_start(&w->s.timer, backoff_of(w->s.failures++));
        guard_enter(&w->s.guard);
        w->o.broken(w->o.u, e);
        session_leave(&w->s);
}

static void on_start(struct nvml_watch *w, struct str line) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct nvml_watched watched;
        struct nvml_answer answer;
        struct err e;
        int r = nvml_answer_parse(line, &answer, &e);
        if (r == 0 && answer.kind == NVML_AT) {
                session_at(&w->s, &answer);
                return;
        }
        if (r == 0 && answer.kind == NVML_NO)
                r = err_set(&e, ERR_RETRY, (int)answer.code, "%.*s", (int)answer.text.n, answer.text.p);
        else if (r == 0)
                r = nvml_watched_decode(answer.text, a, &watched, &e);
        if (r < 0 && e.kind != ERR_RETRY)
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML's process writes unknown lines");
        if (r < 0) {
                nvml_watch_failed(w, &e);
                return;
        }
        if (w->outdated) {
                start_over(w);
                return;
        }
        w->begun = true;
        loop_timer_start(&w->s.timer, w->o.silent_ms);
        guard_enter(&w->s.guard);
        w->o.watched(w->o.u, &watched);
        session_leave(&w->s);
}

static void nvml_watch_on_event(struct nvml_watch *w, struct str line) {
        struct nvml_event ev;
        struct err e;
        if (nvml_event_parse(line, &ev, &e) < 0) {
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML's process writes unknown lines");
                nvml_watch_failed(w, &e);
        } else if (ev.kind == NVML_END) {
                err_set(&e, ERR_RETRY, (int)ev.code, "%.*s", (int)ev.text.n, ev.text.p);
                nvml_watch_failed(w, &e);
        } else if (ev.kind == NVML_XID) {
                guard_enter(&w->s.guard);
                w->o.xid(w->o.u, &ev);
                session_leave(&w->s);
        } else {
                w->s.failures = 0; /* the watch has been stable for a while */
        }
}

static void nvml_watch_on_line(struct session *s, struct str line) {
        struct nvml_watch *w = CONTAINER(s, struct nvml_watch, s);
        loop_timer_start(&s->timer, w->begun ? w->o.silent_ms : s->limits.silent_ms);
        if (w->begun)
                nvml_watch_on_event(w, line);
        else
                on_start(w, line);
}

static void nvml_watch_on_ended(struct session *s, const struct err *e) {
        nvml_watch_failed(CONTAINER(s, struct nvml_watch, s), e);
}

static void nvml_watch_on_timer(void *u) {
        struct nvml_watch *w = u;
        struct err e;
        if (!w->s.channel) {
                if (session_ask(&w->s, NVML_ASK_WATCH, &e) == 0)
                        return;
        } else if (w->begun) {
                err_set(&e, ERR_RETRY, NVML_HUNG, "NVML did not answer in time: it has been silent for %u s",
                        w->o.silent_ms / 1000);
        } else {
                session_hung(&w->s, &e);
        }
        nvml_watch_failed(w, &e);
}

struct nvml_watch *nvml_watch_new(uv_loop_t *loop, const struct nvml_watch_options *o) {
        struct nvml_watch *w = xnew(struct nvml_watch);
        w->s = (struct session){ .loop = loop,
                                 .limits = o->limits,
                                 .role = NVML_WORKER_EVENTS,
                                 .line = nvml_watch_on_line,
                                 .ended = nvml_watch_on_ended };
        w->o = *o;
        loop_timer_init(&w->s.timer, loop, nvml_watch_on_timer, w);
        return w;
}

void nvml_watch_with(struct nvml_watch *w, const char *library, uint64_t state) {
        if (streq(w->s.library, library) && w->state == state)
                return;
        free(w->s.library);
        w->s.library = library ? xstrdup(library) : NULL;
        w->state = state;
        if (w->s.channel && !w->begun)
                w->outdated = true;
        else
                start_over(w);
}

pid_t nvml_watch_pid(const struct nvml_watch *w) {
        return session_pid(&w->s);
}

void nvml_watch_free(struct nvml_watch *w) {
        if (!w)
                return;
        nvml_watch_stop(w);
        if (guard_free(&w->s.guard))
                session_destroy(&w->s);
}
