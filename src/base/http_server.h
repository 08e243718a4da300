/* http_server: /metrics, /healthz and /readyz over libmicrohttpd, driven by the loop through its epoll
 * descriptor. */
#ifndef BASE_HTTP_SERVER_H
#define BASE_HTTP_SERVER_H

#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct http_server;

/* Answers a GET: appends the body to *out and returns the HTTP status; 404 for paths it does not know.
 * *ret_content_type may be set; text/plain otherwise. */
typedef int(http_handler_fn)(void *u, const char *path, struct buf *out, const char **ret_content_type);

/* `endpoint` is Go style: ":8080", "127.0.0.1:8080", "[::]:8080". */
int http_server_new(uv_loop_t *loop, const char *endpoint, http_handler_fn *fn, void *u,
                    struct http_server **ret, struct err *e);
void http_server_free(struct http_server *s);
int http_server_port(const struct http_server *s); /* the port bound, for ":0" */

#endif
