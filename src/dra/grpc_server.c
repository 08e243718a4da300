/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/grpc_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/crowd.h"
#include "base/mem.h"
#include "dra/grpc_conn.h"

enum {
        READ_SIZE = 64 << 10,
        FRAME = 32 << 10, /* a frame and its head may go beyond what one write should have */
};

/* A message of 1024 claims fits easily. */
const struct grpc_limits grpc_limits_trusted = {
        .message_bytes = GRPC_MAX_MESSAGE,
        .buffered_bytes = GRPC_MAX_BUFFERED,
        .header_bytes = 16 << 10,
        .write_bytes = 256 << 10,
        .calls = GRPC_MAX_CALLS,
        .acks = 1000,
        .connections = 128,
};

/* All that peers can make us hold together: 16 times about 30 KiB, half of it nghttp2's own. */
const struct grpc_limits grpc_limits_open = {
        .message_bytes = 1 << 10,
        .buffered_bytes = 8 << 10,
        .header_bytes = 4 << 10,
        .write_bytes = 8 << 10,
        .calls = 8,
        .acks = 16,
        .connections = 16,
        .request_ms = 10000,
};

union stream {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
};

struct listener {
        SLIST_ENTRY(listener) link;
        union stream h;
        struct grpc_server *server;
        char *path; /* NULL for TCP */
        dev_t dev;  /* of the socket file: another process may have put its own in our place */
        ino_t ino;
};

struct conn {
        TAILQ_ENTRY(conn) link;
        union stream h;
        uv_timer_t deadline;
        uv_write_t write;
        struct crowd_addr addr;
        uint64_t heard_ms, written_by_ms;
        struct grpc_server *server;
        struct grpc_conn *proto;
        struct buf out;
        unsigned open_handles;
        unsigned busy;                /* the protocol part, and so a handler, is on the stack */
        bool dirty, writing, closing; /* writing: the socket has not taken all yet, by written_by_ms it must
                                         have */
};

struct grpc_server {
        uv_loop_t *loop;
        const struct grpc_limits *limits;
        uv_idle_t turn; /* active while a connection is dirty */
        struct grpc_methods methods;
        SLIST_HEAD(, listener) listeners;
        TAILQ_HEAD(, conn) conns;
        unsigned n_conns;
        unsigned users; /* handles, listeners and connections not yet closed */
        bool closing;
        char read_buffer[READ_SIZE];
};

static void server_unref(struct grpc_server *s) {
        if (--s->users)
                return;
        while (!SLIST_EMPTY(&s->methods)) {
                struct grpc_method *m = SLIST_FIRST(&s->methods);
                SLIST_REMOVE_HEAD(&s->methods, link);
                free(m->path);
                free(m);
        }
        free(s);
}

/* Connections. */

static void conn_handle_closed(uv_handle_t *h) {
        struct conn *c = h->data;
        if (--c->open_handles)
                return;
        TAILQ_REMOVE(&c->server->conns, c, link);
        c->server->n_conns--;
        buf_done(&c->out);
        server_unref(c->server);
        free(c);
}

/* What is large goes at once: libuv accepts a whole queue of connections before it closes the first of those
 * that made room. What is being written stays until libuv has closed the handles. */
static void conn_close(struct conn *c) {
        if (c->closing)
                return;
        c->closing = true;
        uv_close(&c->h.handle, conn_handle_closed);
        uv_close((uv_handle_t *)&c->deadline, conn_handle_closed);
        grpc_conn_break(c->proto);
        grpc_conn_free(TAKE(c->proto));
        if (!c->writing)
                buf_done(&c->out);
}

/* Writes as much of c->out as the socket takes at once. */
static int write_now(struct conn *c) {
        uv_buf_t b = uv_buf_init(c->out.p, (unsigned)c->out.n);
        int n = c->out.n ? uv_try_write(&c->h.stream, &b, 1) : 0;
        if (n < 0)
                return n == UV_EAGAIN ? 0 : -1;
        buf_consume(&c->out, (size_t)n);
        return 0;
}

/* Says good-bye as far as the socket takes it at once: nobody waits for a peer that does not read. */
static void conn_finish(struct conn *c) {
        if (c->closing)
                return;
        if (!c->writing) {
                grpc_conn_output(c->proto, &c->out, c->server->limits->write_bytes);
                (void)write_now(c);
        }
        conn_close(c);
}

/* Around everything that may run a handler: a handler may free the server. */
static void conn_enter(struct conn *c) {
        c->busy++;
}

static void conn_leave(struct conn *c) {
        if (--c->busy == 0 && c->server->closing)
                conn_finish(c);
}

static void on_turn(uv_idle_t *turn);

static void conn_wake(void *u) {
        struct conn *c = u;
        c->dirty = true;
        if (!c->server->closing)
                uv_idle_start(&c->server->turn, on_turn);
}

static void on_deadline(uv_timer_t *t) {
        struct conn *c = t->data;
        uint64_t now = uv_now(c->server->loop);
        conn_enter(c);
        grpc_conn_expire(c->proto, now);
        conn_leave(c);
        if (c->writing && c->written_by_ms <= now)
                conn_close(c);
}

static void on_written(uv_write_t *w, int status) {
        struct conn *c = w->data;
        c->writing = false;
        buf_clear(&c->out);
        if (status < 0)
                conn_close(c);
        else
                conn_wake(c);
}

static void arm_deadline(struct conn *c) {
        uint64_t deadline = grpc_conn_deadline(c->proto), now = uv_now(c->server->loop);
        if (c->writing && c->written_by_ms < deadline)
                deadline = c->written_by_ms;
        if (deadline == UINT64_MAX)
                uv_timer_stop(&c->deadline);
        else
                uv_timer_start(&c->deadline, on_deadline, deadline > now ? deadline - now : 0, 0);
}

/* Writes what there is: once a turn, whatever number of calls was answered in it. */
static void conn_flush(struct conn *c) {
        const struct grpc_limits *l = c->server->limits;
        conn_enter(c);
        grpc_conn_output(c->proto, &c->out, l->write_bytes);
        conn_leave(c);
        if (c->closing)
                return;
        bool more = c->out.n >= l->write_bytes;
        if (write_now(c) < 0) {
                conn_close(c);
        } else if (c->out.n) {
                uv_buf_t b = uv_buf_init(c->out.p, (unsigned)c->out.n);
                c->writing = uv_write(&c->write, &c->h.stream, &b, 1, on_written) == 0;
                c->written_by_ms = l->request_ms ? uv_now(c->server->loop) + l->request_ms : UINT64_MAX;
                if (!c->writing)
                        conn_close(c);
        } else if (more) {
                conn_wake(c);
        } else if (grpc_conn_finished(c->proto)) {
                conn_close(c);
        }
}

static void on_turn(uv_idle_t *turn) {
        struct grpc_server *s = turn->data;
        struct conn *c;
        uv_idle_stop(turn);
        TAILQ_FOREACH (c, &s->conns, link) {
                if (!c->dirty)
                        continue;
                c->dirty = false;
                if (c->closing)
                        continue;
                if (!c->writing)
                        conn_flush(c);
                else if (grpc_conn_is_broken(c->proto))
                        conn_close(c); /* it does not read, and nobody waits for it */
                if (!c->closing)
                        arm_deadline(c);
        }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *ret) {
        struct conn *c = h->data;
        *ret = uv_buf_init(c->server->read_buffer, READ_SIZE); /* on_read is done with it when it returns */
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *b) {
        struct conn *c = h->data;
        if (n == 0 || c->closing)
                return;
        if (n < 0) {
                conn_close(c);
                return;
        }
        c->heard_ms = uv_now(c->server->loop);
        conn_enter(c);
        grpc_conn_recv(c->proto, b->base, (size_t)n, uv_now(c->server->loop));
        conn_leave(c);
}

/* Too many connections: one makes room, but none that a handler works for. */
static bool make_room(struct grpc_server *s) {
        _cleanup_(freep) struct crowd_member *m = xnew_n(struct crowd_member, s->n_conns);
        _cleanup_(freep) struct conn **of = xnew_n(struct conn *, s->n_conns);
        struct conn *c;
        size_t n = 0;
        TAILQ_FOREACH (c, &s->conns, link) {
                if (c->closing)
                        continue;
                m[n] = (struct crowd_member){ .addr = c->addr,
                                              .stays = grpc_conn_has_calls(c->proto),
                                              .unfinished = grpc_conn_is_unfinished(c->proto),
                                              .since_ms = c->heard_ms };
                of[n++] = c;
        }
        if (n < s->limits->connections)
                return true; /* those that are closing count no more */
        size_t victim = crowd_victim(m, n);
        if (victim < n)
                conn_close(of[victim]);
        return victim < n;
}

static void on_connection(uv_stream_t *h, int status) {
        struct listener *l = h->data;
        struct grpc_server *s = l->server;
        if (status < 0 || s->closing)
                return;
        bool room = s->n_conns < s->limits->connections || make_room(s);
        struct conn *c = xnew(struct conn);
        c->server = s;
        c->out = BUF_INIT(s->limits->write_bytes + FRAME);
        c->heard_ms = uv_now(s->loop);
        c->write.data = c;
        c->proto = grpc_conn_new(&s->methods, s->limits, conn_wake, c);
        if (l->path)
                uv_pipe_init(s->loop, &c->h.pipe, 0);
        else
                uv_tcp_init(s->loop, &c->h.tcp);
        uv_timer_init(s->loop, &c->deadline);
        c->h.handle.data = c->deadline.data = c;
        c->open_handles = 2;
        s->users++;
        s->n_conns++;
        TAILQ_INSERT_TAIL(&s->conns, c, link);
        /* Accepted in any case: what is left in the queue would stop libuv from reporting the next one. */
        if (uv_accept(h, &c->h.stream) < 0 || !room || uv_read_start(&c->h.stream, on_alloc, on_read) < 0) {
                conn_close(c);
                return;
        }
        uv_os_fd_t fd;
        if (!l->path) {
                uv_tcp_nodelay(&c->h.tcp, 1);
                if (uv_fileno(&c->h.handle, &fd) == 0)
                        c->addr = crowd_peer(fd);
        }
        conn_wake(c); /* our SETTINGS */
}

/* Listening. */

static void listener_closed(uv_handle_t *h) {
        struct listener *l = h->data;
        struct grpc_server *s = l->server;
        SLIST_REMOVE(&s->listeners, l, listener, link);
        free(l->path);
        free(l);
        server_unref(s);
}

static struct listener *listener_new(struct grpc_server *s, const char *path) {
        struct listener *l = xnew(struct listener);
        l->server = s;
        if (path) {
                l->path = xstrdup(path);
                uv_pipe_init(s->loop, &l->h.pipe, 0);
        } else {
                uv_tcp_init(s->loop, &l->h.tcp);
        }
        l->h.handle.data = l;
        SLIST_INSERT_HEAD(&s->listeners, l, link);
        s->users++;
        return l;
}

/* The file belongs to us as long as nobody has put another one in its place. */
static void listener_close(struct listener *l) {
        struct stat st;
        if (l->path && l->ino && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
                unlink(l->path);
        uv_close(&l->h.handle, listener_closed);
}

/* Takes fd over in any case. */
static int listener_start(struct listener *l, int fd, const char *name, struct err *e) {
        int r = l->path ? uv_pipe_open(&l->h.pipe, fd) : uv_tcp_open(&l->h.tcp, fd);
        if (r < 0)
                close(fd);
        else
                r = uv_listen(&l->h.stream, (int)l->server->limits->connections, on_connection);
        return r < 0 ? err_errno(e, -r, "listen on '%s'", name) : 0;
}

/* A name beside `path` that the kubelet does not look at: its watcher ignores names that start with a dot. */
static char *temporary_name(const char *path) {
        static unsigned count;
        const char *slash = strrchr(path, '/');
        int dir_n = slash ? (int)(slash - path + 1) : 0;
        return xasprintf("%.*s.%x.%x.%x", dir_n, path, (unsigned)getpid(), (unsigned)(uv_hrtime() >> 10),
                         count++);
}

/* Gives the bound socket its name, once connections to it succeed. */
static int listener_publish(struct listener *l, int fd, const char *temporary, mode_t mode, struct err *e) {
        struct stat st;
        if (chmod(temporary, mode) < 0 || lstat(temporary, &st) < 0) {
                (void)err_errno(e, errno, "listen on '%s': set its mode", l->path);
                close(fd);
                return -1;
        }
        if (listener_start(l, fd, l->path, e) < 0)
                return -1;
        if (rename(temporary, l->path) < 0)
                return err_errno(e, errno, "listen on '%s': rename", l->path);
        l->dev = st.st_dev;
        l->ino = st.st_ino;
        return 0;
}

/* A stale socket is replaced in one step: who finds the file can connect. */
int grpc_server_listen_unix(struct grpc_server *s, const char *path, mode_t mode, struct err *e) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        _cleanup_(freep) char *temporary = temporary_name(path);
        if (strlen(temporary) >= sizeof addr.sun_path || strlen(path) >= sizeof addr.sun_path)
                return err_set(e, ERR_INVALID, ENAMETOOLONG,
                               "listen on '%s': the path is too long for a socket", path);
        memcpy(addr.sun_path, temporary, strlen(temporary));

        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_errno(e, errno, "listen on '%s': socket", path);
        if (bind(fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
                return err_errno(e, errno, "listen on '%s': bind", path);
        struct listener *l = listener_new(s, path);
        if (listener_publish(l, TAKE_FD(fd), temporary, mode, e) < 0) {
                unlink(temporary);
                listener_close(l);
                return -1;
        }
        return 0;
}

/* All addresses of both families, or of IPv4 where the kernel has no IPv6. */
static int bind_any(int port) {
        const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                         .sin6_port = htons((uint16_t)port),
                                         .sin6_addr = in6addr_any };
        const struct sockaddr_in v4 = { .sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_ANY) };
        const int on = 1, off = 0;
        _cleanup_(closep) int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (six >= 0) {
                setsockopt(six, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
                setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
                if (bind(six, (const struct sockaddr *)&v6, sizeof v6) == 0)
                        return TAKE_FD(six);
                if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)
                        return -1;
        }
        _cleanup_(closep) int four = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (four < 0)
                return -1;
        setsockopt(four, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        return bind(four, (const struct sockaddr *)&v4, sizeof v4) == 0 ? TAKE_FD(four) : -1;
}

int grpc_server_listen_tcp(struct grpc_server *s, int port, int *ret_port, struct err *e) {
        _cleanup_(freep) char *name = xasprintf("port %d", port);
        if (port < 0 || port > UINT16_MAX)
                return err_set(e, ERR_INVALID, EINVAL, "listen on '%s': no such port", name);
        int fd = bind_any(port);
        if (fd < 0)
                return err_errno(e, errno, "listen on '%s'", name);
        struct sockaddr_storage addr = { 0 };
        socklen_t n = sizeof addr;
        struct listener *l = listener_new(s, NULL);
        if (getsockname(fd, (struct sockaddr *)&addr, &n) < 0) {
                (void)err_errno(e, errno, "listen on '%s'", name);
                close(fd);
                listener_close(l);
                return -1;
        }
        if (listener_start(l, fd, name, e) < 0) {
                listener_close(l);
                return -1;
        }
        if (ret_port) /* the field is at the same place in both families */
                *ret_port = ntohs(((const struct sockaddr_in *)&addr)->sin_port);
        return 0;
}

/* The server. */

static void turn_closed(uv_handle_t *h) {
        server_unref(h->data);
}

struct grpc_server *grpc_server_new(uv_loop_t *loop, const struct grpc_limits *l) {
        struct grpc_server *s = xnew(struct grpc_server);
        /* libuv writes with write(2): a peer that has gone must be an error of its connection, not the end of
         * the process. */
        signal(SIGPIPE, SIG_IGN);
        s->loop = loop;
        s->limits = l;
        SLIST_INIT(&s->methods);
        SLIST_INIT(&s->listeners);
        TAILQ_INIT(&s->conns);
        uv_idle_init(loop, &s->turn);
        s->turn.data = s;
        s->users = 1;
        return s;
}

void grpc_server_handle(struct grpc_server *s, const char *path, grpc_handler_fn *fn, void *u) {
        struct grpc_method *m = xnew(struct grpc_method);
        m->path = xstrdup(path);
        m->fn = fn;
        m->u = u;
        SLIST_INSERT_HEAD(&s->methods, m, link);
}

void grpc_server_free(struct grpc_server *s) {
        if (!s)
                return;
        s->closing = true;
        struct listener *l;
        struct conn *c;
        SLIST_FOREACH (l, &s->listeners, link)
                if (!uv_is_closing(&l->h.handle))
                        listener_close(l);
        uv_close((uv_handle_t *)&s->turn, turn_closed);
        TAILQ_FOREACH (c, &s->conns, link) {
                if (c->closing)
                        continue;
                grpc_conn_shutdown(c->proto);
                if (!c->busy)
                        conn_finish(c);
        }
}
