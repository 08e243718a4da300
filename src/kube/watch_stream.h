/* SPDX-License-Identifier: Apache-2.0 */
/* watch_stream: splits the bytes of a Kubernetes watch into events.
 *
 * A watch is one JSON object per line: {"type": "ADDED", "object": {...}}. Input arrives in pieces of any
 * size. The module parses a complete line in place, and copies only an incomplete one. */
#pragma once

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

/* Called for each event. `object` is valid only during the call. If the callback returns false,
 * watch_stream_feed() returns without accessing the stream again. */
typedef bool(watch_event_fn)(void *u, enum watch_type type, yyjson_val *object);

struct watch_stream {
        struct buf rest;
        watch_event_fn *fn;
        void *u;
};

/* Initialises the stream. `limit` is the size of the largest event, in bytes. */
void watch_stream_init(struct watch_stream *w, size_t limit, watch_event_fn *fn, void *u);
void watch_stream_done(struct watch_stream *w);
/* Drops the incomplete line, because a new watch begins. */
void watch_stream_reset(struct watch_stream *w);
/* Processes the next piece of input. ERR_INVALID: an event is too large, or is not a watch event. After an
 * error, the stream cannot be used any longer. */
int watch_stream_feed(struct watch_stream *w, const char *p, size_t n, struct err *e);
