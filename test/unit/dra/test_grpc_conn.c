/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol part with a raw HTTP/2 client, in memory. test_grpc_stream.c tests streams. */
#include "grpc_bed.h"

/* Answers. */

static void test_reply(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = call_with(b, "/test.Test/Echo", "hello", 5, NULL);
        shuttle(b);
        assert_text(h2_reply(call), "hello");
        assert_int_equal(call->header_frames, 2); /* headers and trailers */
        assert_true(call->ended_by_headers);
        assert_int_equal(call->close_code, NGHTTP2_NO_ERROR);
        assert_null(call->grpc_message);
        assert_true(b->wakes > 0);
        struct h2_call *empty = call_with(b, "/test.Test/Echo", NULL, 0, NULL);
        shuttle(b);
        assert_text(h2_reply(empty), "");
        assert_false(grpc_conn_finished(b->conn));
        bed_free(b);
}

static void test_error_is_one_frame(void **state) {
        struct bed *b = bed_new();
        b->status = GRPC_UNKNOWN;
        b->message = "no such claim";
        struct h2_call *call = call_with(b, "/test.Test/Fail", "x", 1, NULL);
        shuttle(b);
        assert_status(call, GRPC_UNKNOWN, "no such claim");
        assert_string_equal(call->content_type, "application/grpc");
        bed_free(b);
}

static void test_message_is_percent_encoded(void **state) {
        struct bed *b = bed_new();
        b->status = GRPC_INTERNAL;
        b->message = "100% \"b\xc3\xa4"
                     "d\"\nline\t\x1f~\x7f";
        struct h2_call *call = call_with(b, "/test.Test/Fail", "x", 1, NULL);
        shuttle(b);
        assert_status(call, GRPC_INTERNAL, "100%25 \"b%C3%A4d\"%0Aline%09%1F~%7F");
        bed_free(b);
}

static void test_message_is_cut_between_characters(void **state) {
        struct bed *b = bed_new();
        char *long_text = xcalloc(1, GRPC_MAX_STATUS_MESSAGE + 10);
        memset(long_text, 'a', GRPC_MAX_STATUS_MESSAGE + 5);
        memcpy(long_text + GRPC_MAX_STATUS_MESSAGE - 2, "\xe2\x82\xac", 3); /* the limit is inside */
        b->status = GRPC_INTERNAL;
        b->message = long_text;
        struct h2_call *call = call_with(b, "/test.Test/Fail", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(call->grpc_status, GRPC_INTERNAL);
        assert_int_equal(strlen(call->grpc_message), GRPC_MAX_STATUS_MESSAGE - 2);
        free(long_text);
        bed_free(b);
}

static void test_message_without_a_character_to_cut_at(void **state) {
        struct bed *b = bed_new();
        char *long_text = xcalloc(1, GRPC_MAX_STATUS_MESSAGE + 10);
        memset(long_text, '\x80', GRPC_MAX_STATUS_MESSAGE + 5);
        b->status = GRPC_INTERNAL;
        b->message = long_text;
        struct h2_call *call = call_with(b, "/test.Test/Fail", "x", 1, NULL);
        shuttle(b);
        assert_status(call, GRPC_INTERNAL, "");
        free(long_text);
        bed_free(b);
}

/* One byte more than a frame holds. */
static void test_reply_of_two_frames(void **state) {
        struct bed *b = bed_new();
        b->reply_size = (16 << 10) + 1 - 5;
        struct h2_call *call = call_with(b, "/test.Test/Sized", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(h2_reply(call).n, b->reply_size);
        assert_int_equal(call->data_frames, 2);
        bed_free(b);
}

static void test_output_ends_with_the_frame_that_is_enough(void **state) {
        struct buf out = BUF_INIT(1 << 20);
        size_t first = 1;
        for (int i = 0; i < 2; i++) {
                struct bed *b = bed_new();
                grpc_conn_recv(b->conn, "", 0, 0);
                assert_false(grpc_conn_is_broken(b->conn));
                buf_clear(&out);
                grpc_conn_output(b->conn, &out, first); /* SETTINGS; WINDOW_UPDATE would follow */
                assert_true(i ? out.n == first : out.n > first);
                first = out.n;
                bed_free(b);
        }
        buf_done(&out);
}

static void test_reply_too_large(void **state) {
        struct bed *b = bed_new();
        b->reply_size = GRPC_MAX_MESSAGE + 1;
        struct h2_call *call = call_with(b, "/test.Test/Sized", "x", 1, NULL);
        shuttle(b);
        assert_status(call, GRPC_RESOURCE_EXHAUSTED, "the reply has 4194305 bytes, at most 4194304 are sent");
        bed_free(b);
}

static void test_answers_later_in_any_order(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call[3];
        for (size_t i = 0; i < 3; i++)
                call[i] = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        struct h2_call *between = call_with(b, "/test.Test/Echo", "quick", 5, NULL);
        shuttle(b);
        assert_int_equal(b->n_kept, 3);
        assert_text(h2_reply(between), "quick");
        unsigned wakes = b->wakes;
        grpc_call_reply(b->kept[1], "second", 6);
        assert_true(b->wakes > wakes); /* otherwise the owner would not fetch the answer */
        shuttle(b);
        assert_text(h2_reply(call[1]), "second");
        assert_false(call[0]->closed);
        grpc_call_fail(b->kept[2], GRPC_UNAVAILABLE, "third");
        grpc_call_reply(b->kept[0], "first", 5);
        shuttle(b);
        assert_text(h2_reply(call[0]), "first");
        assert_status(call[2], GRPC_UNAVAILABLE, "third");
        assert_int_equal(b->cancelled, 0);
        bed_free(b);
}

/* Requests. */

static void test_split_in_every_way(void **state) {
        for (size_t slice = 0; slice <= 9; slice++) {
                for (size_t frame = 0; frame <= 7; frame++) {
                        struct bed *b = bed_new();
                        b->slice = slice;
                        struct h2_call *call = call_with(b, "/test.Test/Echo", "a message of some length", 24,
                                                         &(struct h2_options){ .frame_size = frame });
                        shuttle(b);
                        assert_text(h2_reply(call), "a message of some length");
                        bed_free(b);
                }
        }
}

static void test_largest_message(void **state) {
        struct bed *b = bed_new();
        char *big = xmalloc(GRPC_MAX_MESSAGE);
        for (size_t i = 0; i < GRPC_MAX_MESSAGE; i++)
                big[i] = (char)(i * 7 + (i >> 12));
        struct h2_call *call = call_with(b, "/test.Test/Echo", big, GRPC_MAX_MESSAGE, NULL);
        shuttle(b);
        struct str got = h2_reply(call);
        assert_int_equal(got.n, GRPC_MAX_MESSAGE);
        assert_memory_equal(got.p, big, got.n);
        free(big);
        bed_free(b);
}

/* The announced length is checked before a byte of the message is sent. */
/* failure: a request announces a message that is too long -> it is refused before the message arrives */
static void test_announced_length(void **state) {
        const struct {
                uint8_t prefix[5];
                int status;
        } cases[] = { { { 0, 0x00, 0x40, 0x00, 0x01 }, GRPC_RESOURCE_EXHAUSTED },
                      { { 0, 0xff, 0xff, 0xff, 0xff }, GRPC_RESOURCE_EXHAUSTED },
                      { { 1, 0, 0, 0, 1 }, GRPC_UNIMPLEMENTED },
                      { { 0xff, 0, 0, 0, 1 }, GRPC_UNIMPLEMENTED } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct bed *b = bed_new();
                struct h2_call *call = h2_call(b->client, "/test.Test/Echo", cases[i].prefix, 5,
                                               &(struct h2_options){ .open = true, .frame_size = 2 });
                shuttle(b);
                assert_true(call->closed);
                assert_int_equal(call->grpc_status, cases[i].status);
                assert_int_equal(call->close_code,
                                 NGHTTP2_NO_ERROR); /* stop sending; the connection has no error */
                assert_int_equal(b->handled, 0);
                struct h2_call *next = call_with(b, "/test.Test/Echo", "ok", 2, NULL);
                shuttle(b);
                assert_text(h2_reply(next), "ok");
                bed_free(b);
        }
}

/* failure: a gRPC request has bad headers -> it is refused with a gRPC status */
static void test_bad_headers(void **state) {
        const struct {
                const char *path;
                struct h2_options o;
                int http, status;
                const char *message;
        } cases[] = {
                { "/test.Test/Nothing", { 0 }, 200, GRPC_UNIMPLEMENTED, "unknown method /test.Test/Nothing" },
                { "/test.Test/Echo/", { 0 }, 200, GRPC_UNIMPLEMENTED, "unknown method /test.Test/Echo/" },
                { "/x%y", { 0 }, 200, GRPC_UNIMPLEMENTED, "unknown method /x%25y" },
                { "/test.Test/Echo",
                  { .method = "GET" },
                  405,
                  GRPC_INTERNAL,
                  "gRPC calls are made with POST" },
                { "/test.Test/Echo",
                  { .content_type = "text/plain" },
                  415,
                  GRPC_INTERNAL,
                  "the content-type is not application/grpc" },
                { "/test.Test/Echo",
                  { .content_type = "application/grpc-web" },
                  415,
                  GRPC_INTERNAL,
                  "the content-type is not application/grpc" },
                { "/test.Test/Echo",
                  { .encoding = "gzip" },
                  200,
                  GRPC_UNIMPLEMENTED,
                  "compressed messages are not supported" },
                { "/test.Test/Echo",
                  { .timeout = "" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "5" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "S" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "-1S" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "1s" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "1/S" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "1:S" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
                { "/test.Test/Echo",
                  { .timeout = "123456789S" },
                  200,
                  GRPC_INVALID_ARGUMENT,
                  "malformed grpc-timeout" },
        };
        struct bed *b = bed_new();
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct h2_call *call = call_with(b, cases[i].path, "x", 1, &cases[i].o);
                shuttle(b);
                assert_true(call->closed);
                assert_int_equal(call->http_status, cases[i].http);
                assert_int_equal(call->grpc_status, cases[i].status);
                assert_string_equal(call->grpc_message, cases[i].message);
        }
        assert_int_equal(b->handled, 0);
        static const char *const good[] = { "application/grpc", "application/grpc+proto",
                                            "application/grpc; charset=utf-8" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                struct h2_call *call =
                        call_with(b, "/test.Test/Echo", "x", 1,
                                  &(struct h2_options){ .content_type = good[i], .encoding = "identity" });
                shuttle(b);
                assert_text(h2_reply(call), "x");
        }
        bed_free(b);
}

/* failure: a gRPC request has a bad body -> it is refused with a gRPC status */
static void test_bad_bodies(void **state) {
        struct bed *b = bed_new();
        struct h2_call *none = h2_call(b->client, "/test.Test/Echo", NULL, 0, NULL);
        struct h2_call *half_prefix = h2_call(b->client, "/test.Test/Echo", "\0\0\0", 3, NULL);
        struct h2_call *most_of_prefix = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0", 4, NULL);
        struct h2_call *half = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\5abc", 8, NULL);
        struct h2_call *most = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\5abcd", 9, NULL);
        struct h2_call *more = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\1ab", 7, NULL);
        struct h2_call *two = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\1a\0\0\0\0\1b", 12, NULL);
        struct h2_call *good = h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\1a", 6, NULL);
        shuttle(b);
        assert_status(none, GRPC_INTERNAL, "the request ended inside its message");
        assert_status(half_prefix, GRPC_INTERNAL, "the request ended inside its message");
        assert_status(most_of_prefix, GRPC_INTERNAL, "the request ended inside its message");
        assert_status(half, GRPC_INTERNAL, "the request ended inside its message");
        assert_status(most, GRPC_INTERNAL, "the request ended inside its message");
        assert_status(more, GRPC_UNIMPLEMENTED, "more than one message in a unary call");
        assert_status(two, GRPC_UNIMPLEMENTED, "more than one message in a unary call");
        assert_text(h2_reply(good), "a");
        assert_int_equal(b->handled, 1);
        bed_free(b);
}

static void test_request_ended_by_trailers(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call =
                h2_call(b->client, "/test.Test/Echo", "\0\0\0\0\1a", 6, &(struct h2_options){ .open = true });
        shuttle(b);
        assert_int_equal(b->handled, 0);
        h2_send_trailers(call);
        shuttle(b);
        assert_text(h2_reply(call), "a");
        bed_free(b);
}

/* The memory of a connection is limited over all its calls. */
static void test_unfinished_requests_are_limited(void **state) {
        enum { EACH = GRPC_MAX_MESSAGE - 1, FIT = GRPC_MAX_BUFFERED / EACH };
        struct bed *b = bed_new();
        char *most = xcalloc(1, EACH);
        struct h2_call *call[FIT + 1];
        for (size_t i = 0; i <= FIT; i++) {
                call[i] = h2_call(b->client, "/test.Test/Echo", "\0\0\x40\0\0", 5,
                                  &(struct h2_options){ .open = true });
                h2_send(call[i], most, EACH, false);
                shuttle(b);
        }
        free(most);
        for (size_t i = 0; i < FIT; i++)
                assert_false(call[i]->closed);
        assert_status(call[FIT], GRPC_RESOURCE_EXHAUSTED, "too many unfinished requests on this connection");
        h2_send(call[0], "z", 1, true); /* one ends, and there is room again */
        h2_reset(call[1]);
        shuttle(b);
        assert_int_equal(h2_reply(call[0]).n, GRPC_MAX_MESSAGE);
        struct h2_call *next = call_with(b, "/test.Test/Echo", "ok", 2, NULL);
        shuttle(b);
        assert_text(h2_reply(next), "ok");
        bed_free(b);
}

static void test_concurrent_calls_are_limited(void **state) {
        struct bed *b = bed_new();
        shuttle(b); /* our SETTINGS */
        struct h2_call *call[300];
        for (size_t i = 0; i < ARRAY_LEN(call); i++)
                call[i] = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(b->n_kept, GRPC_MAX_CALLS);
        answer_all(b);
        shuttle(b);
        assert_int_equal(b->n_kept, ARRAY_LEN(call) - GRPC_MAX_CALLS);
        answer_all(b);
        shuttle(b);
        for (size_t i = 0; i < ARRAY_LEN(call); i++)
                assert_text(h2_reply(call[i]), "late");
        bed_free(b);
}

/* A server with smaller limits. */

static const struct grpc_limits small_limits = {
        .message_bytes = 1 << 10,
        .buffered_bytes = 8 << 10,
        .header_bytes = 4 << 10,
        .write_bytes = 8 << 10,
        .calls = 8,
        .acks = 16,
};

static void test_message_and_call_limits(void **state) {
        struct bed *b = bed_new_with(&small_limits);
        shuttle(b);
        struct h2_call *large = h2_call(b->client, "/test.Test/Echo", "\0\0\0\4\1", 5,
                                        &(struct h2_options){ .open = true }),
                       *fits = call_with(b, "/test.Test/Echo", "probe", 5, NULL), *kept[20];
        b->reply_size = 1025;
        struct h2_call *reply = call_with(b, "/test.Test/Sized", "x", 1, NULL);
        shuttle(b);
        assert_status(large, GRPC_RESOURCE_EXHAUSTED,
                      "the request has 1025 bytes, at most 1024 are accepted");
        assert_status(reply, GRPC_RESOURCE_EXHAUSTED, "the reply has 1025 bytes, at most 1024 are sent");
        assert_text(h2_reply(fits), "probe");
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                kept[i] = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(b->n_kept, 8);
        bed_free(b);
}

static void test_the_limit_of_unfinished_requests(void **state) {
        for (size_t less = 0; less <= 1; less++) {
                struct grpc_limits limits = small_limits;
                limits.buffered_bytes = 2 * limits.message_bytes - less;
                struct bed *b = bed_new_with(&limits);
                char message[1 << 10] = "";
                struct h2_call *call[2];
                for (size_t i = 0; i < ARRAY_LEN(call); i++) {
                        call[i] = h2_call(b->client, "/test.Test/Echo", "\0\0\0\4\0", 5,
                                          &(struct h2_options){ .open = true });
                        h2_send(call[i], message, sizeof message, false);
                        shuttle(b);
                }
                assert_false(call[0]->closed);
                assert_int_equal(call[1]->closed, less);
                bed_free(b);
        }
}

/* The length in the header of a frame counts, before the frame itself has been received. */
static void test_the_limit_of_one_frame_of_headers(void **state) {
        static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
        for (unsigned char more = 0; more <= 1; more++) {
                struct bed *b = bed_new_with(&small_limits);
                const unsigned char headers[] = { 0, 16, more, 1, 4, 0, 0, 0, 1 };
                grpc_conn_recv(b->conn, start, sizeof start - 1, 0);
                grpc_conn_recv(b->conn, headers, sizeof headers, 0);
                assert_int_equal(grpc_conn_is_broken(b->conn), more);
                bed_free(b);
        }
}

/* failure: the kubelet's socket gets long headers -> the connection is closed */
static void test_the_header_limit(void **state) {
        struct bed *b = bed_new_with(&small_limits);
        char name[12001];
        memset(name, 'x', sizeof name - 1);
        name[0] = '/';
        name[sizeof name - 1] = '\0';
        (void)call_with(b, name, "x", 1, NULL);
        (void)to_server(b);
        assert_true(grpc_conn_finished(b->conn));
        bed_free(b);
}

/* Calls that end early. */

static void test_cancel(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call[3];
        for (size_t i = 0; i < 3; i++)
                call[i] = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        h2_reset(call[1]);
        shuttle(b);
        assert_int_equal(b->cancelled, 1);
        assert_int_equal(b->n_kept, 2);
        b->answer_others = true; /* from inside the cancel function */
        h2_reset(call[0]);
        shuttle(b);
        assert_int_equal(b->cancelled, 2);
        assert_text(h2_reply(call[2]), "late");
        bed_free(b);
}

static void test_cancel_of_unfinished_request(void **state) {
        struct bed *b = bed_new();
        struct h2_call *call = h2_call(b->client, "/test.Test/Keep", "\0\0\0\0\7abc", 8,
                                       &(struct h2_options){ .open = true });
        shuttle(b);
        h2_reset(call);
        shuttle(b);
        assert_int_equal(b->handled + b->cancelled, 0); /* no handler was called */
        bed_free(b);
}

/* The answer waits for the peer's window when the peer resets the stream. */
static void test_cancel_while_answering(void **state) {
        struct bed *b = bed_new();
        b->reply_size = 1 << 20;
        struct h2_call *call = call_with(b, "/test.Test/Sized", "x", 1, NULL);
        to_server(b);
        to_client(b);
        assert_true(call->reply.n > 0 && !call->closed);
        h2_reset(call);
        shuttle(b);
        assert_int_equal(b->cancelled, 0);
        bed_free(b);
}

static void test_broken_connection(void **state) {
        struct bed *b = bed_new();
        for (size_t i = 0; i < 5; i++)
                (void)call_with(b, i % 2 ? "/test.Test/Echo" : "/test.Test/Keep", "x", 1, NULL);
        (void)h2_call(b->client, "/test.Test/Keep", "\0\0\0\0\7abc", 8, &(struct h2_options){ .open = true });
        to_server(b); /* and nothing back: two answers are on their way, three calls open, one unfinished */
        b->answer_others = true;
        grpc_conn_break(b->conn);
        assert_int_equal(b->cancelled + b->n_kept, 1); /* the first cancel answered the other two */
        grpc_conn_break(b->conn);
        assert_int_equal(b->cancelled, 1);
        bed_free(b); /* nghttp2 reports none of the six streams; the leak checker shows any that remain */
}

static void test_shutdown(void **state) {
        struct bed *b = bed_new();
        struct h2_call *open = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        struct h2_call *unfinished =
                h2_call(b->client, "/test.Test/Echo", "\0\0", 2, &(struct h2_options){ .open = true });
        shuttle(b);
        struct h2_call *answered = call_with(b, "/test.Test/Echo", "ok", 2, NULL);
        to_server(b);
        grpc_conn_shutdown(b->conn);
        assert_int_equal(b->cancelled, 1);
        shuttle(b);
        assert_status(open, GRPC_UNAVAILABLE, "the server is shutting down");
        assert_status(unfinished, GRPC_UNAVAILABLE, "the server is shutting down");
        assert_text(h2_reply(answered), "ok");
        assert_true(b->client->goaway);
        assert_int_equal(b->client->goaway_code, NGHTTP2_NO_ERROR);
        assert_int_equal(b->client->goaway_last, answered->stream_id);
        assert_true(grpc_conn_finished(b->conn));
        bed_free(b);
}

/* Time. */

static void test_timeouts(void **state) {
        const struct {
                const char *text;
                uint64_t ms;
        } cases[] = { { NULL, 0 },
                      { "45S", 45000 },
                      { "1H", 3600000 },
                      { "2M", 120000 },
                      { "250m", 250 },
                      { "1500u", 2 },
                      { "1n", 1 },
                      { "0S", 1 },
                      { "44999999u", 45000 },
                      { "99999999H", UINT64_C(359999996400000) } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct bed *b = bed_new();
                (void)call_with(b, "/test.Test/Keep", "x", 1,
                                &(struct h2_options){ .timeout = cases[i].text });
                shuttle(b);
                assert_int_equal(b->n_kept, 1);
                assert_int_equal(grpc_call_timeout_ms(b->kept[0]), cases[i].ms);
                assert_int_equal(grpc_conn_deadline(b->conn),
                                 cases[i].text ? 1000 + cases[i].ms : UINT64_MAX);
                bed_free(b);
        }
}

static void test_the_first_deadline_counts(void **state) {
        static const char *const timeouts[] = { "2001m", "2000m", "2001m" };
        struct bed *b = bed_new();
        for (size_t i = 0; i < ARRAY_LEN(timeouts); i++)
                (void)call_with(b, "/test.Test/Keep", "x", 1, &(struct h2_options){ .timeout = timeouts[i] });
        shuttle(b);
        assert_int_equal(grpc_conn_deadline(b->conn), 3000);
        bed_free(b);
}

static void test_deadline(void **state) {
        struct bed *b = bed_new();
        struct h2_call *late =
                call_with(b, "/test.Test/Keep", "x", 1, &(struct h2_options){ .timeout = "3S" });
        struct h2_call *first =
                call_with(b, "/test.Test/Keep", "x", 1, &(struct h2_options){ .timeout = "2S" });
        struct h2_call *unfinished = h2_call(b->client, "/test.Test/Echo", "\0\0", 2,
                                             &(struct h2_options){ .open = true, .timeout = "2S" });
        struct h2_call *never = call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        assert_int_equal(grpc_conn_deadline(b->conn), 3000);
        grpc_conn_expire(b->conn, 2999);
        assert_int_equal(b->cancelled, 0);
        grpc_conn_expire(b->conn, 3000);
        shuttle(b);
        assert_int_equal(b->cancelled, 1);
        assert_status(first, GRPC_DEADLINE_EXCEEDED, "the caller's deadline has passed");
        assert_status(unfinished, GRPC_DEADLINE_EXCEEDED, "the caller's deadline has passed");
        assert_int_equal(grpc_conn_deadline(b->conn), 4000);
        b->answer_others = true;
        grpc_conn_expire(b->conn, 9000);
        shuttle(b);
        assert_int_equal(late->grpc_status, GRPC_DEADLINE_EXCEEDED);
        assert_text(h2_reply(never), "late");
        assert_int_equal(grpc_conn_deadline(b->conn), UINT64_MAX);
        bed_free(b);
}

/* Peers that violate the protocol. */

/* failure: a connection does not speak HTTP/2 -> it is closed */
static void test_not_http2(void **state) {
        static const char *const inputs[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                              "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                              "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" };
        for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
                struct bed *b = bed_new();
                grpc_conn_recv(b->conn, inputs[i], strlen(inputs[i]), 0);
                assert_true(grpc_conn_finished(b->conn));
                grpc_conn_recv(b->conn, inputs[i], strlen(inputs[i]), 0); /* bytes that were in transit */
                struct buf out = BUF_INIT(1 << 20);
                grpc_conn_output(b->conn, &out, 1 << 19);
                buf_done(&out);
                bed_free(b);
        }
}

static void test_protocol_error_cancels(void **state) {
        struct bed *b = bed_new();
        (void)call_with(b, "/test.Test/Keep", "x", 1, NULL);
        shuttle(b);
        static const uint8_t settings_on_a_stream[] = { 0, 0, 0, 4, 0, 0, 0, 0, 1 };
        grpc_conn_recv(b->conn, settings_on_a_stream, sizeof settings_on_a_stream, 0);
        to_client(b);
        assert_true(b->client->goaway);
        assert_int_equal(b->client->goaway_code, NGHTTP2_PROTOCOL_ERROR);
        assert_true(grpc_conn_finished(b->conn));
        grpc_conn_break(b->conn);
        assert_int_equal(b->cancelled, 1);
        bed_free(b);
}

static void test_ping(void **state) {
        struct bed *b = bed_new();
        h2_ping(b->client);
        shuttle(b);
        assert_int_equal(b->client->pongs, 1);
        bed_free(b);
}

/* A peer that causes answers and never reads must not fill our memory. */
/* failure: a client sends pings and reads nothing -> its connection is closed */
static void test_ping_flood(void **state) {
        struct bed *b = bed_new();
        to_server(b);
        static const uint8_t ping[] = { 0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
        unsigned n = 0;
        for (; n < 100000 && !grpc_conn_finished(b->conn); n++)
                grpc_conn_recv(b->conn, ping, sizeof ping, 0);
        assert_true(grpc_conn_finished(b->conn));
        assert_true(n < 2000);
        bed_free(b);
}

/* A peer opens and resets calls repeatedly. */
/* failure: a client opens and resets calls in a loop -> its connection is closed */
static void test_reset_flood(void **state) {
        struct bed *b = bed_new();
        shuttle(b);
        unsigned n = 0;
        for (; n < 5000 && !b->client->goaway; n++) {
                struct h2_call *call = call_with(b, "/test.Test/Keep", "x", 1, NULL);
                to_server(b);
                h2_reset(call);
                shuttle(b);
        }
        assert_true(b->client->goaway);
        assert_int_equal(b->n_kept, 0);
        bed_free(b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reply),
                cmocka_unit_test(test_error_is_one_frame),
                cmocka_unit_test(test_message_is_percent_encoded),
                cmocka_unit_test(test_message_is_cut_between_characters),
                cmocka_unit_test(test_message_without_a_character_to_cut_at),
                cmocka_unit_test(test_reply_of_two_frames),
                cmocka_unit_test(test_output_ends_with_the_frame_that_is_enough),
                cmocka_unit_test(test_reply_too_large),
                cmocka_unit_test(test_answers_later_in_any_order),
                cmocka_unit_test(test_split_in_every_way),
                cmocka_unit_test(test_largest_message),
                cmocka_unit_test(test_announced_length),
                cmocka_unit_test(test_bad_headers),
                cmocka_unit_test(test_bad_bodies),
                cmocka_unit_test(test_request_ended_by_trailers),
                cmocka_unit_test(test_unfinished_requests_are_limited),
                cmocka_unit_test(test_concurrent_calls_are_limited),
                cmocka_unit_test(test_message_and_call_limits),
                cmocka_unit_test(test_the_limit_of_unfinished_requests),
                cmocka_unit_test(test_the_limit_of_one_frame_of_headers),
                cmocka_unit_test(test_the_header_limit),
                cmocka_unit_test(test_cancel),
                cmocka_unit_test(test_cancel_of_unfinished_request),
                cmocka_unit_test(test_cancel_while_answering),
                cmocka_unit_test(test_broken_connection),
                cmocka_unit_test(test_shutdown),
                cmocka_unit_test(test_timeouts),
                cmocka_unit_test(test_the_first_deadline_counts),
                cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_not_http2),
                cmocka_unit_test(test_protocol_error_cancels),
                cmocka_unit_test(test_ping),
                cmocka_unit_test(test_ping_flood),
                cmocka_unit_test(test_reset_flood),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
