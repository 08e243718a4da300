/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { ERROR_LINE_MAX = 500 };

int kubectl_pipe(int ret[2], struct err *e) {
        if (pipe(ret) < 0)
                return err_errno(e, errno, "pipe");
        (void)fcntl(ret[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(ret[1], F_SETFD, FD_CLOEXEC);
        return 0;
}

int kubectl_wait(pid_t pid) {
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

/* ---- starting ---- */

/* In the child. Reports the error of execvp(): a program in a container may end with 127, too. */
static _Noreturn void kubectl_exec(char *const *argv, const int fds[3], bool ignores_ctrl_c, int failure) {
        signal(SIGPIPE, SIG_DFL);
        if (ignores_ctrl_c) {
                signal(SIGINT, SIG_IGN);
                signal(SIGHUP, SIG_IGN);
        }
        for (int i = 0; i < 3; i++)
                if (fds[i] >= 0)
                        (void)dup2(fds[i], i);
        (void)execvp(argv[0], argv);
        int error = errno;
        ssize_t k = write(failure, &error, sizeof error);
        _exit(k > 0 ? 127 : 126);
}

pid_t kubectl_spawn(const struct kubectl *k, const struct kubectl_call *c, const int fds[3], struct err *e) {
        _cleanup_(freep) const char **argv = xcalloc(k->n_args + c->n_args + 2, sizeof *argv);
        union {
                const char **in;
                char *const *out;
        } u = { .in = argv };
        int failure[2], error = 0;
        size_t n = 0;
        argv[n++] = k->program;
        for (size_t i = 0; i < k->n_args; i++)
                argv[n++] = k->args[i];
        for (size_t i = 0; i < c->n_args; i++)
                argv[n++] = c->args[i];
        if (kubectl_pipe(failure, e) < 0)
                return -1;
        pid_t child = fork();
        if (child == 0)
                kubectl_exec(u.out, fds, c->ignores_ctrl_c, failure[1]);
        close(failure[1]);
        if (child < 0) {
                err_errno(e, errno, "fork");
                close(failure[0]);
                return -1;
        }
        ssize_t r; /* 0: the program has started, so its copy of the pipe is closed */
        while ((r = read(failure[0], &error, sizeof error)) < 0 && errno == EINTR)
                ;
        close(failure[0]);
        if (r <= 0)
                return child;
        (void)kubectl_wait(child);
        err_errno(e, error, "cannot run %s", k->program);
        return -1;
}

/* ---- calls ---- */

static int64_t kubectl_clock_ms(void) {
        struct timespec t;
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The ends of the pipes of a call that this process holds; -1: closed. */
struct kubectl_ends {
        int input, out, errors;
};

static void kubectl_close(int *fd) {
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

/* Writes what fits into the pipe. kubectl may exit without reading all of it. */
static void kubectl_feed(int *fd, struct str *text) {
        ssize_t k = write(*fd, text->p, text->n);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (k > 0)
                *text = (struct str){ text->p + k, text->n - (size_t)k };
        if (k <= 0 || !text->n)
                kubectl_close(fd);
}

static void kubectl_collect(int *fd, struct buf *b) {
        char chunk[4096];
        ssize_t k = read(*fd, chunk, sizeof chunk);
        if (k < 0 && errno == EINTR)
                return;
        if (k <= 0)
                kubectl_close(fd);
        else
                buf_add(b, chunk, (size_t)k);
}

/* Writes the input and reads both outputs, until the outputs end. */
static int kubectl_exchange(struct kubectl_ends *x, struct str input, int64_t end_ms,
                            struct kubectl_result *ret, struct err *e) {
        if (!input.n)
                kubectl_close(&x->input);
        while (x->out >= 0 || x->errors >= 0) {
                struct pollfd f[] = { { .fd = x->out, .events = POLLIN },
                                      { .fd = x->errors, .events = POLLIN },
                                      { .fd = x->input, .events = POLLOUT } };
                int64_t left = end_ms - kubectl_clock_ms();
                int r = left > 0 ? poll(f, ARRAY_LEN(f), (int)left) : 0;
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return err_set(e, ERR_RETRY, 0, "it does not answer in time");
                if (f[0].revents)
                        kubectl_collect(&x->out, &ret->out);
                if (f[1].revents)
                        kubectl_collect(&x->errors, &ret->errors);
                if (f[2].revents)
                        kubectl_feed(&x->input, &input);
                if (ret->out.failed || ret->errors.failed)
                        return err_set(e, ERR_INVALID, 0, "its output is too large");
        }
        return 0;
}

/* Starts kubectl with three pipes. */
static pid_t kubectl_start_call(const struct kubectl *k, const struct kubectl_call *c,
                                struct kubectl_ends *ret, struct err *e) {
        int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
        pid_t child = -1;
        int r = 0;
        for (size_t i = 0; i < 3 && r == 0; i++)
                r = kubectl_pipe(pipes[i], e);
        const int fds[3] = { pipes[0][0], pipes[1][1], pipes[2][1] };
        if (r == 0)
                child = kubectl_spawn(k, c, fds, e);
        *ret = (struct kubectl_ends){ pipes[0][1], pipes[1][0], pipes[2][0] };
        kubectl_close(&pipes[0][0]);
        kubectl_close(&pipes[1][1]);
        kubectl_close(&pipes[2][1]);
        if (ret->input >= 0)
                (void)fcntl(ret->input, F_SETFL, O_NONBLOCK);
        return child;
}

int kubectl_call(const struct kubectl *k, const struct kubectl_call *c, struct kubectl_result *ret,
                 struct err *e) {
        size_t limit = c->limit ? c->limit : KUBECTL_OUTPUT_MAX;
        int64_t end_ms = kubectl_clock_ms() + (c->timeout_ms ? c->timeout_ms : KUBECTL_CALL_MS);
        struct kubectl_ends ends;
        int status = 0, r = -1;
        *ret = (struct kubectl_result){ .out = BUF_INIT(limit), .errors = BUF_INIT(limit) };
        pid_t child = kubectl_start_call(k, c, &ends, e);
        if (child > 0 && (r = kubectl_exchange(&ends, c->input, end_ms, ret, e)) < 0) {
                err_wrap(e, "kubectl %s", c->args[0]);
                (void)kill(child, SIGKILL);
        }
        kubectl_close(&ends.input);
        kubectl_close(&ends.out);
        kubectl_close(&ends.errors);
        if (child > 0)
                status = kubectl_wait(child);
        if (r < 0)
                return -1;
        if (!WIFEXITED(status))
                return err_set(e, ERR_INTERNAL, 0, "kubectl %s failed", c->args[0]);
        ret->status = WEXITSTATUS(status);
        return 0;
}

void kubectl_result_done(struct kubectl_result *x) {
        buf_done(&x->out);
        buf_done(&x->errors);
}

static struct str kubectl_last_line(const struct buf *b) {
        struct str rest = str_trim((struct str){ buf_str(b), b->n }), line, last = { "", 0 };
        while (str_next_line(&rest, &line))
                last = line.n ? line : last;
        return (struct str){ last.p, str_utf8_cut(last, ERROR_LINE_MAX) };
}

int kubectl_error(const struct kubectl_call *c, const struct kubectl_result *x, struct err *e) {
        struct str line = kubectl_last_line(&x->errors);
        if (!line.n)
                line = kubectl_last_line(&x->out);
        bool denied = strstr(buf_str(&x->errors), "(Forbidden)");
        return err_set(e, denied ? ERR_DENIED : ERR_INTERNAL, 0,
                       line.n ? "kubectl %s: %.*s" : "kubectl %s failed%.*s", c->args[0], (int)line.n,
                       line.p);
}

int kubectl_run(const struct kubectl *k, const struct kubectl_call *c, char **ret_text, struct err *e) {
        struct kubectl_result x;
        int r = kubectl_call(k, c, &x, e);
        if (r == 0 && x.status != 0)
                r = kubectl_error(c, &x, e);
        if (r == 0 && ret_text) {
                struct str text = str_trim((struct str){ buf_str(&x.out), x.out.n });
                *ret_text = xstrndup(text.p, text.n);
        }
        kubectl_result_done(&x);
        return r;
}

/* ---- in the background ---- */

pid_t kubectl_start(const struct kubectl *k, const char *const *args, size_t n_args, int *ret_output,
                    struct err *e) {
        const struct kubectl_call c = { .args = args, .n_args = n_args };
        int output[2], input = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (kubectl_pipe(output, e) < 0) {
                kubectl_close(&input);
                return -1;
        }
        pid_t child = kubectl_spawn(k, &c, (const int[3]){ input, output[1], -1 }, e);
        kubectl_close(&input);
        close(output[1]);
        if (child < 0)
                close(output[0]);
        else
                *ret_output = output[0];
        return child;
}

void kubectl_stop(pid_t pid, int output) {
        close(output);
        (void)kill(pid, SIGTERM);
        (void)kubectl_wait(pid);
}
