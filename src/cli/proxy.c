/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* Regular expressions of Go, which have no negation. */
#define NOT_GET "^([^G].*|G[^E].*|GE[^T].*|GET.+|G|GE|)$"
#define STREAMS                                                                                              \
        "^/api/v1/(namespaces/[^/]+/)?(pods|services|nodes)/[^/]+/(exec|attach|portforward|proxy)(/.*)?$"

/* The guard: starts kubectl, and ends it when the pipe closes. Never returns. */
static _Noreturn void guard_run(const struct proxy *p, int pipe_end, int output, const struct kubectl *k) {
        _cleanup_(freep) char *socket = xasprintf("--unix-socket=%s", p->socket);
        /* Without --append-server-path, kubectl drops the path of the server's URL
         * (https://host/k8s/clusters/x). The rejected paths have no such prefix. */
        const char *const args[] = { "proxy", socket, "--append-server-path=true",
                                     "--reject-methods=" NOT_GET, "--reject-paths=" STREAMS };
        const struct kubectl_call call = { .args = args, .n_args = ARRAY_LEN(args) };
        struct pollfd f = { .fd = pipe_end, .events = POLLIN };
        struct err e;
        pid_t kubectl = kubectl_spawn(k, &call, (const int[3]){ -1, output, -1 }, &e);
        if (kubectl < 0)
                dprintf(output, "%s\n", e.msg);
        close(output);
        /* A signal of the terminal reaches the tool, too, which closes the pipe. */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        while (poll(&f, 1, -1) < 0 && errno == EINTR)
                ;
        if (kubectl > 0) {
                /* The guard has not waited for kubectl yet, so no other process has its number. */
                (void)kill(kubectl, SIGTERM);
                (void)kubectl_wait(kubectl);
        }
        (void)unlink(p->socket);
        (void)rmdir(p->folder);
        _exit(0);
}

/* Waits for the first line of kubectl's output: "Starting to serve on ...". */
static int await_line(int output, struct err *e) {
        char text[512];
        size_t n = 0;
        while (n < sizeof text - 1 && !memchr(text, '\n', n)) {
                struct pollfd f = { .fd = output, .events = POLLIN };
                int r = poll(&f, 1, KUBECTL_CALL_MS);
                if (r < 0 && errno == EINTR)
                        continue;
                ssize_t k = r > 0 ? read(output, text + n, sizeof text - 1 - n) : 0;
                if (k < 0 && errno == EINTR)
                        continue;
                if (r == 0)
                        return err_set(e, ERR_RETRY, 0, "kubectl proxy does not start");
                if (k <= 0)
                        break;
                n += (size_t)k;
        }
        text[n] = '\0';
        if (str_starts(text, "Starting to serve"))
                return 0;
        struct str line = str_trim((struct str){ text, n });
        return err_set(e, ERR_INTERNAL, 0, line.n ? "kubectl proxy: %.*s" : "kubectl proxy did not start%.*s",
                       (int)line.n, line.p);
}

/* environment TMPDIR of kubectl-compute_domains: the folder in which the folder of the socket is created */
static int make_folder(struct proxy *p, struct err *e) {
        const char *root = str_or(getenv("TMPDIR"), "/tmp");
        /* An address of a Unix socket has at most 103 bytes on macOS. */
        if (strlen(root) > 40)
                root = "/tmp";
        snprintf(p->folder, sizeof p->folder, "%s/compute-domains-XXXXXX", root);
        if (!mkdtemp(p->folder)) /* with mode 0700 */
                return err_errno(e, errno, "cannot create a folder in %s", root);
        snprintf(p->socket, sizeof p->socket, "%s/s", p->folder);
        return 0;
}

int proxy_start(struct proxy *p, const struct kubectl *k, struct err *e) {
        int ends[2], output[2];
        *p = (struct proxy){ .pipe = -1 };
        if (make_folder(p, e) < 0)
                return -1;
        if (kubectl_pipe(ends, e) < 0) {
                (void)rmdir(p->folder);
                return -1;
        }
        if (kubectl_pipe(output, e) < 0) {
                close(ends[0]);
                close(ends[1]);
                (void)rmdir(p->folder);
                return -1;
        }
        p->guard = fork();
        if (p->guard == 0) {
                close(ends[1]);
                close(output[0]);
                guard_run(p, ends[0], output[1], k);
        }
        close(ends[0]);
        close(output[1]);
        p->pipe = ends[1];
        int r = p->guard < 0 ? err_errno(e, errno, "fork") : await_line(output[0], e);
        close(output[0]);
        if (r < 0)
                proxy_stop(p);
        return r;
}

void proxy_stop(struct proxy *p) {
        closep(&p->pipe);
        p->pipe = -1;
        if (p->guard > 0)
                (void)kubectl_wait(p->guard);
        p->guard = 0;
}

int proxy_connect(const struct proxy *p, struct err *e) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0)
                return err_errno(e, errno, "socket");
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        snprintf(a.sun_path, sizeof a.sun_path, "%s", p->socket);
        if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0) {
                err_errno(e, errno, "cannot connect to kubectl proxy");
                close(fd);
                return -1;
        }
        return fd;
}
