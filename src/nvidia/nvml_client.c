/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/process.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

enum { CHUNK = 16384, READS_PER_TURN = 32 };

struct nvml_client {
        uv_loop_t *loop;
        struct guard guard;
        /* The process, or none. */
        struct process *process;
        int fd; /* -1: closed */
        struct loop_fd io;
        struct buf in;
        /* The file that it loads, as it was when the process was started: by whatever path, another file is
         * another driver. */
        char *library;
        struct stat file;
        /* Of the open question the time-out or the pause before the start, else the end of the process. */
        struct loop_timer timer;
        unsigned failures; /* in a row */
        uint64_t not_before_ms;
        /* The question, if there is one. */
        bool asking;
        int64_t id;
        const char *verb;
        unsigned timeout_ms;
        nvml_answered_fn *fn;
        void *u;
};

static void close_channel(struct nvml_client *c) {
        if (c->fd < 0)
                return;
        loop_fd_done(&c->io);
        close(TAKE_FD(c->fd));
        buf_done(&c->in);
}

static void end_process(struct nvml_client *c) {
        close_channel(c);
        process_free(TAKE(c->process));
}

static void destroy(struct nvml_client *c) {
        end_process(c);
        loop_timer_done(&c->timer);
        free(c->library);
        free(c);
}

/* The client may be gone behind it. */
static void tell(struct nvml_client *c, const struct str *json, const struct err *e) {
        c->asking = false;
        guard_enter(&c->guard);
        c->fn(c->u, json, e);
        if (guard_leave(&c->guard))
                destroy(c);
}

/* The process is of no more use. */
static void failed(struct nvml_client *c, const struct err *e) {
        unsigned pause = NVML_BACKOFF_MAX_MS;
        if (c->failures < 6)
                pause = (unsigned)NVML_BACKOFF_MIN_MS << c->failures;
        c->failures++;
        c->not_before_ms = loop_now_ms(c->loop) + (pause < NVML_BACKOFF_MAX_MS ? pause : NVML_BACKOFF_MAX_MS);
        end_process(c);
        loop_timer_stop(&c->timer);
        if (c->asking)
                tell(c, NULL, e);
}

/* It says what it must not say. */
static void strange(struct nvml_client *c, struct err *e) {
        e->kind = ERR_RETRY;
        e->code = NVML_CRASHED;
        failed(c, e);
}

static void on_line(struct nvml_client *c, struct str line) {
        struct nvml_answer a;
        struct err e;
        int r = nvml_answer_parse(line, &a, &e);
        if (r == 0 && (!c->asking || a.id != c->id))
                r = err_set(&e, ERR_INVALID, 0, "NVML's process answers what nobody asked");
        if (r < 0) {
                strange(c, &e);
                return;
        }
        c->failures = 0;
        loop_timer_stop(&c->timer);
        if (a.ok) {
                if (c->process)
                        loop_timer_start(&c->timer, NVML_LINGER_MS);
                tell(c, &a.text, NULL);
                return;
        }
        err_set(&e, ERR_RETRY, (int)a.code, "%.*s", (int)a.text.n, a.text.p);
        end_process(c); /* it ends by itself, and must not be asked again meanwhile */
        tell(c, NULL, &e);
}

/* What has come; 1 at its end. */
static int receive(struct nvml_client *c) {
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

/* The next line of what has come, in memory of its own, or NULL. -1: there will be none. */
static int next_line(struct nvml_client *c, char **ret, size_t *ret_n, struct err *e) {
        struct str rest, line;
        bool whole = false;
        int end = receive(c);
        *ret = NULL;
        rest = (struct str){ buf_str(&c->in), c->in.n };
        if (nvml_line_next(&rest, &line, &whole, e) < 0)
                return -1;
        if (!whole)
                return c->in.failed ? err_set(e, ERR_RETRY, NVML_CRASHED, "NVML's process: too much at once")
                       : end        ? -1
                                    : 0;
        *ret = xstrndup(line.p, line.n);
        *ret_n = line.n;
        buf_consume(&c->in, c->in.n - rest.n);
        return 0;
}

static void on_io(void *u, int events) {
        struct nvml_client *c = u;
        _cleanup_(freep) char *line = NULL;
        size_t n;
        struct err e = { 0 };
        if (next_line(c, &line, &n, &e) < 0) {
                if (e.kind == ERR_NONE)
                        close_channel(c); /* on_ended() says how it ended */
                else
                        strange(c, &e);
        } else if (line) {
                on_line(c, (struct str){ line, n });
        }
}

static void on_output(void *u, const char *p, size_t n) {
        log_v(4, "NVML's process prints", kv_int("bytes", n));
}

static void on_ended(void *u, int exit_status, int term_signal) {
        struct nvml_client *c = u;
        _cleanup_(freep) char *line = NULL;
        size_t n;
        struct err e;
        c->process = NULL;
        if (c->asking && c->fd >= 0) /* its last words */
                (void)next_line(c, &line, &n, &e);
        close_channel(c);
        if (line) {
                on_line(c, (struct str){ line, n });
        } else if (!c->asking) {
                loop_timer_stop(&c->timer);
        } else {
                if (term_signal)
                        err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML ended its process with signal %d",
                                term_signal);
                else
                        err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML ended its process with status %d",
                                exit_status);
                failed(c, &e);
        }
}

static int open_channel(struct nvml_client *c, int *ret_theirs, struct err *e) {
        int fds[2], r;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return err_errno(e, errno, "a socket for NVML's process");
        r = loop_fd_init(&c->io, c->loop, fds[0], on_io, c);
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

static int start_process(struct nvml_client *c, struct err *e) {
        const char *const argv[] = { "/proc/self/exe", NVML_WORKER, NVML_WORKER_QUERY, c->library, NULL };
        _cleanup_(closep) int theirs = -1;
        if (open_channel(c, &theirs, e) < 0)
                return -1;
        return process_start(
                c->loop,
                &(struct process_options){
                        .argv = argv, .pass_fd = theirs, .output = on_output, .ended = on_ended, .u = c },
                &c->process, e);
}

static void put_question(struct nvml_client *c) {
        struct buf text = BUF_INIT(NVML_QUESTION_MAX);
        struct err e;
        if (!c->process && start_process(c, &e) < 0) {
                e.kind = ERR_RETRY;
                e.code = NVML_CRASHED;
                failed(c, &e);
                return;
        }
        nvml_question_write(++c->id, c->verb, &text);
        /* It fits into an empty socket; of one whose other end is gone on_ended() tells. */
        (void)send(c->fd, text.p, text.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        buf_done(&text);
        loop_timer_start(&c->timer, c->timeout_ms);
}

static void on_timer(void *u) {
        struct nvml_client *c = u;
        struct err e;
        if (!c->asking) {
                end_process(c);
        } else if (!c->process) {
                put_question(c);
        } else {
                err_set(&e, ERR_RETRY, NVML_HUNG, "NVML did not answer in time");
                failed(c, &e);
        }
}

struct nvml_client *nvml_client_new(uv_loop_t *loop) {
        struct nvml_client *c = xnew(struct nvml_client);
        c->loop = loop;
        c->fd = -1;
        loop_timer_init(&c->timer, loop, on_timer, c);
        return c;
}

static bool same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, unsigned timeout_ms,
                     nvml_answered_fn *fn, void *u) {
        struct stat now;
        BUG_ON(c->asking || timeout_ms == 0);
        if (stat(library, &now) < 0)
                now = (struct stat){ 0 }; /* the process will say so */
        if (!streq(c->library, library) || !same_file(&now, &c->file)) {
                end_process(c);
                c->failures = 0;
                c->not_before_ms = 0;
                free(c->library);
                c->library = xstrdup(library);
                c->file = now;
        }
        c->asking = true;
        c->verb = verb;
        c->timeout_ms = timeout_ms;
        c->fn = fn;
        c->u = u;
        if (c->process)
                put_question(c);
        else
                loop_timer_at(&c->timer, c->not_before_ms); /* a failed start is not told from in here */
}

bool nvml_client_asking(const struct nvml_client *c) {
        return c->asking;
}

pid_t nvml_client_pid(const struct nvml_client *c) {
        return c->process ? process_pid(c->process) : 0;
}

void nvml_client_free(struct nvml_client *c) {
        if (c && guard_free(&c->guard))
                destroy(c);
}
