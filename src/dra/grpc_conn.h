/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_conn: the protocol part of one gRPC connection: bytes in, calls to handlers, bytes out. No I/O, no
 * clock, no loop.
 *
 * The owner feeds what it read, fetches what is to be written, and passes the time (milliseconds, any epoch)
 * in. Handlers and cancel functions run from inside grpc_conn_recv, grpc_conn_expire, grpc_conn_output,
 * grpc_conn_shutdown and grpc_conn_break; they may answer any call. No function but the grpc_call_ ones may
 * be entered again from there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "dra/grpc_server.h"

enum {
        GRPC_MAX_MESSAGE = 4 << 20,     /* of a request and of a reply, in grpc_limits_trusted */
        GRPC_MAX_BUFFERED = 16 << 20,   /* likewise */
        GRPC_MAX_CALLS = 256,           /* likewise */
        GRPC_MAX_STATUS_MESSAGE = 4096, /* bytes of a status message; the rest is cut off */
};

struct grpc_conn;

/* `wake` is called when bytes to write may have come up; it must only take note of that. Methods, limits and
 * u are borrowed; handlers get methods_u. Of the limits, `connections` and `write_bytes` are the owner's. */
struct grpc_conn *grpc_conn_new(const struct grpc_method *methods, void *methods_u,
                                const struct grpc_limits *limits, void (*wake)(void *u), void *u);
/* Calls still open are dropped without a word: grpc_conn_break or grpc_conn_shutdown come before. NULL is
 * allowed. */
void grpc_conn_free(struct grpc_conn *c);

/* Never fails: what the peer does wrong is answered by the output or shows as grpc_conn_finished. */
void grpc_conn_recv(struct grpc_conn *c, const void *p, size_t n, uint64_t now_ms);
/* Appends what is to be written, until *out holds `enough` bytes (and at most a frame more) or nothing is
 * left. */
void grpc_conn_output(struct grpc_conn *c, struct buf *out, size_t enough);
/* Nothing will be read or written any more: close the transport. */
bool grpc_conn_finished(const struct grpc_conn *c);
/* The peer broke the protocol or a limit: what is not written yet need not be. */
bool grpc_conn_is_broken(const struct grpc_conn *c);

/* When the first call runs out of its caller's time or of request_ms, UINT64_MAX for never. grpc_conn_expire
 * answers the calls that have run out of the caller's; for one that has of request_ms it ends the connection:
 * see grpc_conn_finished. */
uint64_t grpc_conn_deadline(const struct grpc_conn *c);
void grpc_conn_expire(struct grpc_conn *c, uint64_t now_ms);

/* Whether a handler has a call that it has not answered. */
bool grpc_conn_has_calls(const struct grpc_conn *c);
/* Whether a request has begun to come in that is not complete. */
bool grpc_conn_is_unfinished(const struct grpc_conn *c);
/* Cancels the open calls, answers them UNAVAILABLE, and says GOAWAY. No handler is called any more. */
void grpc_conn_shutdown(struct grpc_conn *c);
/* The transport is gone: cancels the open calls. */
void grpc_conn_break(struct grpc_conn *c);
