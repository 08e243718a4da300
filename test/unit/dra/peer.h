/* SPDX-License-Identifier: Apache-2.0 */
/* peer: an h2_client on a socket, driven by the loop. */
#pragma once

#include <uv.h>

#include "h2_client.h"

struct peer {
        struct h2_client *h2;
        union {
                uv_handle_t handle;
                uv_stream_t stream;
                uv_pipe_t pipe;
        } h;
        bool closed; /* by the server, or by peer_close */
        bool mute;   /* reads nothing */
        char buffer[65536];
};

struct peer *peer_unix(uv_loop_t *loop, const char *path);
/* Adds the prefix to the message. With h2_call() the caller adds it. */
struct h2_call *peer_call(struct peer *p, const char *path, const void *message, size_t n,
                          const struct h2_options *o);
void peer_flush(struct peer *p);
void peer_close(struct peer *p);
/* Runs the loop until the call has ended, or *flag is set. Fails the test after 20 s. */
void peer_wait(struct peer *p, const struct h2_call *call);
void loop_until(uv_loop_t *loop, const bool *flag);
/* Runs what is ready, without waiting. */
void loop_turns(uv_loop_t *loop, unsigned n);
void peer_free(struct peer *p, uv_loop_t *loop);
