/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "world/fake_server.h"

struct answer {
        struct http_call *call;
        unsigned done_calls;
        bool done, headed, got_data;
        int status, retry_after_s;
        struct buf body, data;
        bool failed;
        struct err err;
        void (*on_done)(struct answer *a);
        void (*on_data)(struct answer *a);
        void *u;
};

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct http_client *client;
        const char *token;
        struct fake_conn *last;
        char path[256], head[4096], body[4096], method[16];
        struct answer a, b;
};

static const char *token_of(void *u) {
        return ((struct world *)u)->token;
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->a.body = w->a.data = w->b.body = w->b.data = BUF_INIT(1 << 20);
        *state = w;
        return 0;
}

static void serve_impatiently(struct world *w, fake_fn *fn, unsigned silence_ms) {
        struct http_client_options o = {
                .user_agent = "test/1", .token = token_of, .token_u = w, .silence_ms = silence_ms
        };
        char url[64];
        struct err e;

        w->server = fake_server_new(&w->loop, 0, fn, w);
        snprintf(url, sizeof url, "http://127.0.0.1:%d", fake_server_port(w->server));
        o.base_url = url;
        assert_int_equal(http_client_new(&w->loop, &o, &w->client, &e), 0);
}

static void serve(struct world *w, fake_fn *fn) {
        serve_impatiently(w, fn, 0);
}

static int tear_down(void **state) {
        struct world *w = *state;
        http_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        buf_done(&w->a.body);
        buf_done(&w->a.data);
        buf_done(&w->b.body);
        buf_done(&w->b.data);
        free(w);
        return 0;
}

static void on_done(void *u, const struct http_response *r) {
        struct answer *a = u;
        a->done = true;
        a->done_calls++;
        a->status = r->status;
        a->retry_after_s = r->retry_after_s;
        buf_add(&a->body, r->body, r->body_len);
        assert_int_equal(r->body[r->body_len], 0);
        a->failed = r->transport != NULL;
        if (r->transport)
                a->err = *r->transport;
        a->call = NULL;
        if (a->on_done)
                a->on_done(a);
}

static void on_data(void *u, const char *p, size_t n) {
        struct answer *a = u;
        assert_true(a->headed);
        a->got_data = true;
        buf_add(&a->data, p, n);
        if (a->on_data)
                a->on_data(a);
}

static void on_head(void *u, const char *content_type) {
        ((struct answer *)u)->headed = true;
}

static void get(struct world *w, struct answer *a, const char *path) {
        a->call = http_start(
                w->client, &(struct http_request){ .method = "GET", .path = path, .done = on_done, .u = a });
        assert_false(a->done);
}

static void stream(struct world *w, struct answer *a, const char *path) {
        a->call = http_start(w->client, &(struct http_request){ .method = "GET",
                                                                .path = path,
                                                                .head = on_head,
                                                                .data = on_data,
                                                                .done = on_done,
                                                                .u = a });
}

/* Stores the request, and answers by its path. */
static void usual(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        w->last = c;
        snprintf(w->method, sizeof w->method, "%s", r->method);
        snprintf(w->path, sizeof w->path, "%s", r->path);
        snprintf(w->head, sizeof w->head, "%s", r->head);
        snprintf(w->body, sizeof w->body, "%s", r->body);
        if (fake_has(r->path, "/busy"))
                fake_reply(c, 429, "Retry-After: 7\r\n", "{\"message\":\"wait\"}");
        else if (fake_has(r->path, "/stream"))
                fake_stream(c);
        else if (fake_has(r->path, "/break"))
                fake_close(c);
        else if (!fake_has(r->path, "/silent"))
                fake_reply(c, 200, NULL, "{\"ok\":true}");
}

static void test_request_and_answer(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->token = "s3cret";
        w->a.call =
                http_start(w->client, &(struct http_request){ .method = "PATCH",
                                                              .path = "/x/../y?a=%2F",
                                                              .body = "{}rest",
                                                              .body_len = 2,
                                                              .content_type = "application/merge-patch+json",
                                                              .done = on_done,
                                                              .u = &w->a });
        run_until(&w->loop, &w->a.done);
        assert_int_equal(w->a.status, 200);
        assert_int_equal(w->a.retry_after_s, -1);
        assert_false(w->a.failed);
        assert_string_equal(buf_str(&w->a.body), "{\"ok\":true}");
        assert_string_equal(w->method, "PATCH");
        assert_string_equal(w->path, "/x/../y?a=%2F");
        assert_string_equal(w->body, "{}");
        assert_true(fake_has(w->head, "Authorization: Bearer s3cret\r\n"));
        assert_true(fake_has(w->head, "Content-Type: application/merge-patch+json\r\n"));
        assert_true(fake_has(w->head, "User-Agent: test/1\r\n"));
        assert_false(fake_has(w->head, "Expect"));
}

static void test_methods_without_body(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.call = http_start(
                w->client,
                &(struct http_request){ .method = "DELETE", .path = "/x", .done = on_done, .u = &w->a });
        run_until(&w->loop, &w->a.done);
        assert_string_equal(w->method, "DELETE");
        assert_false(fake_has(w->head, "Authorization"));
        assert_int_equal(w->a.status, 200);
}

static void test_retry_after_is_read(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/busy");
        run_until(&w->loop, &w->a.done);
        assert_int_equal(w->a.status, 429);
        assert_int_equal(w->a.retry_after_s, 7);
}

static void test_no_server(void **state) {
        struct world *w = *state;
        serve(w, usual);
        fake_server_kill(w->server);
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        assert_int_equal(w->a.err.kind, ERR_RETRY);
        assert_int_equal(w->a.status, 0);
}

static void test_connection_breaks_before_the_answer(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/break");
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        assert_int_equal(w->a.err.kind, ERR_RETRY);
}

static void test_time_out(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.call = http_start(
                w->client,
                &(struct http_request){
                        .method = "GET", .path = "/silent", .timeout_ms = 100, .done = on_done, .u = &w->a });
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        assert_int_equal(w->a.err.kind, ERR_RETRY);
}

/* A server that is silent to one call is silent to all: the connection is closed together with the streams,
 * which otherwise would wait forever. */
static void test_time_out_on_a_silent_connection_ends_all_calls(void **state) {
        struct world *w = *state;
        serve_impatiently(w, usual, 80);
        stream(w, &w->b, "/stream");
        run_until(&w->loop, &w->b.headed);
        run_for(&w->loop, 20);
        w->a.call = http_start(
                w->client,
                &(struct http_request){
                        .method = "GET", .path = "/silent", .timeout_ms = 100, .done = on_done, .u = &w->a });
        run_until(&w->loop, &w->b.done);
        assert_true(w->a.done && w->a.failed && w->b.failed);
        assert_int_equal(w->b.err.kind, ERR_RETRY);

        unsigned accepted = fake_server_accepted(w->server);
        w->a.done = false;
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        assert_false(w->a.failed);
        assert_int_equal(fake_server_accepted(w->server), accepted + 1);
}

/* A slow server is not dead: the wait of one call is too short a silence. The streams continue, although no
 * data has arrived for a long time. */
/* failure: one request times out -> watches on its connection continue */
static void test_one_short_timeout_closes_no_connection(void **state) {
        struct world *w = *state;
        serve(w, usual);
        stream(w, &w->b, "/stream");
        run_until(&w->loop, &w->b.headed);
        struct fake_conn *streaming = w->last;
        run_for(&w->loop, 20);
        w->a.call = http_start(
                w->client,
                &(struct http_request){
                        .method = "GET", .path = "/silent", .timeout_ms = 50, .done = on_done, .u = &w->a });
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        run_for(&w->loop, 20);
        assert_false(w->b.done);
        fake_chunk(streaming, "alive\n");
        run_until(&w->loop, &w->b.got_data);
        assert_false(w->b.done);
}

/* Our end of the only connection. */
static int own_socket(const struct world *w) {
        int found = -1;
        for (int fd = 3; fd < 100; fd++) {
                struct sockaddr_in peer;
                socklen_t n = sizeof peer;
                if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0 || peer.sin_family != AF_INET ||
                    ntohs(peer.sin_port) != fake_server_port(w->server))
                        continue;
                assert_int_equal(found, -1);
                found = fd;
        }
        assert_int_not_equal(found, -1);
        return found;
}

/* Our own sockets. The wake-up pairs that libcurl creates are closed where programs are started. */
static void test_connection_is_closed_on_exec(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        assert_true(fcntl(own_socket(w), F_GETFD) & FD_CLOEXEC);
}

/* The kernel may have chosen port 50000 for our end, where nvidia-imex listens. */
/* failure: our own connection got the port of nvidia-imex -> nvidia-imex can still listen on it */
static void test_the_port_of_a_connection_can_be_listened_on(void **state) {
        struct world *w = *state;
        struct sockaddr_in at;
        socklen_t n = sizeof at;
        const int on = 1;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        serve(w, usual);
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        assert_int_equal(getsockname(own_socket(w), (struct sockaddr *)&at, &n), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(listen(fd, 1), 0);
        close(fd);
}

/* failure: an answer is too large -> it is refused */
static void test_too_large(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.call = http_start(
                w->client,
                &(struct http_request){
                        .method = "GET", .path = "/x", .max_body = 5, .done = on_done, .u = &w->a });
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        assert_int_equal(w->a.err.kind, ERR_INVALID);
}

static void test_connection_is_reused(void **state) {
        struct world *w = *state;
        serve(w, usual);
        for (int i = 0; i < 20; i++) {
                w->a.done = false;
                get(w, &w->a, "/x");
                run_until(&w->loop, &w->a.done);
        }
        assert_int_equal(fake_server_accepted(w->server), 1);
}

static void test_stream(void **state) {
        struct world *w = *state;
        serve(w, usual);
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        assert_false(w->a.got_data);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->a.got_data);
        assert_string_equal(buf_str(&w->a.data), "one\n");
        fake_chunk(w->last, "two\n");
        fake_end(w->last);
        run_until(&w->loop, &w->a.done);
        assert_string_equal(buf_str(&w->a.data), "one\ntwo\n");
        assert_int_equal(w->a.status, 200);
        assert_false(w->a.failed);
        assert_string_equal(buf_str(&w->a.body), "");
}

static void test_stream_that_is_refused_has_a_body(void **state) {
        struct world *w = *state;
        serve(w, usual);
        stream(w, &w->a, "/busy");
        run_until(&w->loop, &w->a.done);
        assert_int_equal(w->a.status, 429);
        assert_string_equal(buf_str(&w->a.body), "{\"message\":\"wait\"}");
        assert_false(w->a.headed || w->a.got_data);
}

static void test_stream_breaks(void **state) {
        struct world *w = *state;
        serve(w, usual);
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_close(w->last);
        run_until(&w->loop, &w->a.done);
        assert_true(w->a.failed);
        assert_int_equal(w->a.status, 200);
}

static void test_cancel_before_anything(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/x");
        http_cancel(w->a.call);
        run_for(&w->loop, 50);
        assert_false(w->a.done);
}

static void test_cancel_while_waiting_for_the_answer(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/silent");
        while (fake_server_requests(w->server) == 0)
                uv_run(&w->loop, UV_RUN_ONCE);
        http_cancel(w->a.call);
        get(w, &w->b, "/x");
        run_until(&w->loop, &w->b.done);
        assert_false(w->a.done);
        assert_int_equal(w->b.status, 200);
}

static void cancel_self(struct answer *a) {
        http_cancel(a->call);
}

static void test_cancel_from_inside_data(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.on_data = cancel_self;
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->a.got_data);
        RUN_UNTIL(&w->loop, !fake_is_open(w->last)); /* HTTP/1.1 has no other way to cancel */
        run_for(&w->loop, 20);
        assert_false(w->a.done);
}

static void start_other(struct answer *a) {
        struct world *w = a->u;
        if (!w->b.call && !w->b.done)
                get(w, &w->b, "/x");
}

static void test_start_from_inside_data(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.on_data = start_other;
        w->a.u = w;
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->b.done);
        assert_int_equal(w->b.status, 200);
        assert_false(w->a.done);
}

static void start_and_cancel_other(struct answer *a) {
        struct world *w = a->u;
        get(w, &w->b, "/x");
        http_cancel(w->b.call);
}

static void test_start_and_cancel_from_inside_data(void **state) {
        struct world *w = *state;
        serve(w, usual);
        w->a.on_data = start_and_cancel_other;
        w->a.u = w;
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->a.got_data);
        run_for(&w->loop, 50);
        assert_false(w->b.done);
}

static void cancel_other(struct answer *a) {
        struct world *w = a->u;
        http_cancel(w->b.call);
        w->b.call = NULL;
}

static void test_cancel_another_from_inside_data(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->b, "/silent");
        w->a.on_data = cancel_other;
        w->a.u = w;
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->a.got_data);
        run_for(&w->loop, 50);
        assert_false(w->a.done || w->b.done);
}

static void free_client(struct answer *a) {
        struct world *w = a->u;
        http_client_free(w->client);
        w->client = NULL;
}

static void test_free_from_inside_data(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->b, "/silent");
        w->a.on_data = free_client;
        w->a.u = w;
        stream(w, &w->a, "/stream");
        run_until(&w->loop, &w->a.headed);
        fake_chunk(w->last, "one\n");
        run_until(&w->loop, &w->a.got_data);
        run_for(&w->loop, 50);
        assert_false(w->a.done || w->b.done);
}

static void test_free_from_inside_done(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->b, "/silent");
        w->a.on_done = free_client;
        w->a.u = w;
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        run_for(&w->loop, 50);
        assert_false(w->b.done);
}

static void test_free_with_calls_in_progress(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/silent");
        stream(w, &w->b, "/stream");
        run_until(&w->loop, &w->b.headed);
        http_client_free(w->client);
        w->client = NULL;
        run_for(&w->loop, 20);
        assert_false(w->a.done || w->b.done);
}

static void test_reconnect_reports_in_a_later_turn(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/silent");
        stream(w, &w->b, "/stream");
        run_until(&w->loop, &w->b.headed);
        http_client_reconnect(w->client);
        assert_false(w->a.done || w->b.done);
        run_until(&w->loop, &w->b.done);
        assert_true(w->a.done && w->a.failed && w->b.failed);
}

static void test_server_comes_back(void **state) {
        struct world *w = *state;
        serve(w, usual);
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        int port = fake_server_port(w->server);
        fake_server_free(w->server);
        run_for(&w->loop, 20);
        w->server = fake_server_new(&w->loop, port, usual, w);
        w->a.done = false;
        get(w, &w->a, "/x");
        run_until(&w->loop, &w->a.done);
        assert_false(w->a.failed);
}

static void test_invalid_addresses(void **state) {
        static const char *const bad[] = { "", "nonsense", "ftp://x", "https://" };
        struct world *w = *state;
        struct err e;
        (void)w;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct http_client *c = NULL;
                if (http_client_new(&w->loop,
                                    &(struct http_client_options){ .base_url = bad[i], .user_agent = "x" },
                                    &c, &e) == 0) {
                        http_client_free(c);
                        fail_msg("accepted '%s'", bad[i]);
                }
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_request_and_answer),
                T(test_methods_without_body),
                T(test_retry_after_is_read),
                T(test_no_server),
                T(test_connection_breaks_before_the_answer),
                T(test_time_out),
                T(test_time_out_on_a_silent_connection_ends_all_calls),
                T(test_one_short_timeout_closes_no_connection),
                T(test_connection_is_closed_on_exec),
                T(test_the_port_of_a_connection_can_be_listened_on),
                T(test_too_large),
                T(test_connection_is_reused),
                T(test_stream),
                T(test_stream_that_is_refused_has_a_body),
                T(test_stream_breaks),
                T(test_cancel_before_anything),
                T(test_cancel_while_waiting_for_the_answer),
                T(test_cancel_from_inside_data),
                T(test_start_from_inside_data),
                T(test_start_and_cancel_from_inside_data),
                T(test_cancel_another_from_inside_data),
                T(test_free_from_inside_data),
                T(test_free_from_inside_done),
                T(test_free_with_calls_in_progress),
                T(test_reconnect_reports_in_a_later_turn),
                T(test_server_comes_back),
                T(test_invalid_addresses),
        };
        return cmocka_run_group_tests_name("http_client", tests, NULL, NULL);
}
