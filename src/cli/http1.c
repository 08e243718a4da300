/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/http1.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

void http1_init(struct http1 *h) {
        *h = (struct http1){ .in = BUF_INIT(HTTP1_HEAD_MAX + HTTP1_BODY_MAX),
                             .body = BUF_INIT(HTTP1_BODY_MAX) };
}

void http1_done(struct http1 *h) {
        buf_done(&h->in);
        buf_done(&h->body);
}

static int http1_bad(struct err *e, const char *what) {
        return err_set(e, ERR_INVALID, 0, "kubectl proxy: %s", what);
}

/* Cuts a line off, without its end. Returns 0 if it is not complete yet, and -1 if it is too long. */
static int http1_cut(const struct http1 *h, size_t *at, struct str *ret) {
        const char *p = buf_str(&h->in), *end = memchr(p + *at, '\n', h->in.n - *at);
        if (!end)
                return h->in.n - *at > HTTP1_HEAD_MAX ? -1 : 0;
        size_t n = (size_t)(end - p) - *at;
        *ret = (struct str){ p + *at, n && end[-1] == '\r' ? n - 1 : n };
        *at += n + 1;
        return 1;
}

static bool header_is(struct str line, const char *name, struct str *ret_value) {
        struct str rest = line, field;
        if (!str_next_field(&rest, ':', &field) || field.n != strlen(name) ||
            strncasecmp(field.p, name, field.n) != 0)
                return false;
        *ret_value = str_trim(rest);
        return true;
}

static int take_status(struct http1 *h, struct str line, struct err *e) {
        if (line.n < 12 || strncmp(line.p, "HTTP/1.", 7) != 0 || (line.p[7] != '0' && line.p[7] != '1') ||
            line.p[8] != ' ')
                return http1_bad(e, "the answer is not HTTP");
        int64_t code;
        if (!str_to_i64((struct str){ line.p + 9, 3 }, &code) || code < 100 ||
            (line.n > 12 && line.p[12] != ' '))
                return http1_bad(e, "the answer has no status");
        h->status = (int)code;
        h->keeps = line.p[7] == '1';
        return 0;
}

/* Parses the head if it is complete. Returns 1 if it was parsed. */
static int take_head(struct http1 *h, struct err *e) {
        size_t at = 0;
        struct str line, value;
        bool chunked = false, sized = false, empty;
        int64_t size = 0;
        for (bool first = true;; first = false) {
                int r = http1_cut(h, &at, &line);
                if (r < 0 || at > HTTP1_HEAD_MAX)
                        return http1_bad(e, "the head of the answer is too large");
                if (r == 0) {
                        h->status = 0;
                        return 0;
                }
                if (first) {
                        if (take_status(h, line, e) < 0)
                                return -1;
                        continue;
                }
                if (line.n == 0)
                        break;
                if (header_is(line, "content-length", &value)) {
                        if (sized || !str_to_i64(value, &size) || size < 0)
                                return http1_bad(e, "the answer has no valid length");
                        sized = true;
                } else if (header_is(line, "transfer-encoding", &value)) {
                        if (chunked || !str_eq(value, STR("chunked")))
                                return http1_bad(e, "the answer has an unknown transfer encoding");
                        chunked = true;
                } else if (header_is(line, "connection", &value) && str_eq(value, STR("close"))) {
                        h->keeps = false;
                }
        }
        buf_consume(&h->in, at);
        if (h->status < 200) { /* 100 Continue and the like: the answer follows */
                h->status = 0;
                return 1;
        }
        if (sized && !chunked && size > HTTP1_BODY_MAX)
                return http1_bad(e, "the answer is too large");
        empty = h->status == 204 || h->status == 304; /* without a body, even if the head announces one */
        h->left = empty ? 0 : (size_t)size;
        h->part = empty ? HTTP1_LENGTH : chunked ? HTTP1_SIZE : sized ? HTTP1_LENGTH : HTTP1_UNTIL_END;
        if (h->part == HTTP1_UNTIL_END)
                h->keeps = false;
        return 1;
}

/* The size of a chunk is hexadecimal, and extensions may follow it. */
static int take_size(struct http1 *h, struct err *e) {
        static const char hex[] = "0123456789abcdef";
        size_t at = 0, size = 0;
        struct str line, digits;
        int r = http1_cut(h, &at, &line);
        if (r <= 0)
                return r < 0 ? http1_bad(e, "a chunk has no size") : 0;
        (void)str_next_field(&line, ';', &digits);
        digits = str_trim(digits);
        bool valid = digits.n > 0 && digits.n <= 16;
        for (size_t i = 0; valid && i < digits.n; i++) {
                const char *d = memchr(hex, tolower((unsigned char)digits.p[i]), sizeof hex - 1);
                valid = d != NULL;
                size = size << 4 | (size_t)(d ? d - hex : 0);
        }
        if (!valid || size > HTTP1_BODY_MAX)
                return http1_bad(e, "a chunk has no valid size");
        buf_consume(&h->in, at);
        h->left = size;
        h->part = size ? HTTP1_CHUNK : HTTP1_TRAILER;
        return 1;
}

static int take_bytes(struct http1 *h, struct err *e) {
        size_t n = h->part == HTTP1_UNTIL_END || h->in.n < h->left ? h->in.n : h->left;
        buf_add(&h->body, buf_str(&h->in), n);
        if (h->body.failed)
                return http1_bad(e, "the answer is too large");
        buf_consume(&h->in, n);
        if (h->part == HTTP1_UNTIL_END)
                return 0;
        h->left -= n;
        if (h->left == 0 && h->part == HTTP1_LENGTH)
                h->complete = true;
        else if (h->left == 0)
                h->part = HTTP1_AFTER;
        return h->left == 0;
}

/* The end of a chunk, or a line after the last chunk. */
static int take_line(struct http1 *h, struct err *e) {
        size_t at = 0;
        struct str line;
        int r = http1_cut(h, &at, &line);
        if (r <= 0)
                return r < 0 ? http1_bad(e, "a chunk does not end") : 0;
        if (line.n && h->part == HTTP1_AFTER)
                return http1_bad(e, "a chunk does not end");
        buf_consume(&h->in, at);
        if (h->part == HTTP1_AFTER)
                h->part = HTTP1_SIZE;
        else if (line.n == 0)
                h->complete = true;
        return 1;
}

int http1_feed(struct http1 *h, const char *p, size_t n, struct err *e) {
        int more = 1;
        buf_add(&h->in, p, n);
        if (h->in.failed)
                return http1_bad(e, "the answer is too large");
        while (more > 0 && !h->complete) {
                switch (h->part) {
                case HTTP1_HEAD:
                        more = take_head(h, e);
                        break;
                case HTTP1_SIZE:
                        more = take_size(h, e);
                        break;
                case HTTP1_AFTER:
                case HTTP1_TRAILER:
                        more = take_line(h, e);
                        break;
                case HTTP1_LENGTH:
                case HTTP1_CHUNK:
                case HTTP1_UNTIL_END:
                default:
                        more = take_bytes(h, e);
                        break;
                }
        }
        return more < 0 ? -1 : 0;
}

int http1_end(struct http1 *h, struct err *e) {
        if (h->part == HTTP1_UNTIL_END)
                h->complete = true;
        return h->complete ? 0
                           : err_set(e, ERR_RETRY, 0, "kubectl proxy closed the connection during an answer");
}
