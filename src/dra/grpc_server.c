/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/grpc_server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"
#include "dra/grpc_conn.h"

enum {
        READ_SIZE = 64 << 10,
        READS_PER_TURN = 32, /* of one connection, so that others are served, too */
        FRAME = 32 << 10,    /* a write may exceed its limit by one frame with its header */
};

/* A message with 1024 claims fits easily. */
const struct grpc_limits grpc_limits_trusted = {
        .message_bytes = GRPC_MAX_MESSAGE,
        .buffered_bytes = GRPC_MAX_BUFFERED,
        .header_bytes = 16 << 10,
        .write_bytes = 256 << 10,
        .calls = GRPC_MAX_CALLS,
        .acks = 1000,
        .connections = 128,
};

struct listener {
        SLIST_ENTRY(listener) link;
        struct loop_fd poll;
        int fd;
        struct grpc_server *server;
        char *path;
        dev_t dev; /* of the socket file: another process may have replaced it by its own */
        ino_t ino;
};

struct conn {
        TAILQ_ENTRY(conn) link; /* until it is closed */
        struct loop_fd poll;
        struct loop_timer deadline;
        int fd;
        struct grpc_server *server;
        struct grpc_conn *proto; /* NULL: it is closed */
        struct buf out;
        struct guard guard;
        bool dirty, writing; /* writing: the socket has not accepted all bytes */
};

struct grpc_server {
        uv_loop_t *loop;
        const struct grpc_limits *limits;
        struct loop_turn turn; /* waits while a connection is dirty */
        const struct grpc_method *methods;
        void *u; /* the handlers' */
        SLIST_HEAD(, listener) listeners;
        TAILQ_HEAD(, conn) conns;
        unsigned n_conns;
        struct guard guard;
        int spare; /* closed when the process has no free descriptor */
        char read_buffer[READ_SIZE];
};

static void server_destroy(struct grpc_server *s) {
        closep(&s->spare);
        free(s);
}

/* Connections. */

static void conn_destroy(struct conn *c) {
        buf_done(&c->out);
        free(c);
}

static void conn_close(struct conn *c) {
        if (c->guard.dead)
                return;
        bool now = guard_free(&c->guard);
        TAILQ_REMOVE(&c->server->conns, c, link);
        c->server->n_conns--;
        loop_fd_done(&c->poll);
        loop_timer_done(&c->deadline);
        close(c->fd);
        grpc_conn_break(c->proto);
        grpc_conn_free(TAKE(c->proto));
        if (now)
                conn_destroy(c);
}

/* Writes as much of c->out as the socket accepts at once. */
static int write_now(struct conn *c) {
        while (c->out.n) {
                ssize_t n = write(c->fd, c->out.p, c->out.n);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -1;
                buf_consume(&c->out, (size_t)n);
        }
        return 0;
}

/* Sends the last frames as far as the socket accepts them at once, and does not wait for a peer that does not
 * read. */
static void conn_finish(struct conn *c) {
        if (c->guard.dead)
                return;
        if (!c->writing) {
                grpc_conn_output(c->proto, &c->out, c->server->limits->write_bytes);
                (void)write_now(c);
        }
        conn_close(c);
}

/* Encloses all code that may run a handler, because a handler may free the server. */
static void conn_enter(struct conn *c) {
        guard_enter(&c->server->guard);
        guard_enter(&c->guard);
}

static void conn_leave(struct conn *c) {
        struct grpc_server *s = c->server;
        if (s->guard.dead)
                conn_finish(c);
        if (guard_leave(&c->guard))
                conn_destroy(c);
        if (guard_leave(&s->guard))
                server_destroy(s);
}

/* True if there is nothing more to do, or if conn_leave() will do it. */
static bool conn_ends(const struct conn *c) {
        return c->guard.dead || c->server->guard.dead;
}

static void conn_wake(void *u) {
        struct conn *c = u;
        c->dirty = true;
        if (!c->server->guard.dead)
                loop_turn_start(&c->server->turn);
}

static void grpc_server_on_deadline(void *u) {
        struct conn *c = u;
        conn_enter(c);
        grpc_conn_expire(c->proto, uv_now(c->server->loop));
        conn_leave(c);
}

static void arm_deadline(struct conn *c) {
        loop_timer_at(&c->deadline, grpc_conn_deadline(c->proto));
}

/* Writes the pending bytes, once per turn for all answers. */
static void conn_flush(struct conn *c) {
        const struct grpc_limits *l = c->server->limits;
        grpc_conn_output(c->proto, &c->out, l->write_bytes);
        if (conn_ends(c))
                return;
        bool more = c->out.n >= l->write_bytes;
        if (write_now(c) < 0) {
                conn_close(c);
        } else if (c->out.n) {
                c->writing = true;
                loop_fd_start(&c->poll, UV_READABLE | UV_WRITABLE);
        } else if (more) {
                conn_wake(c);
        } else if (grpc_conn_finished(c->proto)) {
                conn_close(c);
        }
}

static void grpc_server_on_turn(void *u) {
        struct grpc_server *s = u;
        struct conn *c, *next;
        guard_enter(&s->guard);
        for (c = TAILQ_FIRST(&s->conns); c && !s->guard.dead; c = next) {
                /* `next` stays valid: only the end of the server frees other connections. */
                next = TAILQ_NEXT(c, link);
                if (!c->dirty)
                        continue;
                c->dirty = false;
                conn_enter(c);
                if (!c->writing)
                        conn_flush(c);
                else if (grpc_conn_is_broken(c->proto))
                        conn_close(c); /* the peer does not read, so do not wait for it */
                if (!conn_ends(c))
                        arm_deadline(c);
                conn_leave(c);
        }
        if (guard_leave(&s->guard))
                server_destroy(s);
}

static void conn_read(struct conn *c, bool failed) {
        struct grpc_server *s = c->server;
        for (unsigned i = 0; i < READS_PER_TURN && !conn_ends(c); i++) {
                ssize_t n = read(c->fd, s->read_buffer, READ_SIZE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN && !failed)
                        return;
                if (n <= 0) {
                        conn_close(c);
                        return;
                }
                grpc_conn_recv(c->proto, s->read_buffer, (size_t)n, uv_now(s->loop));
                if (n < READ_SIZE && !failed)
                        return;
        }
        if (failed && !conn_ends(c)) /* libuv does not poll the socket any more */
                conn_close(c);
}

static void conn_write_on(struct conn *c) {
        if (write_now(c) < 0) {
                conn_close(c);
        } else if (!c->out.n) {
                c->writing = false;
                loop_fd_start(&c->poll, UV_READABLE);
                conn_wake(c);
        }
}

static void grpc_server_on_ready(void *u, int events) {
        struct conn *c = u;
        conn_enter(c);
        if (events != UV_WRITABLE)
                conn_read(c, events == 0);
        if (events & UV_WRITABLE && !conn_ends(c))
                conn_write_on(c);
        conn_leave(c);
}

/* Takes fd. */
static void conn_begin(struct listener *l, int fd) {
        struct grpc_server *s = l->server;
        struct conn *c = xnew(struct conn);
        if (s->n_conns >= s->limits->connections ||
            loop_fd_init(&c->poll, s->loop, fd, grpc_server_on_ready, c) < 0) {
                close(fd);
                free(c);
                return;
        }
        c->server = s;
        c->fd = fd;
        c->out = BUF_INIT(s->limits->write_bytes + FRAME);
        c->proto = grpc_conn_new(s->methods, s->u, s->limits, conn_wake, c);
        loop_timer_init(&c->deadline, s->loop, grpc_server_on_deadline, c);
        loop_fd_start(&c->poll, UV_READABLE);
        s->n_conns++;
        TAILQ_INSERT_TAIL(&s->conns, c, link);
        conn_wake(c); /* our SETTINGS */
}

/* Without a free descriptor, a connection would stay in the queue, and the loop would find it in each turn.
 * So accepts it with the spare descriptor and closes it. False: there was no connection. */
static bool hang_up(struct listener *l) {
        struct grpc_server *s = l->server;
        closep(&s->spare);
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        closep(&fd);
        s->spare = eventfd(0, EFD_CLOEXEC);
        return fd >= 0;
}

static void grpc_server_on_connection(void *u, int events) {
        struct listener *l = u;
        for (;;) {
                int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd >= 0)
                        conn_begin(l, fd);
                else if (errno != EINTR && errno != ECONNABORTED &&
                         !((errno == EMFILE || errno == ENFILE) && hang_up(l)))
                        return;
        }
}

/* Listening. */

/* Unlinks the file only if it is still ours, because another process may have replaced it. */
static void listener_close(struct listener *l) {
        struct stat st;
        if (l->ino && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
                unlink(l->path);
        SLIST_REMOVE(&l->server->listeners, l, listener, link);
        loop_fd_done(&l->poll);
        close(l->fd);
        free(l->path);
        free(l);
}

/* Takes fd in any case. */
static struct listener *listener_new(struct grpc_server *s, const char *path, int fd, struct err *e) {
        struct listener *l = xnew(struct listener);
        int r = listen(fd, (int)s->limits->connections) < 0
                        ? -errno
                        : loop_fd_init(&l->poll, s->loop, fd, grpc_server_on_connection, l);
        if (r < 0) {
                (void)err_errno(e, -r, "listen on '%s'", path);
                close(fd);
                free(l);
                return NULL;
        }
        l->server = s;
        l->fd = fd;
        l->path = xstrdup(path);
        loop_fd_start(&l->poll, UV_READABLE);
        SLIST_INSERT_HEAD(&s->listeners, l, link);
        return l;
}

/* A temporary name in the same folder. The kubelet's watcher ignores names that start with a dot. */
static char *grpc_server_temporary_name(const char *path) {
        static unsigned count;
        const char *slash = strrchr(path, '/');
        int dir_n = slash ? (int)(slash - path + 1) : 0;
        return xasprintf("%.*s.%x.%x.%x", dir_n, path, (unsigned)getpid(), (unsigned)(uv_hrtime() >> 10),
                         count++);
}

/* Gives the bound socket its name, once connections to it succeed. Takes fd in any case. */
static int grpc_server_publish(struct grpc_server *s, int fd, const char *temporary, const char *path,
                               mode_t mode, struct err *e) {
        struct listener *l;
        struct stat st;
        if (chmod(temporary, mode) < 0 || lstat(temporary, &st) < 0) {
                (void)err_errno(e, errno, "listen on '%s': set its mode", path);
                close(fd);
                return -1;
        }
        l = listener_new(s, path, fd, e);
        if (!l)
                return -1;
        if (rename(temporary, path) < 0) {
                (void)err_errno(e, errno, "listen on '%s': rename", path);
                listener_close(l);
                return -1;
        }
        l->dev = st.st_dev;
        l->ino = st.st_ino;
        return 0;
}

/* Replaces a stale socket atomically, so that a client that finds the file can connect. */
int grpc_server_listen_unix(struct grpc_server *s, const char *path, mode_t mode, struct err *e) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        _cleanup_(freep) char *temporary = grpc_server_temporary_name(path);
        if (strlen(temporary) >= sizeof addr.sun_path || strlen(path) >= sizeof addr.sun_path)
                return err_set(e, ERR_INVALID, ENAMETOOLONG,
                               "listen on '%s': the path is too long for a socket", path);
        memcpy(addr.sun_path, temporary, strlen(temporary));

        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_errno(e, errno, "listen on '%s': socket", path);
        if (bind(fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
                return err_errno(e, errno, "listen on '%s': bind", path);
        int r = grpc_server_publish(s, TAKE_FD(fd), temporary, path, mode, e);
        if (r < 0)
                unlink(temporary);
        return r;
}

/* The server. */

struct grpc_server *grpc_server_new(uv_loop_t *loop, const struct grpc_method *methods,
                                    const struct grpc_limits *l, void *u) {
        struct grpc_server *s = xnew(struct grpc_server);
        /* A write to a closed connection must be an error, not a signal that ends the process. */
        signal(SIGPIPE, SIG_IGN);
        s->loop = loop;
        s->methods = methods;
        s->u = u;
        s->limits = l;
        SLIST_INIT(&s->listeners);
        TAILQ_INIT(&s->conns);
        loop_turn_init(&s->turn, loop, grpc_server_on_turn, s);
        s->spare = eventfd(0, EFD_CLOEXEC);
        return s;
}

void grpc_server_free(struct grpc_server *s) {
        struct listener *l;
        struct conn *c, *next;
        if (!s || s->guard.dead)
                return;
        guard_enter(&s->guard);
        (void)guard_free(&s->guard);
        while ((l = SLIST_FIRST(&s->listeners)))
                listener_close(l);
        loop_turn_done(&s->turn);
        for (c = TAILQ_FIRST(&s->conns); c; c = next) {
                next = TAILQ_NEXT(c, link);
                grpc_conn_shutdown(c->proto);
                if (!c->guard.busy)
                        conn_finish(c);
        }
        if (guard_leave(&s->guard))
                server_destroy(s);
}
