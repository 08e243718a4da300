/* SPDX-License-Identifier: Apache-2.0 */
/* http_client: HTTP requests and streams to one server, on the loop, over libcurl multi (HTTP/2, one
 * connection).
 *
 * Everything runs in the loop's thread. No callback runs from inside the call that registered it. libcurl is
 * not visible through this header, so that another transport can replace it. */
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
        /* For https. When a file of it changes, what starts from now on uses it, on a connection of its own;
         * what runs, runs to its end on the old one. Its `changed` must not free the client. */
        struct http_tls_options tls;
        const char *tls_server_name; /* NULL: the host of base_url */
        const char *user_agent;
        /* Called for each request; returns the bearer token or NULL. The result is copied before it returns.
         * Never logged. */
        const char *(*token)(void *u);
        void *token_u;
        unsigned silence_ms; /* see http_give_up(); 0: 30 s */
};

/* Copies all options. ERR_INVALID for an address that is none, and for PEM text that is damaged. */
int http_client_new(uv_loop_t *loop, const struct http_client_options *o, struct http_client **ret,
                    struct err *e);
/* Ends all calls without calling back. Allowed inside a callback. NULL is allowed. */
void http_client_free(struct http_client *c);

struct http_response {
        int status;        /* HTTP status; 0 when none was received */
        int retry_after_s; /* Retry-After in seconds, -1 when absent */
        const char *body;  /* terminated; "" for streams */
        size_t body_len;
        /* Not NULL: the connection failed (kind ERR_RETRY, or ERR_INVALID for too large). The text begins
         * with "TLS: " when it is about certificates, and says what to do; with "network: " when no server
         * was reached or it went away. */
        const struct err *transport;
};

/* Once, at the end of the call; *r is valid during the call only. The call is freed after it returns. */
typedef void(http_done_fn)(void *u, const struct http_response *r);
/* Streams only: the bytes of a 2xx body as they come. Bodies of other statuses are collected into r->body.
 * May start and cancel calls, this one and the whole client included. */
typedef void(http_data_fn)(void *u, const char *p, size_t n);
/* Streams only: the headers of a 2xx answer are here, so somebody took the request; before any data.
 * content_type is "" when there is none, and tells a page from what was asked for. */
typedef void(http_head_fn)(void *u, const char *content_type);

struct http_request {
        const char *method, *path;         /* path with query, starts with '/' */
        const char *content_type, *accept; /* NULL: application/json */
        const char *body;                  /* copied; NULL for none */
        size_t body_len;
        size_t max_body;     /* largest response collected; 0: 32 MiB */
        bool fresh;          /* on a connection of its own: the one in use may be dead */
        bool large;          /* more than 16 KiB may come, packed: not for streams, it costs memory */
        unsigned timeout_ms; /* 0: none (streams) */
        http_data_fn *data;  /* not NULL: a stream */
        http_head_fn *head;  /* may be NULL */
        http_done_fn *done;
        void *u;
};

struct http_call *http_start(struct http_client *c, const struct http_request *r);
/* The callbacks will not be called any more; resets the stream only, not the connection. NULL is allowed. */
void http_cancel(struct http_call *call);

/* Gives the connection up: all calls end with a transport error in a later turn, the next call connects
 * again.
 */
void http_client_reconnect(struct http_client *c);
/* Cancels a call that has waited for too long. The connection is given up with it if the server, on a
 * connection that TCP finds healthy, has owed an answer for silence_ms and no byte came for any call in that
 * time. Otherwise the other calls are left alone: one call without an answer says nothing about a connection
 * that delivers. The client does the same when a call times out. */
void http_give_up(struct http_call *call);
