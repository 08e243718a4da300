/* SPDX-License-Identifier: Apache-2.0 */
/* http_server: /metrics, /healthz and /readyz over libmicrohttpd, driven by the loop through its epoll
 * descriptor.
 *
 * Every pod of a cluster can reach the port, so that nobody gets more of it than a scrape needs: a connection
 * that takes too long is closed, and when all places are taken the address that has most gives one up
 * (base/crowd). Connections are kept alive when their peer asks for it. */
#pragma once

#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct http_server;

/* Answers a GET: appends the body to *out and returns the HTTP status; 404 for paths it does not know.
 * *ret_content_type may be set; text/plain otherwise. All who ask for a long page in the same turn of the
 * loop share one. */
typedef int(http_handler_fn)(void *u, const char *path, struct buf *out, const char **ret_content_type);

struct http_limits {
        unsigned connections;
        unsigned request_ms;  /* for a connection's first request to come in, and for an answer to be taken */
        unsigned idle_ms;     /* from an answer to the end of the next request */
        size_t answers_bytes; /* of answers that wait for their readers, together; what is short, or the only
                                 one, is always answered */
};
extern const struct http_limits http_limits_default;

/* `endpoint` is Go style: ":8080", "127.0.0.1:8080", "[::]:8080". *limits must outlive the server. */
int http_server_new(uv_loop_t *loop, const char *endpoint, const struct http_limits *limits,
                    http_handler_fn *fn, void *u, struct http_server **ret, struct err *e);
void http_server_free(struct http_server *s);
int http_server_port(const struct http_server *s); /* the port bound, for ":0" */
