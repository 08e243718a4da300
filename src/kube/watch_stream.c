/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_stream.h"

#include <string.h>

#include "base/mem.h"
#include "kube/kube_json.h"

enum { KEEP_BUFFER = 16 << 10 };

void watch_stream_init(struct watch_stream *w, size_t limit, watch_event_fn *fn, void *u) {
        w->rest = BUF_INIT(limit);
        w->fn = fn;
        w->u = u;
}

void watch_stream_done(struct watch_stream *w) {
        buf_done(&w->rest);
}

void watch_stream_reset(struct watch_stream *w) {
        buf_done(&w->rest);
}

static bool type_of(const char *s, enum watch_type *ret) {
        static const char *const names[] = {
                [WATCH_ADDED] = "ADDED",       [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED",
                [WATCH_BOOKMARK] = "BOOKMARK", [WATCH_ERROR] = "ERROR",
        };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (streq(s, names[i])) {
                        *ret = (enum watch_type)i;
                        return true;
                }
        }
        return false;
}

/* 1: continue; 0: the receiver ended the stream. */
static int watch_stream_take_line(struct watch_stream *w, struct str line, struct err *e) {
        enum watch_type type;
        int r;

        if (str_trim(line).n == 0)
                return 1;
        if (line.n > w->rest.limit)
                return err_set(e, ERR_INVALID, 0, "a watch event is larger than %zu bytes", w->rest.limit);
        yyjson_doc *doc = kube_json_read(line, e);
        yyjson_val *root = yyjson_doc_get_root(doc), *object = yyjson_obj_get(root, "object");
        if (!type_of(yyjson_get_str(yyjson_obj_get(root, "type")), &type) || !yyjson_is_obj(object))
                r = err_set(e, ERR_INVALID, 0, "a line of the watch is not an event");
        else
                r = w->fn(w->u, type, object);
        yyjson_doc_free(doc);
        return r;
}

int watch_stream_feed(struct watch_stream *w, const char *p, size_t n, struct err *e) {
        int r = 1;

        while (n && r > 0) {
                const char *end = memchr(p, '\n', n);
                size_t take = end ? (size_t)(end - p) + 1 : n;

                if (end && w->rest.n == 0) {
                        r = watch_stream_take_line(w, (struct str){ p, take - 1 }, e);
                } else {
                        buf_add(&w->rest, p, end ? take - 1 : take);
                        if (w->rest.failed)
                                return err_set(e, ERR_INVALID, 0, "a watch event is larger than %zu bytes",
                                               w->rest.limit);
                        if (end) {
                                /* Moved out first: the receiver may free the stream. */
                                struct buf line = w->rest;
                                w->rest = BUF_INIT(line.limit);
                                r = watch_stream_take_line(w, (struct str){ line.p, line.n }, e);
                                if (r > 0 && line.cap <= KEEP_BUFFER) {
                                        buf_clear(&line);
                                        w->rest = line;
                                } else {
                                        buf_done(&line);
                                }
                        }
                }
                p += take;
                n -= take;
        }
        return r < 0 ? -1 : 0;
}
