/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/conn_evict.h"
#include "base/stderr.h"
#include "base/loop.h"
#include "base/mem.h"

enum {
        CLOSING = 16,                /* connections beyond the limit that are being closed */
        CONNECTION_MEMORY = 8 << 10, /* for a request and its headers */
        SHORT_BODY = 1 << 10,
        MAX_BODY = 16 << 20,
        BACKLOG = 64,
        CROWD_MAX = 256,
};

const struct http_limits http_limits_default = {
        .connections = 32,
        .request_ms = 10000,
        .idle_ms = 90000, /* Prometheus usually scrapes once a minute */
        .answers_bytes = 256 << 10,
};

struct conn {
        TAILQ_ENTRY(conn) link;
        struct conn_evict_addr addr;
        int fd; /* libmicrohttpd's */
        uint64_t active_ms, ends_ms;
        bool ended; /* shut down; libmicrohttpd closes it later */
};

/* Memory that a request holds until its answer has been read. */
struct request {
        size_t bytes;
};

struct answer {
        char *path; /* NULL: there is none */
        int status;
        size_t bytes;
        struct MHD_Response *response;
};

struct http_server {
        uv_loop_t *loop;
        const struct http_limits *limits;
        TAILQ_HEAD(, conn) conns;
        size_t answers_bytes;
        struct answer made; /* the long answer of this turn: nothing changes before the next turn */
        struct MHD_Daemon *daemon;
        struct loop_fd poll; /* on libmicrohttpd's epoll descriptor, which has all its sockets */
        struct loop_timer timer;
        struct loop_turn again; /* libmicrohttpd has more to do at once */
        http_handler_fn *fn;
        void *u;
        int port;
};

/* Requests. */

static const char plain[] = "text/plain; charset=utf-8";

/* NULL: out of memory. */
static struct MHD_Response *response(const char *content_type, struct str body,
                                     enum MHD_ResponseMemoryMode mode) {
        struct MHD_Response *r = MHD_create_response_from_buffer(body.n, (void *)(uintptr_t)body.p, mode);
        if (!r) {
                if (mode == MHD_RESPMEM_MUST_FREE)
                        free((void *)(uintptr_t)body.p);
        } else if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) != MHD_YES) {
                MHD_destroy_response(r);
                r = NULL;
        }
        return r;
}

/* Answers with an error, and a text that explains it. */
static enum MHD_Result refuse(struct MHD_Connection *c, int status, const char *words) {
        struct MHD_Response *r = response(plain, str_from(words), MHD_RESPMEM_PERSISTENT);
        if (!r)
                return MHD_NO;
        enum MHD_Result ok = MHD_YES;
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                ok = MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        if (ok == MHD_YES)
                ok = MHD_queue_response(c, (unsigned)status, r);
        MHD_destroy_response(r);
        return ok;
}

/* Requests that are being answered keep their reference to the response. */
static void http_server_forget(struct answer *a) {
        if (a->response)
                MHD_destroy_response(a->response);
        free(a->path);
        *a = (struct answer){ 0 };
}

/* response is NULL when it is too large, or memory is out. */
static struct answer http_server_make(const struct http_server *s, const char *path) {
        struct buf out = BUF_INIT(MAX_BODY);
        const char *content_type = plain;
        struct answer a = { .path = xstrdup(path) };
        a.status = s->fn(s->u, path, &out, &content_type);
        if (out.failed) {
                buf_done(&out);
                return a;
        }
        a.bytes = out.n;
        a.response = response(content_type, (struct str){ buf_steal(&out), a.bytes }, MHD_RESPMEM_MUST_FREE);
        return a;
}

static struct conn *conn_of(struct MHD_Connection *c) {
        return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static enum MHD_Result answer_with(struct http_server *s, struct MHD_Connection *c, struct request *request,
                                   const struct answer *a) {
        if (!a->response)
                return refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "the answer is too large\n");
        if (a->bytes > SHORT_BODY && s->answers_bytes &&
            a->bytes + s->answers_bytes > s->limits->answers_bytes)
                return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "too many answers wait for their readers\n");
        request->bytes = a->bytes;
        s->answers_bytes += a->bytes;
        return MHD_queue_response(c, (unsigned)a->status, a->response);
}

/* An answer in the first call for a request closes the connection: libmicrohttpd cannot know that no body
 * follows. */
static enum MHD_Result on_request(void *u, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **state) {
        struct http_server *s = u;
        if (!streq(method, "GET") && !streq(method, "HEAD"))
                return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is allowed\n");
        if (!*state) {
                *state = xnew(struct request);
                return MHD_YES;
        }
        if (*upload_n) {
                *upload_n = 0;
                return MHD_YES;
        }
        struct conn *conn = conn_of(c);
        struct request *request = *state;
        conn->active_ms = uv_now(s->loop);
        conn->ends_ms = conn->active_ms + s->limits->request_ms;
        if (s->made.path && streq(s->made.path, path))
                return answer_with(s, c, request, &s->made);
        struct answer a = http_server_make(s, path);
        enum MHD_Result ok = answer_with(s, c, request, &a);
        if (a.bytes > SHORT_BODY) {
                http_server_forget(&s->made);
                s->made = a;
        } else {
                http_server_forget(&a);
        }
        return ok;
}

static void http_server_on_completed(void *u, struct MHD_Connection *c, void **state,
                                     enum MHD_RequestTerminationCode code) {
        struct http_server *s = u;
        struct conn *conn = conn_of(c);
        struct request *request = *state;
        if (!request)
                return;
        s->answers_bytes -= request->bytes;
        free(request);
        *state = NULL;
        conn->active_ms = uv_now(s->loop);
        conn->ends_ms = conn->active_ms + s->limits->idle_ms;
}

/* Connections. libmicrohttpd has no function that closes one. After the shutdown it finds that the peer has
 * ended it. */

static void http_server_end(struct conn *c) {
        c->ended = true;
        (void)shutdown(c->fd, SHUT_RDWR);
}

static void http_server_make_room(struct http_server *s) {
        struct conn_evict_conn m[CROWD_MAX];
        struct conn *of[CROWD_MAX], *c;
        size_t n = 0;
        TAILQ_FOREACH (c, &s->conns, link) {
                if (c->ended || n == CROWD_MAX)
                        continue;
                /* A new connection has no request yet, so `unfinished` means nothing here. Its age counts. */
                m[n] = (struct conn_evict_conn){ .addr = c->addr, .since_ms = c->active_ms };
                of[n++] = c;
        }
        if (n > s->limits->connections)
                http_server_end(of[conn_evict_choose(m, n)]);
}

static void http_server_on_connection(void *u, struct MHD_Connection *c, void **context,
                                      enum MHD_ConnectionNotificationCode code) {
        struct http_server *s = u;
        struct conn *conn = *context;
        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                TAILQ_REMOVE(&s->conns, conn, link);
                free(conn);
                return;
        }
        *context = conn = xnew(struct conn);
        conn->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        conn->addr = conn_evict_peer(conn->fd);
        conn->active_ms = uv_now(s->loop);
        conn->ends_ms = conn->active_ms + s->limits->request_ms;
        TAILQ_INSERT_TAIL(&s->conns, conn, link);
        http_server_make_room(s);
}

/* The loop. */

/* Other work of the loop runs between two calls of MHD_run(), even if a client sends requests without end. */
static void http_server_run(struct http_server *s) {
        MHD_UNSIGNED_LONG_LONG wait_ms;
        uint64_t next = UINT64_MAX;
        struct conn *c;
        MHD_run(s->daemon);
        http_server_forget(&s->made);
        if (MHD_get_timeout(s->daemon, &wait_ms) == MHD_YES) {
                if (wait_ms == 0)
                        loop_turn_start(&s->again);
                else
                        next = uv_now(s->loop) + wait_ms;
        }
        TAILQ_FOREACH (c, &s->conns, link)
                if (!c->ended && c->ends_ms < next)
                        next = c->ends_ms;
        loop_timer_at(&s->timer, next);
}

static void http_server_on_timer(void *u) {
        struct http_server *s = u;
        struct conn *c;
        TAILQ_FOREACH (c, &s->conns, link)
                if (!c->ended && c->ends_ms <= uv_now(s->loop))
                        http_server_end(c);
        http_server_run(s);
}

static void on_poll(void *u, int events) {
        http_server_run(u);
}

static void http_server_on_turn(void *u) {
        http_server_run(u);
}

/* Starting. */

/* The listening socket, or a negative errno. */
static int bind_address(const struct addrinfo *a) {
        const int on = 1, off = 0;
        _cleanup_(closep) int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (a->ai_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* The same for the first address of a host; without a host, for all addresses of the family. */
static int bind_host(const char *endpoint, const char *host, const char *port, int family, struct err *e) {
        const struct addrinfo hints = { .ai_family = family,
                                        .ai_socktype = SOCK_STREAM,
                                        .ai_flags = AI_PASSIVE };
        struct addrinfo *found;
        int r = getaddrinfo(host, port, &hints, &found);
        if (r != 0)
                return err_set(e, ERR_INVALID, EINVAL, "endpoint '%s': %s", endpoint, gai_strerror(r));
        r = bind_address(found);
        freeaddrinfo(found);
        return r < 0 ? err_errno(e, -r, "listen on '%s'", endpoint) : r;
}

static int listen_on(const char *endpoint, struct err *e) {
        const char *colon = strrchr(endpoint, ':');
        int64_t port;
        if (!colon || !str_to_i64(str_from(colon + 1), &port) || port < 0 || port > UINT16_MAX)
                return err_set(e, ERR_INVALID, EINVAL, "endpoint '%s' is not HOST:PORT or :PORT", endpoint);
        struct str host = { endpoint, (size_t)(colon - endpoint) };
        if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
                host = (struct str){ host.p + 1, host.n - 2 };
        _cleanup_(freep) char *name = xstrndup(host.p, host.n);
        if (*name)
                return bind_host(endpoint, name, colon + 1, AF_UNSPEC, e);

        /* All addresses of both families, or only of IPv4 if the kernel has no IPv6. */
        int fd = bind_host(endpoint, NULL, colon + 1, AF_INET6, e);
        if (fd < 0 && (e->code == EAFNOSUPPORT || e->code == EADDRNOTAVAIL))
                fd = bind_host(endpoint, NULL, colon + 1, AF_INET, e);
        return fd;
}

static int port_of(int fd) {
        struct sockaddr_storage a = { 0 };
        socklen_t n = sizeof a;
        if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
                return -1;
        return ntohs(((const struct sockaddr_in *)&a)->sin_port); /* at the same place in both families */
}

int http_server_new(uv_loop_t *loop, const struct http_server_options *o, struct http_server **ret,
                    struct err *e) {
        const struct http_limits *limits = o->limits ?: &http_limits_default;
        BUG_ON(limits->connections >= CROWD_MAX);
        int fd = listen_on(o->endpoint, e);
        if (fd < 0)
                return -1;
        struct http_server *s = xnew(struct http_server);
        s->loop = loop;
        s->limits = limits;
        s->fn = o->fn;
        s->u = o->u;
        s->port = port_of(fd);
        TAILQ_INIT(&s->conns);
        s->daemon =
                MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
                                 MHD_OPTION_CONNECTION_LIMIT, limits->connections + CLOSING,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                                 MHD_OPTION_NOTIFY_CONNECTION, http_server_on_connection, s,
                                 MHD_OPTION_NOTIFY_COMPLETED, http_server_on_completed, s, MHD_OPTION_END);
        const union MHD_DaemonInfo *info =
                s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        int r = info ? loop_fd_init(&s->poll, loop, info->epoll_fd, on_poll, s) : UV_ENOMEM;
        if (r < 0) {
                if (s->daemon)
                        MHD_stop_daemon(s->daemon);
                else
                        close(fd);
                free(s);
                return err_errno(e, -r, "listen on '%s': start the HTTP server", o->endpoint);
        }
        loop_timer_init(&s->timer, loop, http_server_on_timer, s);
        loop_turn_init(&s->again, loop, http_server_on_turn, s);
        loop_fd_start(&s->poll, UV_READABLE);
        *ret = s;
        return 0;
}

void http_server_free(struct http_server *s) {
        if (!s)
                return;
        loop_fd_done(&s->poll);
        loop_timer_done(&s->timer);
        loop_turn_done(&s->again);
        MHD_stop_daemon(s->daemon);
        free(s);
}

int http_server_port(const struct http_server *s) {
        return s->port;
}
