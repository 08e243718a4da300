/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WIDE = 1 << 20 }; /* the limit for unprivileged programs: /proc/sys/fs/pipe-max-size */

#ifndef MSG_NOSIGNAL /* macOS has it only in new releases */
#define MSG_NOSIGNAL 0
#endif

/* A writable pipe accepts PIPE_BUF bytes without waiting (pipe(7)), and sockets are written with
 * MSG_DONTWAIT. O_NONBLOCK would change the open file, and so every program that shares it. Between poll and
 * write only a child of ours could fill the pipe. */
static bool stderr_takes(void) {
        struct pollfd f = { .fd = STDERR_FILENO, .events = POLLOUT };
        return poll(&f, 1, 0) == 1 && f.revents & POLLOUT;
}

static ssize_t stderr_put(const char *p, size_t n) {
        ssize_t k = send(STDERR_FILENO, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        return k < 0 && errno == ENOTSOCK ? write(STDERR_FILENO, p, n) : k;
}

size_t stderr_write(const char *p, size_t n) {
        size_t at = 0;
        while (at < n && stderr_takes()) {
                ssize_t k = stderr_put(p + at, n - at < PIPE_BUF ? n - at : PIPE_BUF);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        break;
                at += (size_t)k;
        }
        return at;
}

void stderr_widen_pipe(void) {
#ifdef F_GETPIPE_SZ /* only Linux has it */
        int size = fcntl(STDERR_FILENO, F_GETPIPE_SZ);
        if (size > 0 && size < WIDE)
                (void)fcntl(STDERR_FILENO, F_SETPIPE_SZ, WIDE);
#endif
}

void stderr_bug(const char *file, int line, const char *cond) {
        char text[512];
        int n = snprintf(text, sizeof text, "BUG at %s:%d: %s\n", file, line, cond);
        if (n > 0)
                stderr_write(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
        abort();
}
