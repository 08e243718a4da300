/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_server: implements a small gRPC server with nghttp2, on the loop. A call has one request and one
 * reply, or a stream of messages as the reply. There is no compression.
 *
 * It serves unix sockets in clear text, as the kubelet expects. Each server has its own limits.
 * docs/dev/protocols.md describes the protocol. Loop thread only. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

enum grpc_status {
        GRPC_OK = 0,
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

/* Handles a complete request message. The handler, or code that runs later, answers the call exactly once.
 * `message` is valid during the handler only. */
typedef void(grpc_handler_fn)(void *u, struct grpc_call *call, struct str message);
/* Called when the peer has cancelled the call, its connection is broken, or its grpc-timeout has passed. It
 * must not answer: the call is freed when this function returns. */
typedef void(grpc_cancel_fn)(void *u, struct grpc_call *call);

struct grpc_limits {
        size_t message_bytes;  /* bytes of a request, and of a reply */
        size_t buffered_bytes; /* bytes of requests that a connection may hold before they are handled */
        size_t header_bytes;   /* bytes of a request's headers, both compressed and decoded */
        size_t write_bytes;    /* bytes of one write: the memory that a peer can occupy by not reading */
        unsigned calls;        /* concurrent calls of a connection */
        unsigned acks;         /* acknowledgements of PING and SETTINGS that wait to be written */
        unsigned connections;  /* open connections; further connections are closed at once */
};
/* The limits for a socket that only the kubelet (root) can reach: enough for the largest call on a node. */
extern const struct grpc_limits grpc_limits_trusted;

struct grpc_method {
        const char *path; /* "/package.Service/Method"; NULL ends the list */
        grpc_handler_fn *fn;
};

/* Creates a server. Calls of other methods are answered with UNIMPLEMENTED. Handlers receive `u`. Ignores
 * SIGPIPE for the whole process. The methods and the limits must outlive the server. */
struct grpc_server *grpc_server_new(uv_loop_t *loop, const struct grpc_method *methods,
                                    const struct grpc_limits *l, void *u);
/* Frees the server. Rejects new calls, including those already received. Cancels the open calls (the peer
 * gets UNAVAILABLE), sends GOAWAY, closes the sockets, and unlinks the socket files that still belong to this
 * server. No handler runs afterwards. May be called inside a handler. NULL is allowed. */
void grpc_server_free(struct grpc_server *s);

/* Listens on a unix socket. The file appears, or atomically replaces a stale file, only once connections to
 * it succeed. */
int grpc_server_listen_unix(struct grpc_server *s, const char *path, mode_t mode, struct err *e);

/* Answer the call, which must not be used afterwards. `msg` is an explanation for users, in UTF-8. */
void grpc_call_reply(struct grpc_call *c, const void *message, size_t n);
/* Sends a message of a stream, which is at most as large as a reply may be. The call stays open until it is
 * cancelled or fails; set the function for that first (grpc_call_on_cancel()). A peer that does not read gets
 * only the newest message after the one that is being sent, so it occupies the memory of two. */
void grpc_call_send(struct grpc_call *c, const void *message, size_t n);
void grpc_call_fail(struct grpc_call *c, enum grpc_status status, const char *msg);
/* Sets the function that is called if the call is cancelled. A handler that does not answer before it returns
 * must call this. */
void grpc_call_on_cancel(struct grpc_call *c, grpc_cancel_fn *fn, void *u);
/* Returns the caller's grpc-timeout in milliseconds; 0: none. */
uint64_t grpc_call_timeout_ms(const struct grpc_call *c);
