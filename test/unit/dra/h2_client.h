/* SPDX-License-Identifier: Apache-2.0 */
/* h2_client: the client side of a gRPC connection with control of single frames. Bytes in, bytes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct h2_client;

struct h2_call {
        struct h2_client *client;
        struct h2_call *next;
        int32_t stream_id;
        /* to send */
        struct buf request;
        size_t sent, frame_size;
        bool request_complete;
        /* received */
        bool closed;
        uint32_t close_code; /* HTTP/2 error code */
        int http_status;
        int grpc_status;    /* -1: none */
        char *grpc_message; /* as on the wire */
        char *content_type;
        unsigned header_frames, data_frames;
        bool ended_by_headers;
        struct buf reply; /* with its prefix */
};

struct h2_client {
        void *session; /* nghttp2_session */
        struct h2_call *calls;
        bool goaway;
        uint32_t goaway_code;
        int32_t goaway_last;
        unsigned pongs;
};

struct h2_options {
        const char *method, *content_type, *timeout, *encoding; /* NULL: POST, application/grpc, none, none */
        size_t frame_size;                                      /* of DATA; 0: as large as possible */
        bool open;                                              /* the request continues with h2_send */
};

struct h2_client *h2_new(void);
void h2_free(struct h2_client *c); /* and all its calls */

/* Sends raw request bytes. The caller adds the prefix (h2_message does). */
struct h2_call *h2_call(struct h2_client *c, const char *path, const void *body, size_t n,
                        const struct h2_options *o);
void h2_send(struct h2_call *call, const void *p, size_t n, bool end);
void h2_send_trailers(struct h2_call *call); /* instead of an end */
void h2_reset(struct h2_call *call);
void h2_ping(struct h2_client *c);
/* Lets the server send without limit, as far as the socket accepts. */
void h2_open_windows(struct h2_client *c);

/* Returns a message with its prefix. The caller frees it. */
uint8_t *h2_message(const void *p, size_t n, size_t *ret_n);
/* Returns the message of the reply, which must be complete and successful. */
struct str h2_reply(const struct h2_call *call);

/* The first fetches the bytes to send, the second takes received bytes. -1: the server violated the protocol.
 */
size_t h2_output(struct h2_client *c, const uint8_t **ret);
int h2_input(struct h2_client *c, const void *p, size_t n);
