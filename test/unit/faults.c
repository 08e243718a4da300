/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>
#include <yyjson.h>

#include "base/str.h"

static bool counting, killing;
static const char *only;   /* NULL: all calls count */
static unsigned left;      /* calls until one fails; 0: none fails */
static unsigned calls;     /* in this round */
static const char *failed; /* the call that failed in this round */
static int own_errno;      /* 0: that of the call */
static bool always;        /* the calls after the one that fails fail, too */

/* Some calls are made in other threads. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static const char *hold; /* calls of this name wait */
static unsigned waiting;

static bool count(const char *call) {
        if (!counting || (only && !streq(only, call)))
                return false;
        calls++;
        bool again = always && failed;
        if (!again && (left == 0 || --left > 0))
                return false;
        if (killing)
                raise(SIGKILL);
        failed = call;
        return true;
}

bool faults_hit(const char *call, int errnum) {
        if (hold && streq(call, hold) && gettid() == getpid())
                fail_msg("the loop is blocked in %s", call);
        pthread_mutex_lock(&mutex);
        while (hold && streq(call, hold)) {
                waiting++;
                pthread_cond_wait(&released, &mutex);
                waiting--;
        }
        bool hit = count(call);
        pthread_mutex_unlock(&mutex);
        if (hit)
                errno = own_errno ? own_errno : errnum;
        return hit;
}

void faults_hold(const char *call) {
        pthread_mutex_lock(&mutex);
        hold = call;
        pthread_mutex_unlock(&mutex);
}

bool faults_held(void) {
        pthread_mutex_lock(&mutex);
        bool any = waiting > 0;
        pthread_mutex_unlock(&mutex);
        return any;
}

void faults_release(void) {
        pthread_mutex_lock(&mutex);
        hold = NULL;
        pthread_cond_broadcast(&released);
        pthread_mutex_unlock(&mutex);
}

static void begin(const char *call, unsigned n) {
        only = call;
        left = n;
        calls = 0;
        failed = NULL;
        own_errno = 0;
        always = false;
        counting = true;
}

void faults_at(const char *call, unsigned n) {
        begin(call, n);
}

void faults_at_with(const char *call, unsigned n, int errnum, bool all) {
        begin(call, n);
        own_errno = errnum;
        always = all;
}

void faults_kill_at(unsigned n) {
        begin(NULL, n);
        killing = true;
}

bool faults_off(void) {
        counting = false;
        return failed;
}

unsigned faults_calls(void) {
        return calls;
}

/* ---- the calls ---- */

#define W FAULTS_WRAP
W(int, -1, EMFILE, pipe2, (int fds[2], int flags), (fds, flags))
W(int, -1, EMFILE, socket, (int domain, int type, int protocol), (domain, type, protocol))
W(int, -1, EADDRINUSE, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
W(int, -1, EADDRINUSE, listen, (int fd, int backlog), (fd, backlog))
W(int, -1, ENOBUFS, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
W(pid_t, -1, EAGAIN, fork, (void), ())
W(ssize_t, -1, EIO, read, (int fd, void *p, size_t n), (fd, p, n))
W(ssize_t, -1, EIO, pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
W(ssize_t, -1, ENOSPC, write, (int fd, const void *p, size_t n), (fd, p, n))
W(ssize_t, -1, ENOSPC, pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
W(int, -1, EIO, ftruncate64, (int fd, off_t n), (fd, n))
W(int, -1, EIO, fsync, (int fd), (fd))
W(int, -1, ENOLCK, flock, (int fd, int op), (fd, op))
W(int, -1, EPERM, fchmod, (int fd, mode_t mode), (fd, mode))
W(int, -1, EPERM, chmod, (const char *path, mode_t mode), (path, mode))
W(int, -1, EIO, stat64, (const char *path, struct stat *st), (path, st))
W(int, -1, EIO, fstat64, (int fd, struct stat *st), (fd, st))
W(int, -1, EIO, lstat64, (const char *path, struct stat *st), (path, st))
W(int, -1, ENOSPC, mkdir, (const char *path, mode_t mode), (path, mode))
W(int, -1, ENOSPC, rename, (const char *from, const char *to), (from, to))
W(int, -1, ENOSPC, link, (const char *from, const char *to), (from, to))
W(int, -1, EROFS, unlink, (const char *path), (path))
W(int, -1, EROFS, remove, (const char *path), (path))
W(DIR *, NULL, EMFILE, opendir, (const char *path), (path))
W(struct dirent *, NULL, EIO, readdir64, (DIR * d), (d))
W(int, -1, EMFILE, nftw64, (const char *path, __nftw_func_t fn, int fds, int flags), (path, fn, fds, flags))
W(int, EAI_MEMORY, ENOMEM, getaddrinfo,
  (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret),
  (node, service, hints, ret))
W(int, -1, ENOSPC, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask))
W(int, UV_ENOSPC, ENOSPC, uv_poll_init, (uv_loop_t * loop, uv_poll_t *h, int fd), (loop, h, fd))
W(int, UV_ENOMEM, ENOMEM, uv_signal_start, (uv_signal_t * h, uv_signal_cb cb, int signum), (h, cb, signum))
W(int, UV_ENOMEM, ENOMEM, uv_pipe_open, (uv_pipe_t * h, uv_file fd), (h, fd))
W(int, UV_ENOMEM, ENOMEM, uv_tcp_open, (uv_tcp_t * h, uv_os_sock_t fd), (h, fd))
W(int, UV_EADDRINUSE, EADDRINUSE, uv_listen, (uv_stream_t * h, int backlog, uv_connection_cb cb),
  (h, backlog, cb))

/* Calls that change their arguments even when they fail */

yyjson_doc *__real_yyjson_read_opts(char *p, size_t n, yyjson_read_flag f, const yyjson_alc *a,
                                    yyjson_read_err *e);
yyjson_doc *__wrap_yyjson_read_opts(char *p, size_t n, yyjson_read_flag f, const yyjson_alc *a,
                                    yyjson_read_err *e);
yyjson_doc *__wrap_yyjson_read_opts(char *p, size_t n, yyjson_read_flag f, const yyjson_alc *a,
                                    yyjson_read_err *e) {
        if (!faults_hit("yyjson_read_opts", ENOMEM))
                return __real_yyjson_read_opts(p, n, f, a, e);
        if (e)
                *e = (yyjson_read_err){ .code = YYJSON_READ_ERROR_MEMORY_ALLOCATION,
                                        .msg = "memory allocation failed" };
        return NULL;
}

/* Calls with "..." */

struct MHD_Daemon *__wrap_MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback apc,
                                           void *apc_u, MHD_AccessHandlerCallback dh, void *dh_u, ...);
struct MHD_Daemon *__wrap_MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback apc,
                                           void *apc_u, MHD_AccessHandlerCallback dh, void *dh_u, ...) {
        va_list ap;
        va_start(ap, dh_u);
        struct MHD_Daemon *d = faults_hit("MHD_start_daemon", ENOMEM)
                                       ? NULL
                                       : MHD_start_daemon_va(flags, port, apc, apc_u, dh, dh_u, ap);
        va_end(ap);
        return d;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...) {
        mode_t mode = 0;
        va_list ap;
        va_start(ap, flags);
        if (flags & O_CREAT)
                mode = va_arg(ap, mode_t);
        va_end(ap);
        return faults_hit("open64", EMFILE) ? -1 : __real_open64(path, flags, mode);
}

/* Only locks: nothing else in it can fail for us. */
int __real_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...) {
        va_list ap;
        va_start(ap, cmd);
        void *arg = va_arg(ap, void *);
        va_end(ap);
        bool lock = cmd == F_OFD_SETLK || cmd == F_OFD_GETLK;
        return lock && faults_hit("fcntl64", ENOLCK) ? -1 : __real_fcntl64(fd, cmd, arg);
}

/* ---- the rounds ---- */

static unsigned entries(const char *path) {
        DIR *d = path ? __real_opendir(path) : NULL;
        unsigned n = 0;
        while (d && __real_readdir64(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

static bool survived(const struct faults *f) {
        if (streq(f->survives, "*"))
                return true;
        const char *at = f->survives ? strstr(f->survives, failed) : NULL;
        return at && at[strlen(failed)] == ' ' && (at == f->survives || at[-1] == ' ');
}

/* One round. False: there was no n-th call. */
static bool round_of(const struct faults *f, unsigned n) {
        unsigned fds = entries("/proc/self/fd"), files = entries(f->dir);
        struct err e = { 0 };
        begin(NULL, n);
        int r = f->op(f->u, &e);
        counting = false;
        if (r == 0 && failed && !survived(f))
                fail_msg("call %u, %s, failed, but the error was not noticed", n, failed);
        if (r < 0 && !failed)
                fail_msg("it fails without an injected failure: %s", e.msg);
        if (r < 0 && (!e.msg[0] || (f->names && !strstr(e.msg, f->names))))
                fail_msg("after call %u, %s, failed: '%s' does not name '%s'", n, failed, e.msg,
                         str_or(f->names, ""));
        if (failed && entries("/proc/self/fd") != fds)
                fail_msg("call %u, %s, failed: %u descriptors before, %u after", n, failed, fds,
                         entries("/proc/self/fd"));
        if (r < 0 && entries(f->dir) != files)
                fail_msg("call %u, %s, failed: %u files before, %u after", n, failed, files, entries(f->dir));
        if (f->check)
                f->check(f->u, str_or(failed, ""), r == 0);
        return failed;
}

unsigned faults_each(const struct faults *f) {
        unsigned n = 0;
        round_of(f, 0); /* objects that are created on first use, such as a loop's signal pipe, stay */
        assert_true(calls > 0);
        while (round_of(f, n + 1))
                n++;
        return n;
}
