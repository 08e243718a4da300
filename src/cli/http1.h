/* SPDX-License-Identifier: Apache-2.0 */
/* http1: parses one answer of HTTP/1.1 (RFC 9112) to a GET, with limits. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

enum { HTTP1_HEAD_MAX = 64 << 10, HTTP1_BODY_MAX = 64 << 20 };

struct http1 {
        struct buf in;   /* bytes that are not parsed yet */
        struct buf body; /* the body so far */
        int status;      /* 0: the head is not complete yet */
        bool keeps;      /* the connection can be used again */
        bool complete;
        enum {
                HTTP1_HEAD,
                HTTP1_LENGTH,
                HTTP1_SIZE,
                HTTP1_CHUNK,
                HTTP1_AFTER,
                HTTP1_TRAILER,
                HTTP1_UNTIL_END
        } part;
        size_t left; /* bytes of the body or of the chunk */
};

void http1_init(struct http1 *h);
void http1_done(struct http1 *h);
/* Parses more bytes. ERR_INVALID: not HTTP, or larger than the limits. */
int http1_feed(struct http1 *h, const char *p, size_t n, struct err *e);
/* The other side has closed the connection. ERR_RETRY: the answer is not complete. */
int http1_end(struct http1 *h, struct err *e);
