/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

struct fake_conn {
        LIST_ENTRY(fake_conn) entry;
        struct fake_server *server;
        uv_tcp_t tcp;
        bool open, closed, frozen;
        struct buf in;
};

struct fake_server {
        uv_loop_t *loop;
        uv_tcp_t listener;
        LIST_HEAD(, fake_conn) conns;
        fake_fn *fn;
        void *u;
        int port;
        unsigned requests, accepted, pending;
        bool listening, freed;
        char read_buffer[64 << 10];
};

static void maybe_free(struct fake_server *s) {
        struct fake_conn *c;
        if (!s->freed || s->pending)
                return;
        while ((c = LIST_FIRST(&s->conns))) {
                LIST_REMOVE(c, entry);
                buf_done(&c->in);
                free(c);
        }
        free(s);
}

static void conn_closed(uv_handle_t *h) {
        struct fake_conn *c = CONTAINER((uv_tcp_t *)h, struct fake_conn, tcp);
        c->closed = true;
        c->server->pending--;
        maybe_free(c->server);
}

void fake_close(struct fake_conn *c) {
        if (!c->open)
                return;
        c->open = false;
        uv_close((uv_handle_t *)&c->tcp, conn_closed);
}

bool fake_is_open(const struct fake_conn *c) {
        return c->open;
}

static void give_buffer(uv_handle_t *h, size_t n, uv_buf_t *b) {
        struct fake_conn *c = CONTAINER((uv_tcp_t *)h, struct fake_conn, tcp);
        *b = uv_buf_init(c->server->read_buffer, sizeof c->server->read_buffer);
}

/* Takes one complete request from the start of the input; false: it is not complete. */
static bool next_request(struct fake_conn *c) {
        const char *in = buf_str(&c->in), *end = strstr(in, "\r\n\r\n");
        size_t body_len = 0;

        if (!end)
                return false;
        size_t head_len = (size_t)(end - in) + 4;
        _cleanup_(freep) char *head = xstrndup(in, head_len);
        const char *length = strcasestr(head, "\r\ncontent-length:");
        if (length)
                body_len = strtoul(length + 17, NULL, 10);
        if (c->in.n < head_len + body_len)
                return false;
        _cleanup_(freep) char *body = xstrndup(in + head_len, body_len);
        buf_consume(&c->in, head_len + body_len);

        char *method = head, *path = strchr(head, ' ');
        assert_non_null(path);
        *path++ = '\0';
        char *rest = strchr(path, ' ');
        assert_non_null(rest);
        *rest++ = '\0';
        struct fake_request r = {
                .method = method, .path = path, .head = rest, .body = body, .n = c->server->requests++
        };
        c->server->fn(c->server->u, c, &r);
        return true;
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *b) {
        struct fake_conn *c = CONTAINER((uv_tcp_t *)tcp, struct fake_conn, tcp);
        if (n < 0) {
                fake_close(c);
                return;
        }
        buf_add(&c->in, b->base, (size_t)n);
        while (c->open && !c->frozen && next_request(c))
                ;
}

static void on_connection(uv_stream_t *listener, int status) {
        struct fake_server *s = CONTAINER((uv_tcp_t *)listener, struct fake_server, listener);
        struct fake_conn *c = xnew(struct fake_conn);
        assert_int_equal(status, 0);
        c->server = s;
        c->in = BUF_INIT(64 << 20);
        uv_tcp_init(s->loop, &c->tcp);
        assert_int_equal(uv_accept(listener, (uv_stream_t *)&c->tcp), 0);
        /* Otherwise the kernel delays a short line until the previous one is acknowledged, which takes 40
         * ms. */
        assert_int_equal(uv_tcp_nodelay(&c->tcp, 1), 0);
        c->open = true;
        s->accepted++;
        s->pending++;
        LIST_INSERT_HEAD(&s->conns, c, entry);
        uv_read_start((uv_stream_t *)&c->tcp, give_buffer, on_read);
}

struct fake_server *fake_server_new(uv_loop_t *loop, int port, fake_fn *fn, void *u) {
        struct fake_server *s = xnew(struct fake_server);
        struct sockaddr_in a;
        struct sockaddr_storage bound;
        int n = sizeof bound;

        s->loop = loop;
        s->fn = fn;
        s->u = u;
        LIST_INIT(&s->conns);
        uv_tcp_init(loop, &s->listener);
        assert_int_equal(uv_ip4_addr("127.0.0.1", port, &a), 0);
        assert_int_equal(uv_tcp_bind(&s->listener, (struct sockaddr *)&a, 0), 0);
        assert_int_equal(uv_listen((uv_stream_t *)&s->listener, 64, on_connection), 0);
        assert_int_equal(uv_tcp_getsockname(&s->listener, (struct sockaddr *)&bound, &n), 0);
        s->port = ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
        s->listening = true;
        s->pending = 1;
        return s;
}

static void listener_closed(uv_handle_t *h) {
        struct fake_server *s = CONTAINER((uv_tcp_t *)h, struct fake_server, listener);
        s->pending--;
        maybe_free(s);
}

void fake_server_kill(struct fake_server *s) {
        struct fake_conn *c;
        if (s->listening)
                uv_close((uv_handle_t *)&s->listener, listener_closed);
        s->listening = false;
        LIST_FOREACH (c, &s->conns, entry)
                fake_close(c);
}

void fake_server_free(struct fake_server *s) {
        if (!s)
                return;
        fake_server_kill(s);
        s->freed = true;
        maybe_free(s);
}

void fake_server_freeze(struct fake_server *s) {
        struct fake_conn *c;
        LIST_FOREACH (c, &s->conns, entry)
                c->frozen = true;
}

int fake_server_port(const struct fake_server *s) {
        return s->port;
}

unsigned fake_server_requests(const struct fake_server *s) {
        return s->requests;
}

unsigned fake_server_accepted(const struct fake_server *s) {
        return s->accepted;
}

struct written {
        uv_write_t req;
        char *text;
};

static void on_written(uv_write_t *req, int status) {
        struct written *w = CONTAINER(req, struct written, req);
        free(w->text);
        free(w);
}

static void send_text(struct fake_conn *c, char *text, size_t n) {
        struct written *w = xnew(struct written);
        uv_buf_t b = uv_buf_init(text, (unsigned)n);
        w->text = text;
        if (!c->open || uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, on_written) < 0) {
                free(text);
                free(w);
        }
}

void fake_reply(struct fake_conn *c, int status, const char *headers, const char *body) {
        char *text = xasprintf(
                "HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
                status, strlen(body), headers ? headers : "", body);
        send_text(c, text, strlen(text));
}

static const char *reason_of(int status) {
        static const struct {
                int status;
                const char *reason;
        } reasons[] = { { 400, "BadRequest" },
                        { 401, "Unauthorized" },
                        { 403, "Forbidden" },
                        { 404, "NotFound" },
                        { 409, "Conflict" },
                        { 410, "Expired" },
                        { 415, "UnsupportedMediaType" },
                        { 422, "Invalid" },
                        { 429, "TooManyRequests" } };
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "InternalError";
}

void fake_refuse(struct fake_conn *c, int status, const char *message) {
        _cleanup_(freep) char *body =
                xasprintf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                          "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
                          message, reason_of(status), status);
        fake_reply(c, status, NULL, body);
}

void fake_missing(struct fake_conn *c, const char *group, const char *plural, const char *name) {
        _cleanup_(freep) char *in_group = *group ? xasprintf("\"group\":\"%s\",", group) : xstrdup("");
        _cleanup_(freep) char *body = xasprintf(
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                "\"message\":\"%s%s%s \\\"%s\\\" not found\",\"reason\":\"NotFound\",\"details\":{%s"
                "\"name\":\"%s\",\"kind\":\"%s\"},\"code\":404}",
                plural, *group ? "." : "", group, name, in_group, name, plural);
        fake_reply(c, 404, NULL, body);
}

void fake_list(struct fake_conn *c, const struct fake_request *r, const char *kind, const char *list) {
        bool partial = fake_has(r->head, "as=PartialObjectMetadataList");
        _cleanup_(freep) char *body =
                xasprintf("{\"kind\":\"%sList\",%s", partial ? "PartialObjectMetadata" : kind, list + 1);
        fake_reply(c, 200, NULL, body);
}

void fake_stream(struct fake_conn *c) {
        char *text = xstrdup(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
        send_text(c, text, strlen(text));
}

void fake_chunk(struct fake_conn *c, const char *s) {
        char *text = xasprintf("%zx\r\n%s\r\n", strlen(s), s);
        send_text(c, text, strlen(text));
}

void fake_end(struct fake_conn *c) {
        char *text = xstrdup("0\r\n\r\n");
        send_text(c, text, strlen(text));
}

const char *fake_query(const struct fake_request *r, const char *name) {
        static char value[4096];
        const char *q = strchr(r->path, '?');
        struct str rest = str_from(q ? q + 1 : NULL), field;

        while (q && str_next_field(&rest, '&', &field)) {
                size_t n = strlen(name), k = 0;
                if (field.n <= n || memcmp(field.p, name, n) != 0 || field.p[n] != '=')
                        continue;
                for (size_t i = n + 1; i < field.n && k + 1 < sizeof value; i++) {
                        if (field.p[i] == '%' && i + 2 < field.n) {
                                char hex[3] = { field.p[i + 1], field.p[i + 2], 0 };
                                value[k++] = (char)strtoul(hex, NULL, 16);
                                i += 2;
                        } else {
                                value[k++] = field.p[i];
                        }
                }
                value[k] = '\0';
                return value;
        }
        return NULL;
}

bool fake_has(const char *text, const char *part) {
        return text && strstr(text, part);
}
