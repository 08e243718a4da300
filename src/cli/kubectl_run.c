/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { KUBECTL_OUTPUT_MAX = 1 << 20 };

static int kubectl_pipe(int ret[2], struct err *e) {
        if (pipe(ret) < 0)
                return err_errno(e, errno, "pipe");
        (void)fcntl(ret[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(ret[1], F_SETFD, FD_CLOEXEC);
        return 0;
}

/* In the child. */
static _Noreturn void kubectl_exec(const struct kubectl_call *c, int input, int output, bool errors_too) {
        const char **argv = xcalloc(c->n_common + c->n_args + 2, sizeof *argv);
        union {
                const char **in;
                char *const *out;
        } u = { .in = argv };
        argv[0] = c->program;
        for (size_t i = 0; i < c->n_args; i++)
                argv[1 + i] = c->args[i];
        for (size_t i = 0; i < c->n_common; i++)
                argv[1 + c->n_args + i] = c->common[i];
        signal(SIGPIPE, SIG_DFL);
        if (c->ignores_ctrl_c) {
                signal(SIGINT, SIG_IGN);
                signal(SIGHUP, SIG_IGN);
        }
        if (input >= 0)
                (void)dup2(input, STDIN_FILENO);
        (void)dup2(output, STDOUT_FILENO);
        if (errors_too)
                (void)dup2(output, STDERR_FILENO);
        (void)execvp(c->program, u.out);
        _exit(127);
}

pid_t kubectl_start(const struct kubectl_call *c, int *ret_output, struct err *e) {
        int output[2];
        if (kubectl_pipe(output, e) < 0)
                return -1;
        pid_t child = fork();
        if (child == 0)
                kubectl_exec(c, -1, output[1], false);
        close(output[1]);
        if (child < 0) {
                err_errno(e, errno, "fork");
                close(output[0]);
                return -1;
        }
        *ret_output = output[0];
        return child;
}

void kubectl_stop(pid_t pid, int output) {
        close(output);
        (void)kill(pid, SIGTERM);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* kubectl reads its whole input before it prints anything. */
static void kubectl_feed(int fd, struct str text) {
        while (text.n) {
                ssize_t k = write(fd, text.p, text.n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        break;
                text = (struct str){ text.p + k, text.n - (size_t)k };
        }
        close(fd);
}

static void kubectl_collect(int fd, struct buf *out) {
        for (char chunk[4096];;) {
                ssize_t k = read(fd, chunk, sizeof chunk);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        break;
                if (out->n < KUBECTL_OUTPUT_MAX / 2)
                        buf_add(out, chunk, (size_t)k);
        }
        close(fd);
}

int kubectl_run(const struct kubectl_call *c, struct err *e) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(KUBECTL_OUTPUT_MAX);
        int input[2], output[2], status = 0;
        if (kubectl_pipe(input, e) < 0)
                return -1;
        if (kubectl_pipe(output, e) < 0) {
                close(input[0]);
                close(input[1]);
                return -1;
        }
        pid_t child = fork();
        if (child == 0)
                kubectl_exec(c, input[0], output[1], true);
        close(input[0]);
        close(output[1]);
        kubectl_feed(input[1], c->input);
        kubectl_collect(output[0], &text);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
        if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
                return err_set(e, ERR_INTERNAL, 0, "cannot run %s", c->program);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        struct str all = str_trim((struct str){ buf_str(&text), text.n });
        const char *line = all.p;
        for (const char *p = all.p; p < all.p + all.n; p++)
                if (*p == '\n')
                        line = p + 1;
        int n = (int)(all.p + all.n - line);
        return err_set(e, ERR_INTERNAL, 0, n ? "kubectl %s: %.*s" : "kubectl %s failed%.*s", c->args[0], n,
                       line);
}
