/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_server: a small gRPC server (unary calls, no compression) on nghttp2, on the loop.
 *
 * It serves unix sockets in clear text, as the kubelet expects it. Each server has its own limits.
 * docs/dev/protocols.md describes the protocol. Loop thread only. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

enum grpc_status {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
        GRPC_UNAVAILABLE = 14,
};

struct grpc_server;
struct grpc_call;

/* Gets a complete request message. The handler, or later code, answers the call exactly once. `message` is
 * valid during the handler only. */
typedef void(grpc_handler_fn)(void *u, struct grpc_call *call, struct str message);
/* The peer cancelled, its connection broke, or its grpc-timeout passed. Do not answer: the call is freed when
 * this returns. */
typedef void(grpc_cancel_fn)(void *u, struct grpc_call *call);

struct grpc_limits {
        size_t message_bytes;  /* of a request, and of a reply */
        size_t buffered_bytes; /* request bytes that a connection may hold unhandled */
        size_t header_bytes;   /* of a request's headers, both compressed and decoded */
        size_t write_bytes;    /* of one write: the memory that a peer costs that does not read */
        unsigned calls;        /* concurrent, of a connection */
        unsigned acks;         /* of PING and SETTINGS that wait to be written */
        unsigned connections;  /* further ones are closed at once */
};
/* For a socket that only the kubelet (root) can reach: enough for a node's largest call. */
extern const struct grpc_limits grpc_limits_trusted;

struct grpc_method {
        const char *path; /* "/package.Service/Method"; NULL ends the list */
        grpc_handler_fn *fn;
};

/* Other methods are answered UNIMPLEMENTED. Handlers get u. Ignores SIGPIPE for the process. The methods and
 * the limits must outlive the server. */
struct grpc_server *grpc_server_new(uv_loop_t *loop, const struct grpc_method *methods,
                                    const struct grpc_limits *l, void *u);
/* Refuses new calls, also those already received. Cancels the open calls (the peer gets UNAVAILABLE), sends
 * GOAWAY, closes the sockets, and unlinks those that are still ours. No handler runs afterwards. Allowed
 * inside a handler. NULL is allowed. */
void grpc_server_free(struct grpc_server *s);

/* The file appears, or replaces a stale one, atomically, once connections to it succeed. */
int grpc_server_listen_unix(struct grpc_server *s, const char *path, mode_t mode, struct err *e);

/* Answers; the call must not be touched afterwards. `msg` is UTF-8 for people. */
void grpc_call_reply(struct grpc_call *c, const void *message, size_t n);
void grpc_call_fail(struct grpc_call *c, enum grpc_status status, const char *msg);
/* A handler that does not answer before it returns must set this. */
void grpc_call_on_cancel(struct grpc_call *c, grpc_cancel_fn *fn, void *u);
/* The caller's grpc-timeout in milliseconds; 0: none. */
uint64_t grpc_call_timeout_ms(const struct grpc_call *c);
