/* SPDX-License-Identifier: Apache-2.0 */
/* http_client: sends HTTP requests to one server and receives answers and streams, on the loop, with libcurl
 * multi (HTTP/2, one connection).
 *
 * Everything runs in the loop's thread. No callback runs inside the call that registered it. This header
 * hides libcurl, so that another transport can replace libcurl. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/http_tls.h"
#include "base/str.h"

struct http_client;
struct http_call;

struct http_client_options {
        const char *base_url; /* "https://10.96.0.1:443", no path */
        /* For https. When one of its files changes, new calls use the new content, on a new connection. Calls
         * that have started finish on the old connection. tls.changed must not free the client. */
        struct http_tls_options tls;
        const char *tls_server_name; /* NULL: the host of base_url */
        const char *user_agent;
        /* Called for each request; returns the bearer token or NULL. The client copies the token at once and
         * never logs it. */
        const char *(*token)(void *u);
        void *token_u;
        unsigned silence_ms; /* see http_give_up(); 0: 30 s */
};

/* Creates a client. Copies all options. ERR_INVALID: the address is not valid, or the PEM text is damaged. */
int http_client_new(uv_loop_t *loop, const struct http_client_options *o, struct http_client **ret,
                    struct err *e);
/* Ends all calls without calling back. Allowed inside a callback. NULL is allowed. */
void http_client_free(struct http_client *c);

struct http_response {
        int status;        /* HTTP status; 0 when none was received */
        int retry_after_s; /* Retry-After in seconds, -1 when absent */
        const char *body;  /* ends with a NUL byte; "" for streams */
        size_t body_len;
        /* Not NULL: the connection failed (ERR_RETRY), or the answer is too large (ERR_INVALID). The text
         * begins with "TLS: " if certificates are the cause, and then names a remedy. It begins with
         * "network: " if no server was reached, or the connection was lost. */
        const struct err *transport;
};

/* Called once, at the end of the call. *r is valid during the callback only. The call is freed afterwards. */
typedef void(http_done_fn)(void *u, const struct http_response *r);
/* Streams only: receives the bytes of a 2xx body as they arrive. The client collects the bodies of other
 * statuses into r->body. The callback may start and cancel calls, including this one, and free the client. */
typedef void(http_data_fn)(void *u, const char *p, size_t n);
/* Streams only: called when the headers of a 2xx answer have arrived, so a server has accepted the request,
 * and before any data. content_type is "" when the answer has none. The content type shows whether the answer
 * is the requested content or a web page. */
typedef void(http_head_fn)(void *u, const char *content_type);

struct http_request {
        const char *method, *path;         /* path with query, starts with '/' */
        const char *content_type, *accept; /* NULL: application/json */
        const char *body;                  /* copied; NULL for none */
        size_t body_len;
        size_t max_body;     /* largest body that is collected; 0: 32 MiB */
        bool fresh;          /* use a new connection, because the present one may be dead */
        bool large; /* expect more than 16 KiB, and accept a compressed answer; not for streams, because
                       decompression needs memory */
        unsigned timeout_ms; /* 0: none (streams) */
        http_data_fn *data;  /* not NULL: a stream */
        http_head_fn *head;  /* may be NULL */
        http_done_fn *done;
        void *u;
};

struct http_call *http_start(struct http_client *c, const struct http_request *r);
/* Cancels a call: its callbacks are not called any more. Resets only the HTTP/2 stream, not the connection.
 * NULL is allowed. */
void http_cancel(struct http_call *call);

/* Drops the connection: all calls end with a transport error in a later turn, and the next call connects
 * again. */
void http_client_reconnect(struct http_client *c);
/* Cancels a call that has waited for too long. Also drops the connection if TCP finds it healthy, but the
 * server has owed an answer for silence_ms and sent no byte for any call in that time. Otherwise the other
 * calls continue, because one call without an answer proves nothing about a connection that delivers other
 * answers. The client does the same when a call times out. */
void http_give_up(struct http_call *call);
