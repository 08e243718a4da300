/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

static int64_t monotonic_ms(void) {
        struct timespec t;
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static _Noreturn void tool_exec_child(const char *const *argv, int out, int errors) {
        union {
                const char *const *in;
                char *const *out;
        } u = { .in = argv };
        int input = open("/dev/null", O_RDONLY);
        if (input >= 0)
                (void)dup2(input, STDIN_FILENO);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(errors, STDERR_FILENO);
        (void)execvp(argv[0], u.out);
        _exit(127);
}

/* Reads once. Returns false at the end of the output. */
static bool read_some(int fd, struct buf *b) {
        char chunk[4096];
        ssize_t k = read(fd, chunk, sizeof chunk);
        if (k < 0)
                return errno == EINTR;
        buf_add(b, chunk, (size_t)k);
        return k > 0;
}

/* Reads both outputs until they end. */
static int read_outputs(int out, int errors, int64_t deadline, struct tool_exec_result *x, struct err *e) {
        struct pollfd f[2] = { { .fd = out, .events = POLLIN }, { .fd = errors, .events = POLLIN } };
        struct buf *const bufs[2] = { &x->out, &x->errors };
        while (f[0].fd >= 0 || f[1].fd >= 0) {
                int64_t left = deadline - monotonic_ms();
                int r = left > 0 ? poll(f, 2, (int)left) : 0;
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return err_set(e, ERR_RETRY, 0, "no answer");
                for (size_t i = 0; i < 2; i++)
                        if (f[i].fd >= 0 && f[i].revents && !read_some(f[i].fd, bufs[i]))
                                f[i].fd = -1;
                if (x->out.failed || x->errors.failed)
                        return err_set(e, ERR_INVALID, 0, "the output is too large");
        }
        return 0;
}

int tool_exec_run(const char *const *argv, size_t limit, int timeout_ms, struct tool_exec_result *ret,
                  struct err *e) {
        int out[2], errors[2], status = 0;
        *ret = (struct tool_exec_result){ .out = BUF_INIT(limit), .errors = BUF_INIT(limit) };
        if (pipe(out) < 0)
                return err_errno(e, errno, "pipe");
        if (pipe(errors) < 0) {
                close(out[0]);
                close(out[1]);
                return err_errno(e, errno, "pipe");
        }
        /* The program may start others, which must not hold our ends. */
        (void)fcntl(out[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(errors[0], F_SETFD, FD_CLOEXEC);
        pid_t child = fork();
        if (child == 0)
                tool_exec_child(argv, out[1], errors[1]);
        close(out[1]);
        close(errors[1]);
        int r = child < 0 ? err_errno(e, errno, "fork")
                          : read_outputs(out[0], errors[0], monotonic_ms() + timeout_ms, ret, e);
        close(out[0]);
        close(errors[0]);
        if (child > 0 && r < 0)
                (void)kill(child, SIGKILL);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
        if (r < 0)
                return -1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
                return err_set(e, ERR_INTERNAL, 0, "cannot run %s", argv[0]);
        ret->status = WEXITSTATUS(status);
        return 0;
}
