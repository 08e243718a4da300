/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/process.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

enum { CHUNK = 16384, READS_PER_TURN = 32, PRINTED_MAX = 1024 };

struct nvml_channel {
        struct nvml_channel_options o;
        struct guard guard;
        struct process *process; /* NULL: ended */
        int fd;                  /* -1: closed */
        struct loop_fd io;
        struct buf in;
        size_t printed; /* bytes of its output that are in the log: at most PRINTED_MAX */
};

unsigned nvml_backoff_ms(unsigned failures) {
        unsigned ms = failures < 6 ? (unsigned)NVML_BACKOFF_MIN_MS << failures : NVML_BACKOFF_MAX_MS;
        return ms < NVML_BACKOFF_MAX_MS ? ms : NVML_BACKOFF_MAX_MS;
}

void nvml_hung(const struct nvml_limits *l, const char *at, struct err *e) {
        if (*at)
                err_set(e, ERR_RETRY, NVML_HUNG,
                        "NVML did not answer in time: after a query of %s, it has been silent for %u s", at,
                        l->silent_ms / 1000);
        else
                err_set(e, ERR_RETRY, NVML_HUNG,
                        "NVML did not answer in time: it has not started within %u s", l->start_ms / 1000);
}

static void close_socket(struct nvml_channel *c) {
        if (c->fd < 0)
                return;
        loop_fd_done(&c->io);
        close(TAKE_FD(c->fd));
}

static void nvml_channel_destroy(struct nvml_channel *c) {
        buf_done(&c->in);
        free(c);
}

/* The process cannot be used any more. */
static void nvml_channel_end(struct nvml_channel *c, const struct err *e) {
        close_socket(c);
        process_free(TAKE(c->process));
        guard_enter(&c->guard);
        c->o.ended(c->o.u, e);
        if (guard_leave(&c->guard))
                nvml_channel_destroy(c);
}

/* Reads the available bytes; 1: end of file. */
static int receive(struct nvml_channel *c) {
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

/* Delivers the received lines. -1: one of them is too long. The owner may have freed the channel. */
static int deliver_lines(struct nvml_channel *c, struct err *e) {
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
                c->o.line(c->o.u, (struct str){ text, n });
        }
        return 0;
}

/* Reads and delivers lines. False: the channel has ended, and may have been freed. */
static bool take_in(struct nvml_channel *c, bool *ret_eof) {
        struct err e;
        *ret_eof = receive(c) == 1;
        guard_enter(&c->guard);
        int r = deliver_lines(c, &e);
        if (guard_leave(&c->guard)) {
                nvml_channel_destroy(c);
                return false;
        }
        if (r < 0)
                nvml_channel_end(c, &e);
        return r == 0;
}

static void on_io(void *u, int events) {
        struct nvml_channel *c = u;
        bool eof;
        if (take_in(c, &eof) && eof)
                close_socket(c); /* on_ended() reports how it ended */
}

/* NVIDIA's library prints details that it does not return, such as the versions that do not match. */
static void nvml_channel_on_output(void *u, const char *p, size_t n) {
        struct nvml_channel *c = u;
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

static void nvml_channel_on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct nvml_channel *c = u;
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
        nvml_channel_end(c, &e);
}

static int nvml_channel_open_socket(struct nvml_channel *c, uv_loop_t *loop, int *ret_theirs, struct err *e) {
        int fds[2], r;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return err_errno(e, errno, "a socket for NVML's process");
        r = loop_fd_init(&c->io, loop, fds[0], on_io, c);
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

static int nvml_channel_start_process(struct nvml_channel *c, uv_loop_t *loop, const char *library,
                                      struct err *e) {
        const char *const argv[] = { "/proc/self/exe", NVML_WORKER, c->o.role, library, NULL };
        _cleanup_(closep) int theirs = -1;
        if (nvml_channel_open_socket(c, loop, &theirs, e) < 0)
                return -1;
        return process_start(loop,
                             &(struct process_options){ .argv = argv,
                                                        .pass_fd = theirs,
                                                        .output = nvml_channel_on_output,
                                                        .ended = nvml_channel_on_ended,
                                                        .u = c },
                             &c->process, e);
}

int nvml_channel_open(uv_loop_t *loop, const struct nvml_channel_options *o, struct nvml_channel **ret,
                      struct err *e) {
        struct nvml_channel *c = xnew(struct nvml_channel);
        c->o = *o;
        c->fd = -1;
        if (nvml_channel_start_process(c, loop, o->library, e) < 0) {
                nvml_channel_free(c);
                e->kind = ERR_RETRY;
                e->code = e->code == PROCESS_STUCK ? NVML_HUNG : NVML_CRASHED;
                return -1;
        }
        *ret = c;
        return 0;
}

void nvml_channel_send(struct nvml_channel *c, struct str line) {
        /* An empty socket has room for it. */
        if (c->fd >= 0)
                (void)send(c->fd, line.p, line.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

pid_t nvml_channel_pid(const struct nvml_channel *c) {
        return c->process ? process_pid(c->process) : 0;
}

void nvml_channel_free(struct nvml_channel *c) {
        if (!c)
                return;
        close_socket(c);
        process_free(TAKE(c->process));
        if (guard_free(&c->guard))
                nvml_channel_destroy(c);
}
