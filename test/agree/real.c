/* SPDX-License-Identifier: Apache-2.0 */
#include "real.h"

#include <string.h>

#include "base/http_client.h"
#include "base/loop.h"
#include "base/mem.h"

enum { ATTEMPTS = 20, TIMEOUT_MS = 30000, MOST_BYTES = 256 << 20 };

struct real {
        uv_loop_t *loop;
        struct http_client *http;
        char *token;
};

static const char *token_of(void *u) {
        return ((struct real *)u)->token;
}

int real_new(uv_loop_t *loop, const char *server, const char *ca_pem, const char *token, struct real **ret,
             struct err *e) {
        struct real *r = xnew(struct real);
        *r = (struct real){ .loop = loop, .token = xstrdup_or_null(token) };
        if (http_client_new(loop,
                            &(struct http_client_options){ .base_url = server,
                                                           .tls.ca_pem = ca_pem,
                                                           .user_agent = "agree",
                                                           .token = token ? token_of : NULL,
                                                           .token_u = r },
                            &r->http, e) < 0) {
                free(r->token);
                free(r);
                return -1;
        }
        *ret = r;
        return 0;
}

void real_free(struct real *r) {
        if (!r)
                return;
        http_client_free(r->http);
        free(r->token);
        free(r);
}

/* ---- one request ---- */

struct answer {
        struct buf *out;
        struct err *e;
        int status;
        bool done, refused;
};

static void on_answer(void *u, const struct http_response *r) {
        struct answer *a = u;
        a->done = true;
        a->status = r->transport ? -1 : r->status;
        a->refused = r->transport && r->status >= 400;
        if (r->transport)
                *a->e = *r->transport;
        buf_add(a->out, r->body, r->body_len);
}

static int ask_once(struct real *r, const struct real_request *q, struct buf *out, struct err *e,
                    bool *ret_refused) {
        struct answer a = { .out = out, .e = e };
        http_start(r->http, &(struct http_request){ .method = q->method,
                                                    .path = q->path,
                                                    .content_type = q->content_type,
                                                    .accept = q->accept,
                                                    .body = q->body,
                                                    .body_len = q->body ? strlen(q->body) : 0,
                                                    .timeout_ms = TIMEOUT_MS,
                                                    .done = on_answer,
                                                    .u = &a });
        while (!a.done)
                uv_run(r->loop, UV_RUN_ONCE);
        *ret_refused = a.refused;
        return a.status;
}

/* A server that refuses a request without reading its body may end the stream before the whole answer has
 * arrived. */
int real_ask(struct real *r, const struct real_request *q, struct buf *out, struct err *e) {
        bool refused = true;
        int status = -1;
        for (int i = 0; status < 0 && refused && i < ATTEMPTS; i++) {
                buf_clear(out);
                status = ask_once(r, q, out, e, &refused);
        }
        return status;
}

/* ---- watches ---- */

struct real_watch {
        struct real *real;
        struct http_call *call; /* NULL: it has ended */
        struct buf lines;
        size_t taken;
        int status;
        bool headed;
};

static void on_head(void *u, const char *content_type) {
        ((struct real_watch *)u)->headed = true;
}

static void on_data(void *u, const char *p, size_t n) {
        buf_add(&((struct real_watch *)u)->lines, p, n);
}

static void on_end(void *u, const struct http_response *r) {
        struct real_watch *w = u;
        w->call = NULL;
        w->headed = true;
        w->status = r->transport ? -1 : r->status;
        buf_add(&w->lines, r->body, r->body_len);
}

struct real_watch *real_watch(struct real *r, const struct real_request *q) {
        struct real_watch *w = xnew(struct real_watch);
        *w = (struct real_watch){ .real = r, .lines = BUF_INIT(MOST_BYTES), .status = 200 };
        w->call = http_start(r->http, &(struct http_request){ .method = q->method,
                                                              .path = q->path,
                                                              .accept = q->accept,
                                                              .head = on_head,
                                                              .data = on_data,
                                                              .done = on_end,
                                                              .u = w });
        return w;
}

static void on_late(void *u) {
        *(bool *)u = true;
}

/* Runs the loop until `is` returns true. */
static bool wait_until(struct real_watch *w, unsigned ms, bool (*is)(const struct real_watch *w)) {
        struct loop_timer timer;
        bool late = false;
        if (is(w))
                return true;
        loop_timer_init(&timer, w->real->loop, on_late, &late);
        loop_timer_start(&timer, ms);
        while (!late && !is(w))
                uv_run(w->real->loop, UV_RUN_ONCE);
        loop_timer_done(&timer);
        return is(w);
}

static bool has_line(const struct real_watch *w) {
        return w->lines.n && memchr(w->lines.p, '\n', w->lines.n);
}

static bool has_line_or_ended(const struct real_watch *w) {
        return has_line(w) || !w->call;
}

static bool is_headed(const struct real_watch *w) {
        return w->headed;
}

bool real_watch_line(struct real_watch *w, unsigned wait_ms, struct str *ret) {
        buf_consume(&w->lines, w->taken);
        w->taken = 0;
        if (wait_ms)
                wait_until(w, wait_ms, has_line_or_ended);
        if (!has_line(w))
                return false;
        *ret = (struct str){ w->lines.p,
                             (size_t)((char *)memchr(w->lines.p, '\n', w->lines.n) - w->lines.p) };
        w->taken = ret->n + 1;
        return true;
}

bool real_watch_headed(struct real_watch *w, unsigned wait_ms) {
        return wait_until(w, wait_ms, is_headed);
}

bool real_watch_ended(const struct real_watch *w, int *ret_status) {
        *ret_status = w->status;
        return !w->call;
}

void real_watch_close(struct real_watch *w) {
        if (!w)
                return;
        http_cancel(w->call);
        buf_done(&w->lines);
        free(w);
}
