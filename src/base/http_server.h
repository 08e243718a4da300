/* SPDX-License-Identifier: Apache-2.0 */
/* http_server: serves /metrics, /healthz and /readyz with libmicrohttpd, which the loop drives through an
 * epoll descriptor.
 *
 * Every pod of a cluster can reach the port. So the server gives no client more time than a scrape needs: it
 * closes a connection that takes too long. When the limit of connections is reached, the address with the
 * most connections loses one (base/conn_evict). The server keeps a connection alive if the client asks for
 * it. */
#pragma once

#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct http_server;

/* Answers a GET: appends the body to *out and returns the HTTP status; 404 for unknown paths. The handler may
 * set *ret_content_type; the default is text/plain. Clients that request a long page in the same turn of the
 * loop share one answer. */
typedef int(http_handler_fn)(void *u, const char *path, struct buf *out, const char **ret_content_type);

struct http_limits {
        unsigned connections;
        unsigned request_ms; /* time from connecting until the first request is complete, and also the time in
                                which the client must read an answer */
        unsigned idle_ms;     /* time from an answer to the end of the next request */
        size_t answers_bytes; /* total size of the answers that clients have not read yet; a short answer, or
                                 the only one, is always sent */
};
extern const struct http_limits http_limits_default;

struct http_server_options {
        const char *endpoint; /* in Go style: ":8080", "127.0.0.1:8080", "[::]:8080" */
        http_handler_fn *fn;  /* called with u */
        void *u;
        const struct http_limits *limits; /* must outlive the server; NULL: http_limits_default */
};

int http_server_new(uv_loop_t *loop, const struct http_server_options *o, struct http_server **ret,
                    struct err *e);
void http_server_free(struct http_server *s);
int http_server_port(const struct http_server *s); /* the port that the kernel chose for ":0" */
