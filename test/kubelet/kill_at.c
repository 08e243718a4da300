/* SPDX-License-Identifier: Apache-2.0 */
/* kill_at: a preloaded library that kills its program (as kill -9) before the n-th call of certain functions,
 * counted over all threads. strace counts each thread separately, so the first thread would hide the others.
 *
 *     LD_PRELOAD=libkill-at.so KILL_AT=7 KILL_CALLS=,rename,renameat,    PROGRAM
 *
 * Child processes are not counted, and do not inherit it. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char calls[200]; /* ",a,b,"; "" until the constructor has run */
static atomic_long left;
static pid_t self;

__attribute__((constructor)) static void begin(void) {
        const char *n = getenv("KILL_AT"), *names = getenv("KILL_CALLS");
        self = getpid();
        atomic_store(&left, n ? atol(n) : 0);
        if (n && names && atomic_load(&left) > 0)
                snprintf(calls, sizeof calls, "%s", names);
        unsetenv("LD_PRELOAD");
        unsetenv("KILL_AT");
        unsetenv("KILL_CALLS");
}

static void count(const char *name) {
        if (!calls[0])
                return;
        const char *at = strstr(calls, name);
        size_t n = strlen(name);
        if (!at || at[-1] != ',' || at[n] != ',' || getpid() != self)
                return;
        if (atomic_fetch_sub(&left, 1) == 1)
                kill(self, SIGKILL);
}

#define CALL(type, name, params, args)                                                                       \
        type name params;                                                                                    \
        type name params {                                                                                   \
                static type(*real) params;                                                                   \
                int saved = errno;                                                                           \
                if (!real)                                                                                   \
                        *(void **)(void *)&real = dlsym(RTLD_NEXT, #name);                                   \
                count(#name);                                                                                \
                errno = saved;                                                                               \
                return real args;                                                                            \
        }
CALL(int, fsync, (int fd), (fd))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
CALL(int, rmdir, (const char *path), (path))
CALL(int, remove, (const char *path), (path))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, pipe2, (int fds[2], int flags), (fds, flags))
CALL(int, connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n))
CALL(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
