/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_client.h"

#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

enum { MAX_BODY = 64 << 20 };

static nghttp2_nv header(const char *name, const char *value) {
        return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                             .namelen = strlen(name),
                             .value = (uint8_t *)(uintptr_t)value,
                             .valuelen = strlen(value) };
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_p,
                     size_t name_n, const uint8_t *value_p, size_t value_n, uint8_t flags, void *u) {
        struct h2_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        struct str name = { (const char *)name_p, name_n };
        char *value = xstrndup((const char *)value_p, value_n);
        if (str_eq(name, STR(":status")))
                call->http_status = atoi(value);
        else if (str_eq(name, STR("grpc-status")))
                call->grpc_status = atoi(value);
        else if (str_eq(name, STR("grpc-message")))
                call->grpc_message = TAKE(value);
        else if (str_eq(name, STR("content-type")))
                call->content_type = TAKE(value);
        free(value);
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *p, size_t n,
                   void *u) {
        struct h2_call *call = nghttp2_session_get_stream_user_data(session, stream_id);
        buf_add(&call->reply, p, n);
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        struct h2_client *c = u;
        struct h2_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (frame->hd.type == NGHTTP2_GOAWAY) {
                c->goaway = true;
                c->goaway_code = frame->goaway.error_code;
                c->goaway_last = frame->goaway.last_stream_id;
        }
        if (frame->hd.type == NGHTTP2_PING)
                c->pongs++;
        if (call && frame->hd.type == NGHTTP2_DATA)
                call->data_frames++;
        if (call && frame->hd.type == NGHTTP2_HEADERS) {
                call->header_frames++;
                call->ended_by_headers = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
        }
        return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *u) {
        struct h2_call *call = nghttp2_session_get_stream_user_data(session, stream_id);
        call->closed = true;
        call->close_code = code;
        return 0;
}

static ssize_t read_request(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *u) {
        struct h2_call *call = source->ptr;
        size_t n = call->request.n - call->sent;
        if (n > room)
                n = room;
        if (call->frame_size && n > call->frame_size)
                n = call->frame_size;
        if (n)
                memcpy(to, call->request.p + call->sent, n);
        call->sent += n;
        if (call->sent == call->request.n && call->request_complete)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        else if (!n)
                return NGHTTP2_ERR_DEFERRED;
        return (ssize_t)n;
}

struct h2_client *h2_new(void) {
        struct h2_client *c = xnew(struct h2_client);
        nghttp2_session_callbacks *cb;
        nghttp2_session *s;
        assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
        nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
        assert_int_equal(nghttp2_session_client_new(&s, cb, c), 0);
        nghttp2_session_callbacks_del(cb);
        c->session = s;
        assert_int_equal(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, NULL, 0), 0);
        return c;
}

void h2_free(struct h2_client *c) {
        nghttp2_session_del(c->session);
        while (c->calls) {
                struct h2_call *call = c->calls;
                c->calls = call->next;
                buf_done(&call->request);
                buf_done(&call->reply);
                free(call->grpc_message);
                free(call->content_type);
                free(call);
        }
        free(c);
}

struct h2_call *h2_call(struct h2_client *c, const char *path, const void *body, size_t n,
                        const struct h2_options *o) {
        static const struct h2_options none;
        if (!o)
                o = &none;
        struct h2_call *call = xnew(struct h2_call);
        call->client = c;
        call->next = c->calls;
        c->calls = call;
        call->grpc_status = -1;
        call->request = call->reply = BUF_INIT(MAX_BODY);
        buf_add(&call->request, body, n);
        call->frame_size = o->frame_size;
        call->request_complete = !o->open;

        nghttp2_nv nva[8] = { header(":method", o->method ? o->method : "POST"),
                              header(":scheme", "http"),
                              header(":path", path),
                              header(":authority", "localhost"),
                              header("content-type", o->content_type ? o->content_type : "application/grpc"),
                              header("te", "trailers") };
        size_t k = 6;
        if (o->timeout)
                nva[k++] = header("grpc-timeout", o->timeout);
        if (o->encoding)
                nva[k++] = header("grpc-encoding", o->encoding);
        nghttp2_data_provider body_provider = { .source.ptr = call, .read_callback = read_request };
        call->stream_id = nghttp2_submit_request(c->session, NULL, nva, k, &body_provider, call);
        assert_true(call->stream_id > 0);
        return call;
}

void h2_send(struct h2_call *call, const void *p, size_t n, bool end) {
        buf_add(&call->request, p, n);
        call->request_complete = end;
        (void)nghttp2_session_resume_data(call->client->session, call->stream_id);
}

void h2_send_trailers(struct h2_call *call) {
        nghttp2_nv trailer = header("x-end", "1");
        assert_int_equal(nghttp2_submit_trailer(call->client->session, call->stream_id, &trailer, 1), 0);
}

void h2_reset(struct h2_call *call) {
        assert_int_equal(nghttp2_submit_rst_stream(call->client->session, NGHTTP2_FLAG_NONE, call->stream_id,
                                                   NGHTTP2_CANCEL),
                         0);
}

void h2_ping(struct h2_client *c) {
        assert_int_equal(nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL), 0);
}

void h2_open_windows(struct h2_client *c) {
        const nghttp2_settings_entry widest = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX };
        assert_int_equal(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &widest, 1), 0);
        assert_int_equal(nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX),
                         0);
}

uint8_t *h2_message(const void *p, size_t n, size_t *ret_n) {
        const uint8_t prefix[] = { 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };
        uint8_t *out = xmalloc(sizeof prefix + n);
        memcpy(out, prefix, sizeof prefix);
        if (n)
                memcpy(out + sizeof prefix, p, n);
        *ret_n = sizeof prefix + n;
        return out;
}

struct str h2_reply(const struct h2_call *call) {
        assert_true(call->closed);
        assert_int_equal(call->http_status, 200);
        assert_string_equal(call->content_type, "application/grpc");
        assert_int_equal(call->grpc_status, 0);
        assert_true(call->reply.n >= 5);
        const uint8_t *p = (const uint8_t *)call->reply.p;
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
        assert_int_equal(p[0], 0);
        assert_int_equal(n, call->reply.n - 5);
        return (struct str){ call->reply.p + 5, n };
}

size_t h2_output(struct h2_client *c, const uint8_t **ret) {
        ssize_t n = nghttp2_session_mem_send(c->session, ret);
        assert_true(n >= 0);
        return (size_t)n;
}

int h2_input(struct h2_client *c, const void *p, size_t n) {
        return nghttp2_session_mem_recv(c->session, p, n) == (ssize_t)n ? 0 : -1;
}
