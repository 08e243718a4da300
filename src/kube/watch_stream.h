/* SPDX-License-Identifier: Apache-2.0 */
/* watch_stream: the bytes of a Kubernetes watch, cut into events.
 *
 * A watch is one JSON object a line: {"type": "ADDED", "object": {...}}. Bytes go in as they come; a line
 * that came whole is parsed where it lies, only the rest of a cut one is kept. */
#pragma once

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

/* The object is valid during the call only. Returning false ends the feeding: the stream is not touched after
 * it. */
typedef bool(watch_event_fn)(void *u, enum watch_type type, yyjson_val *object);

struct watch_stream {
        struct buf rest;
        watch_event_fn *fn;
        void *u;
};

/* limit: the largest event, in bytes. */
void watch_stream_init(struct watch_stream *w, size_t limit, watch_event_fn *fn, void *u);
void watch_stream_done(struct watch_stream *w);
/* Forgets the cut line: a new stream begins. */
void watch_stream_reset(struct watch_stream *w);
/* ERR_INVALID: an event is too large or not what a watch consists of; the stream is of no use any more. */
int watch_stream_feed(struct watch_stream *w, const char *p, size_t n, struct err *e);
