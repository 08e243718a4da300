/* SPDX-License-Identifier: Apache-2.0 */
/* real: a client of the real API server, for one request at a time, and for watches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct real;
int real_new(uv_loop_t *loop, const char *server, const char *ca_pem, const char *token, struct real **ret,
             struct err *e);
void real_free(struct real *r);

struct real_request {
        const char *method, *path, *content_type, *accept, *body; /* body NULL: none */
};
/* Waits for the answer. Returns the status, and the body in *out; -1: there was no answer. */
int real_ask(struct real *r, const struct real_request *q, struct buf *out, struct err *e);

/* A watch. Its lines are kept until they are taken. */
struct real_watch;
struct real_watch *real_watch(struct real *r, const struct real_request *q);
/* Waits for the next line, at most wait_ms. False: none came. *ret is valid until the next call. */
bool real_watch_line(struct real_watch *w, unsigned wait_ms, struct str *ret);
bool real_watch_headed(struct real_watch *w, unsigned wait_ms); /* the watch was accepted, or has ended */
bool real_watch_ended(const struct real_watch *w, int *ret_status);
void real_watch_close(struct real_watch *w);
