/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/grpc_conn.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/stderr.h"
#include "base/mem.h"

/* nghttp2 1.60 renamed the functions that return a signed size. */
#if NGHTTP2_VERSION_NUM >= 0x013c00
#define session_mem_recv nghttp2_session_mem_recv2
#define session_mem_send nghttp2_session_mem_send2
#define submit_response nghttp2_submit_response2
typedef nghttp2_data_provider2 data_provider;
#else
#define session_mem_recv nghttp2_session_mem_recv
#define session_mem_send nghttp2_session_mem_send
#define submit_response nghttp2_submit_response
typedef nghttp2_data_provider data_provider;
typedef ssize_t nghttp2_ssize;
#endif

enum {
        PREFIX = 5, /* a flag byte and the length before each message */
        STREAM_WINDOW = 1 << 20,
        CONNECTION_WINDOW = 4 << 20,
        MAX_PATH_KEPT = 256, /* of a :path, for the error text */
};

enum call_state {
        CALL_REQUEST,  /* the request is being received */
        CALL_OPEN,     /* its handler has the call */
        CALL_ANSWERED, /* answered or cancelled: the handler no longer has the call */
};

struct grpc_call {
        LIST_ENTRY(grpc_call) link;
        struct grpc_conn *conn;
        int32_t stream_id;
        enum call_state state;

        /* from the headers */
        const struct grpc_method *method;
        char *path;
        bool post, grpc_content, compressed, bad_timeout;
        uint64_t timeout_ms, deadline_ms; /* the caller's */

        /* the request message */
        uint8_t prefix[PREFIX];
        size_t n_prefix, announced;
        struct buf in;

        /* the reply: prefix and message; then the status in the trailers */
        struct buf out;
        size_t sent;
        /* A stream has several messages: `next` is the newest one that does not follow `out` yet. */
        bool streaming, ended;
        struct buf next;
        enum grpc_status status; /* of a stream that has ended */
        char *status_message;    /* encoded; NULL: none */

        grpc_cancel_fn *cancel;
        void *cancel_u;
};

struct grpc_conn {
        nghttp2_session *session;
        const struct grpc_method *methods;
        void *methods_u;
        const struct grpc_limits *limits;
        void (*wake)(void *u);
        void *u;
        LIST_HEAD(, grpc_call)
        calls; /* all calls with an open stream: nghttp2 does not report them when it is deleted */
        size_t buffered;
        size_t header_bytes; /* of the current header block */
        uint64_t now_ms;
        bool inside; /* nghttp2 is on the stack and must not be entered to send or receive */
        bool broken;
        bool refusing; /* no handler may be called any more */
};

static nghttp2_nv header(const char *name, const char *value) {
        /* nghttp2 copies the text, although its types are not const. */
        return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                             .namelen = strlen(name),
                             .value = (uint8_t *)(uintptr_t)value,
                             .valuelen = strlen(value) };
}

/* Answers and their encoding. */

static char *percent_encode(const char *msg) {
        static const char hex[] = "0123456789ABCDEF";
        size_t n = strnlen(msg, GRPC_MAX_STATUS_MESSAGE);
        char *out = xmalloc(3 * n + 1), *q = out;
        while (n > 0 && ((unsigned char)msg[n] & 0xc0) == 0x80)
                n--; /* do not cut inside a character */
        for (size_t i = 0; i < n; i++) {
                unsigned char ch = (unsigned char)msg[i];
                if (ch >= 0x20 && ch <= 0x7e && ch != '%') {
                        *q++ = (char)ch;
                } else {
                        *q++ = '%';
                        *q++ = hex[ch >> 4];
                        *q++ = hex[ch & 15];
                }
        }
        *q = '\0';
        return out;
}

static int submit_status(struct grpc_call *call) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)call->status);
        nghttp2_nv nva[] = { header("grpc-status", number),
                             header("grpc-message", str_or(call->status_message, "")) };
        return nghttp2_submit_trailer(call->conn->session, call->stream_id, nva,
                                      call->status_message ? 2 : 1);
}

static nghttp2_ssize read_reply(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                                uint32_t *flags, nghttp2_data_source *source, void *u) {
        struct grpc_call *call = source->ptr;
        if (call->sent == call->out.n && call->next.n) {
                buf_done(&call->out);
                call->out = call->next;
                call->next = BUF_INIT(0);
                call->sent = 0;
        }
        size_t n = call->out.n - call->sent;
        if (n > room)
                n = room;
        memcpy(to, call->out.p + call->sent, n);
        call->sent += n;
        if (call->sent < call->out.n || call->next.n)
                return (nghttp2_ssize)n;
        if (call->streaming && !call->ended)
                return n ? (nghttp2_ssize)n : NGHTTP2_ERR_DEFERRED;
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit_status(call) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return (nghttp2_ssize)n;
}

static void drop_request(struct grpc_call *call) {
        call->conn->buffered -= call->in.n;
        buf_done(&call->in);
}

static void grpc_conn_finish(struct grpc_call *call, const nghttp2_nv *nva, size_t n,
                             const data_provider *body) {
        struct grpc_conn *c = call->conn;
        call->state = CALL_ANSWERED;
        if (nghttp2_is_fatal(submit_response(c->session, call->stream_id, nva, n, body)))
                c->broken = true;
        c->wake(c->u);
}

/* The peer has the headers already, so the status follows the messages. */
static void end_stream(struct grpc_call *call, enum grpc_status status, const char *msg) {
        call->state = CALL_ANSWERED;
        call->ended = true;
        call->status = status;
        call->status_message = percent_encode(msg);
        (void)nghttp2_session_resume_data(call->conn->session, call->stream_id);
        call->conn->wake(call->conn->u);
}

/* A status without a message is one HEADERS frame that ends the stream. */
static void finish_status(struct grpc_call *call, const char *http_status, enum grpc_status status,
                          const char *msg) {
        if (call->streaming) {
                end_stream(call, status, msg);
                return;
        }
        _cleanup_(freep) char *encoded = percent_encode(msg);
        _cleanup_(freep) char *number = xasprintf("%d", (int)status);
        nghttp2_nv nva[] = { header(":status", http_status), header("content-type", "application/grpc"),
                             header("grpc-status", number), header("grpc-message", encoded) };
        grpc_conn_finish(call, nva, ARRAY_LEN(nva), NULL);
}

/* Answers a request that reaches no handler. */
static void reject(struct grpc_call *call, enum grpc_status status, const char *msg) {
        drop_request(call);
        finish_status(call, "200", status, msg);
}

static void cancel(struct grpc_call *call) {
        bool notify = call->state == CALL_OPEN && call->cancel;
        call->state = CALL_ANSWERED;
        if (notify)
                call->cancel(call->cancel_u, call);
}

static void put_message(struct buf *to, const void *message, size_t n) {
        const uint8_t prefix[PREFIX] = { 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                         (uint8_t)n };
        buf_done(to);
        *to = BUF_INIT(PREFIX + n);
        buf_add(to, prefix, sizeof prefix);
        buf_add(to, message, n);
}

static void begin_reply(struct grpc_call *call, const void *message, size_t n) {
        nghttp2_nv nva[] = { header(":status", "200"), header("content-type", "application/grpc") };
        data_provider body = { .source.ptr = call, .read_callback = read_reply };
        put_message(&call->out, message, n);
        grpc_conn_finish(call, nva, ARRAY_LEN(nva), &body);
}

void grpc_call_reply(struct grpc_call *call, const void *message, size_t n) {
        BUG_ON(call->state != CALL_OPEN || call->streaming);
        if (n > call->conn->limits->message_bytes) {
                _cleanup_(freep) char *msg = xasprintf("the reply has %zu bytes, at most %zu are sent", n,
                                                       call->conn->limits->message_bytes);
                finish_status(call, "200", GRPC_RESOURCE_EXHAUSTED, msg);
                return;
        }
        begin_reply(call, message, n);
}

void grpc_call_send(struct grpc_call *call, const void *message, size_t n) {
        struct grpc_conn *c = call->conn;
        BUG_ON(call->state != CALL_OPEN || !call->cancel || n > c->limits->message_bytes);
        if (!call->streaming) {
                call->streaming = true;
                begin_reply(call, message, n);
                call->state = CALL_OPEN;
                return;
        }
        put_message(&call->next, message, n);
        /* Fails if the stream has not stopped at the end of the last message. */
        (void)nghttp2_session_resume_data(c->session, call->stream_id);
        c->wake(c->u);
}

void grpc_call_fail(struct grpc_call *call, enum grpc_status status, const char *msg) {
        BUG_ON(call->state != CALL_OPEN || status == GRPC_OK);
        finish_status(call, "200", status, msg);
}

void grpc_call_on_cancel(struct grpc_call *call, grpc_cancel_fn *fn, void *u) {
        BUG_ON(call->state != CALL_OPEN);
        call->cancel = fn;
        call->cancel_u = u;
}

uint64_t grpc_call_timeout_ms(const struct grpc_call *call) {
        return call->timeout_ms;
}

/* Requests. */

/* 1 to 8 digits and a unit. Less than a millisecond is rounded up, so that 0 means that there is no timeout.
 */
static bool parse_timeout(struct str s, uint64_t *ret_ms) {
        static const struct {
                char unit;
                uint64_t times, per;
        } units[] = { { 'H', 3600000, 1 }, { 'M', 60000, 1 }, { 'S', 1000, 1 },
                      { 'm', 1, 1 },       { 'u', 1, 1000 },  { 'n', 1, 1000000 } };
        uint64_t v = 0;
        if (s.n < 2 || s.n > 9)
                return false;
        for (size_t i = 0; i < s.n - 1; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                v = v * 10 + (uint64_t)(s.p[i] - '0');
        }
        for (size_t i = 0; i < ARRAY_LEN(units); i++) {
                if (units[i].unit != s.p[s.n - 1])
                        continue;
                v = (v * units[i].times + units[i].per - 1) / units[i].per;
                *ret_ms = v ? v : 1;
                return true;
        }
        return false;
}

/* "application/grpc", optionally followed by a sub-type ("+proto") or parameters. */
static bool is_grpc_content(struct str v) {
        struct str want = STR("application/grpc");
        return v.n >= want.n && memcmp(v.p, want.p, want.n) == 0 &&
               (v.n == want.n || v.p[want.n] == '+' || v.p[want.n] == ';');
}

/* Checks the limits before a byte of the frame is stored. Headers are compressed, and may have any number of
 * frames. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *u) {
        struct grpc_conn *c = u;
        if (hd->type == NGHTTP2_HEADERS)
                c->header_bytes = hd->length;
        else if (hd->type == NGHTTP2_CONTINUATION)
                c->header_bytes += hd->length;
        else
                return 0;
        return c->header_bytes > c->limits->header_bytes ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        struct grpc_conn *c = u;
        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        if (c->refusing)
                return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                 NGHTTP2_REFUSED_STREAM);
        struct grpc_call *call = xnew(struct grpc_call);
        call->conn = c;
        call->stream_id = frame->hd.stream_id;
        call->deadline_ms = UINT64_MAX;
        LIST_INSERT_HEAD(&c->calls, call, link);
        return nghttp2_session_set_stream_user_data(session, call->stream_id, call);
}

static int grpc_conn_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_p,
                               size_t name_n, const uint8_t *value_p, size_t value_n, uint8_t flags,
                               void *u) {
        struct grpc_conn *c = u;
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        struct str name = { (const char *)name_p, name_n }, value = { (const char *)value_p, value_n };
        if (!call || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        if (str_eq(name, STR(":method"))) {
                call->post = str_eq(value, STR("POST"));
        } else if (str_eq(name, STR(":path"))) {
                for (const struct grpc_method *m = c->methods; m->path; m++)
                        if (str_eq(value, str_from(m->path)))
                                call->method = m;
                free(call->path);
                call->path = xstrndup(value.p, value.n < MAX_PATH_KEPT ? value.n : MAX_PATH_KEPT);
        } else if (str_eq(name, STR("content-type"))) {
                call->grpc_content = is_grpc_content(value);
        } else if (str_eq(name, STR("grpc-encoding"))) {
                call->compressed = !str_eq(value, STR("identity"));
        } else if (str_eq(name, STR("grpc-timeout"))) {
                call->bad_timeout = !parse_timeout(value, &call->timeout_ms);
                call->deadline_ms = c->now_ms + call->timeout_ms;
        }
        return 0;
}

static void headers_complete(struct grpc_call *call) {
        if (!call->post) {
                finish_status(call, "405", GRPC_INTERNAL, "gRPC calls are made with POST");
        } else if (!call->grpc_content) {
                finish_status(call, "415", GRPC_INTERNAL, "the content-type is not application/grpc");
        } else if (!call->method) {
                _cleanup_(freep) char *msg = xasprintf("unknown method %s", str_or(call->path, "\"\""));
                reject(call, GRPC_UNIMPLEMENTED, msg);
        } else if (call->compressed) {
                reject(call, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        } else if (call->bad_timeout) {
                reject(call, GRPC_INVALID_ARGUMENT, "malformed grpc-timeout");
        }
}

/* Checks the length before a byte of the message is stored. Memory grows with the received bytes. */
static void prefix_complete(struct grpc_call *call) {
        const uint8_t *p = call->prefix;
        size_t max = call->conn->limits->message_bytes;
        call->announced = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
        call->in = BUF_INIT(max);
        if (p[0] != 0) {
                reject(call, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        } else if (call->announced > max) {
                _cleanup_(freep) char *msg = xasprintf("the request has %zu bytes, at most %zu are accepted",
                                                       call->announced, max);
                reject(call, GRPC_RESOURCE_EXHAUSTED, msg);
        }
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *p,
                         size_t n, void *u) {
        struct grpc_conn *c = u;
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream_id);
        if (!call || call->state != CALL_REQUEST)
                return 0;
        if (call->n_prefix < PREFIX) {
                size_t k = PREFIX - call->n_prefix;
                if (k > n)
                        k = n;
                memcpy(call->prefix + call->n_prefix, p, k);
                call->n_prefix += k;
                p += k;
                n -= k;
                if (call->n_prefix < PREFIX)
                        return 0;
                prefix_complete(call);
                if (call->state != CALL_REQUEST)
                        return 0;
        }
        if (n > call->announced - call->in.n) {
                reject(call, GRPC_UNIMPLEMENTED, "more than one message in a unary call");
        } else if (n > c->limits->buffered_bytes - c->buffered) {
                reject(call, GRPC_RESOURCE_EXHAUSTED, "too many unfinished requests on this connection");
        } else {
                buf_add(&call->in, p, n);
                c->buffered += n;
        }
        return 0;
}

static void request_complete(struct grpc_call *call) {
        if (call->n_prefix < PREFIX || call->in.n < call->announced) {
                reject(call, GRPC_INTERNAL, "the request ended inside its message");
                return;
        }
        struct buf in = call->in;
        call->in = BUF_INIT(0);
        call->conn->buffered -= in.n;
        call->state = CALL_OPEN;
        call->method->fn(call->conn->methods_u, call, (struct str){ buf_str(&in), in.n });
        /* A call that is answered later can be cancelled before, and its handler must be notified. */
        BUG_ON(call->state == CALL_OPEN && !call->cancel);
        buf_done(&in);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
                return 0;
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (!call || call->state != CALL_REQUEST)
                return 0;
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
                headers_complete(call);
        if (call->state == CALL_REQUEST && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
                request_complete(call);
        return 0;
}

/* The answer was sent before the request ended: reject the rest of the request. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
            nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
                return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                 NGHTTP2_NO_ERROR);
        return 0;
}

static void grpc_conn_call_free(struct grpc_call *call) {
        LIST_REMOVE(call, link);
        drop_request(call);
        buf_done(&call->out);
        buf_done(&call->next);
        free(call->status_message);
        free(call->path);
        free(call);
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *u) {
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream_id);
        if (call) {
                cancel(call);
                grpc_conn_call_free(call);
        }
        return 0;
}

/* The connection. */

static nghttp2_session *session_new(struct grpc_conn *c) {
        nghttp2_session_callbacks *cb;
        nghttp2_option *option;
        nghttp2_session *s;
        BUG_ON(nghttp2_session_callbacks_new(&cb) != 0 || nghttp2_option_new(&option) != 0);
        nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
        nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(cb, grpc_conn_on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
        nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
        nghttp2_option_set_no_closed_streams(
                option, 1); /* closed streams matter only for priorities, which gRPC does not use */
        nghttp2_option_set_max_outbound_ack(option, c->limits->acks);
        BUG_ON(nghttp2_session_server_new2(&s, cb, c, option) != 0);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(cb);

        const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->limits->calls },
                { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
                { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)c->limits->header_bytes },
        };
        BUG_ON(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) != 0);
        BUG_ON(nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) != 0);
        return s;
}

struct grpc_conn *grpc_conn_new(const struct grpc_method *methods, void *methods_u,
                                const struct grpc_limits *limits, void (*wake)(void *u), void *u) {
        struct grpc_conn *c = xnew(struct grpc_conn);
        c->methods = methods;
        c->methods_u = methods_u;
        c->limits = limits;
        c->wake = wake;
        c->u = u;
        LIST_INIT(&c->calls);
        c->session = session_new(c);
        return c;
}

void grpc_conn_free(struct grpc_conn *c) {
        if (!c)
                return;
        BUG_ON(c->inside);
        nghttp2_session_del(c->session);
        while (!LIST_EMPTY(&c->calls))
                grpc_conn_call_free(LIST_FIRST(&c->calls));
        free(c);
}

void grpc_conn_recv(struct grpc_conn *c, const void *p, size_t n, uint64_t now_ms) {
        BUG_ON(c->inside);
        c->now_ms = now_ms;
        if (!c->broken) {
                c->inside = true;
                c->broken = session_mem_recv(c->session, p, n) < 0;
                c->inside = false;
        }
        c->wake(c->u);
}

void grpc_conn_output(struct grpc_conn *c, struct buf *out, size_t enough) {
        BUG_ON(c->inside);
        c->inside = true;
        while (out->n < enough) {
                const uint8_t *p;
                nghttp2_ssize n = session_mem_send(c->session, &p);
                if (n < 0)
                        c->broken = true;
                if (n <= 0)
                        break;
                buf_add(out, p, (size_t)n);
        }
        BUG_ON(out->failed);
        c->inside = false;
}

bool grpc_conn_is_broken(const struct grpc_conn *c) {
        return c->broken;
}

bool grpc_conn_finished(const struct grpc_conn *c) {
        return c->broken ||
               (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session));
}

uint64_t grpc_conn_deadline(const struct grpc_conn *c) {
        uint64_t first = UINT64_MAX;
        struct grpc_call *call;
        LIST_FOREACH (call, &c->calls, link)
                if (call->state != CALL_ANSWERED && call->deadline_ms < first)
                        first = call->deadline_ms;
        return first;
}

/* Cancels an open call: notifies its handler, then sends the reason to the peer. */
static void give_up(struct grpc_call *call, enum grpc_status status, const char *msg) {
        cancel(call);
        reject(call, status, msg);
}

void grpc_conn_expire(struct grpc_conn *c, uint64_t now_ms) {
        struct grpc_call *call;
        c->now_ms = now_ms;
        LIST_FOREACH (call, &c->calls, link)
                if (call->state != CALL_ANSWERED && call->deadline_ms <= now_ms)
                        give_up(call, GRPC_DEADLINE_EXCEEDED, "the caller's deadline has passed");
}

void grpc_conn_shutdown(struct grpc_conn *c) {
        struct grpc_call *call;
        c->refusing = true;
        LIST_FOREACH (call, &c->calls, link)
                if (call->state != CALL_ANSWERED)
                        give_up(call, GRPC_UNAVAILABLE, "the server is shutting down");
        int32_t last = nghttp2_session_get_last_proc_stream_id(c->session);
        if (nghttp2_is_fatal(
                    nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0)))
                c->broken = true;
        c->wake(c->u);
}

void grpc_conn_break(struct grpc_conn *c) {
        struct grpc_call *call;
        c->refusing = true;
        LIST_FOREACH (call, &c->calls, link)
                cancel(call);
}
