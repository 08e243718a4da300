/* SPDX-License-Identifier: Apache-2.0 */
/* h2_client: the other side of a gRPC connection, down to single frames, as bytes in and bytes out. */
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
        size_t frame_size;                                      /* of DATA, 0: as large as may be */
        bool open;                                              /* the request goes on: h2_send */
};

struct h2_client *h2_new(void);
void h2_free(struct h2_client *c); /* and all its calls */

/* Sends raw request bytes: the caller makes the prefix (h2_message does). */
struct h2_call *h2_call(struct h2_client *c, const char *path, const void *body, size_t n,
                        const struct h2_options *o);
void h2_send(struct h2_call *call, const void *p, size_t n, bool end);
void h2_send_trailers(struct h2_call *call); /* instead of an end */
void h2_reset(struct h2_call *call);
void h2_ping(struct h2_client *c);
/* Lets the server send as much as it likes: nothing but the socket stops it. */
void h2_open_windows(struct h2_client *c);

/* A message behind its prefix; caller frees. */
uint8_t *h2_message(const void *p, size_t n, size_t *ret_n);
/* The message of a reply that must be complete and successful. */
struct str h2_reply(const struct h2_call *call);

/* Fetches the bytes to send; feeds what came. -1: the server broke the protocol. */
size_t h2_output(struct h2_client *c, const uint8_t **ret);
int h2_input(struct h2_client *c, const void *p, size_t n);
