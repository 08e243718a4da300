/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_conn: implements the protocol of one gRPC connection: it takes received bytes, calls handlers, and
 * produces bytes to write. It uses no I/O, no clock and no loop.
 *
 * The owner passes received bytes and the time (milliseconds since any fixed point), and fetches the bytes to
 * write. Handlers and cancel functions run inside grpc_conn_recv, grpc_conn_expire, grpc_conn_output,
 * grpc_conn_shutdown and grpc_conn_break. They may answer any call, but of this module and grpc_server they
 * may use only the functions grpc_call_... . */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "dra/grpc_server.h"

enum {
        GRPC_MAX_MESSAGE = 4 << 20,     /* bytes of a request and of a reply, in grpc_limits_trusted */
        GRPC_MAX_BUFFERED = 16 << 20,   /* likewise */
        GRPC_MAX_CALLS = 256,           /* likewise */
        GRPC_MAX_STATUS_MESSAGE = 4096, /* bytes of a status message; the rest is cut off */
};

struct grpc_conn;

/* Creates a connection. `wake` is called when there may be bytes to write. It must only set a flag or
 * schedule a turn of the loop. `methods`, `limits` and `u` are borrowed. Handlers receive methods_u. The
 * owner enforces the limits `connections` and `write_bytes`. */
struct grpc_conn *grpc_conn_new(const struct grpc_method *methods, void *methods_u,
                                const struct grpc_limits *limits, void (*wake)(void *u), void *u);
/* Frees the connection. Drops open calls without an answer or a callback, so the owner must call
 * grpc_conn_break() or grpc_conn_shutdown() first. NULL is allowed. */
void grpc_conn_free(struct grpc_conn *c);

/* Handles received bytes. Never fails: an error of the peer leads to output or to grpc_conn_finished(). */
void grpc_conn_recv(struct grpc_conn *c, const void *p, size_t n, uint64_t now_ms);
/* Appends bytes to write, until *out has `enough` bytes (exceeded by at most one frame) or all bytes are
 * appended. */
void grpc_conn_output(struct grpc_conn *c, struct buf *out, size_t enough);
/* Returns true if there is nothing more to read or write; the owner then closes the transport. */
bool grpc_conn_finished(const struct grpc_conn *c);
/* Returns true if the peer violated the protocol or a limit. The owner then need not write the remaining
 * output. */
bool grpc_conn_is_broken(const struct grpc_conn *c);

/* grpc_conn_deadline() returns the time at which the next call exceeds its caller's deadline; UINT64_MAX:
 * never. grpc_conn_expire() answers the calls whose deadline has passed. */
uint64_t grpc_conn_deadline(const struct grpc_conn *c);
void grpc_conn_expire(struct grpc_conn *c, uint64_t now_ms);

/* Cancels the open calls, answers them with UNAVAILABLE, and sends GOAWAY. No handler is called any more. */
void grpc_conn_shutdown(struct grpc_conn *c);
/* Cancels the open calls, because the transport is closed. */
void grpc_conn_break(struct grpc_conn *c);
