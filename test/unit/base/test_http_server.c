/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

static int handler(void *u, const char *path, struct buf *out, const char **ret_content_type) {
        unsigned *calls = u;
        ++*calls;
        if (streq(path, "/healthz")) {
                buf_adds(out, "ok\n");
                return 200;
        }
        if (streq(path, "/metrics")) {
                *ret_content_type = "text/plain; version=0.0.4; charset=utf-8";
                for (int i = 0; i < 100000; i++)
                        buf_adds(out, "0123456789");
                return 200;
        }
        if (streq(path, "/page")) {
                for (int i = 0; i < 200; i++)
                        buf_adds(out, "0123456789");
                return 200;
        }
        if (streq(path, "/large")) { /* more than a socket's buffers */
                for (int i = 0; i < 100000; i++)
                        buf_adds(out, "0123456789012345678901234567890123456789012345678901234567890123456789"
                                      "012345");
                return 200;
        }
        if (streq(path, "/huge")) {
                out->failed = true;
                return 200;
        }
        if (streq(path, "/empty"))
                return 503;
        buf_adds(out, "no such page\n");
        return 404;
}

struct client {
        uv_poll_t poll;
        int fd;
        struct buf in;
        bool done;
};

static void client_done(struct client *c) {
        c->done = true;
        uv_close((uv_handle_t *)&c->poll, NULL);
}

static void on_readable(uv_poll_t *p, int status, int events) {
        struct client *c = p->data;
        char chunk[65536];
        ssize_t n = read(c->fd, chunk, sizeof chunk);
        if (n > 0)
                buf_add(&c->in, chunk, (size_t)n);
        else if (n == 0 || errno != EAGAIN)
                client_done(c);
}

static void client_start(uv_loop_t *loop, struct client *c, int port, const char *request) {
        const struct sockaddr_in a = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        *c = (struct client){ .in = BUF_INIT(4 << 20) };
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(c->fd, (const struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(write(c->fd, request, strlen(request)), (ssize_t)strlen(request));
        uv_poll_init(loop, &c->poll, c->fd);
        c->poll.data = c;
        uv_poll_start(&c->poll, UV_READABLE, on_readable);
}

static char *client_wait(uv_loop_t *loop, struct client *c) {
        while (!c->done)
                uv_run(loop, UV_RUN_ONCE);
        close(c->fd);
        return buf_steal(&c->in);
}

static char *exchange(uv_loop_t *loop, int port, const char *request) {
        struct client c;
        client_start(loop, &c, port, request);
        return client_wait(loop, &c);
}

static char *get(uv_loop_t *loop, int port, const char *path) {
        _cleanup_(freep) char *request =
                xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
        return exchange(loop, port, request);
}

static void end(uv_loop_t *loop, struct http_server *s) {
        http_server_free(s);
        uv_run(loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(loop), 0);
}

static struct http_server *begin(uv_loop_t *loop, unsigned *calls) {
        struct http_server *s;
        struct err e;
        uv_loop_init(loop);
        if (http_server_new(
                    loop,
                    &(struct http_server_options){ .endpoint = "127.0.0.1:0", .fn = handler, .u = calls }, &s,
                    &e) < 0)
                fail_msg("%s", e.msg);
        assert_true(http_server_port(s) > 0);
        return s;
}

static void test_answers(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        int port = http_server_port(s);

        _cleanup_(freep) char *ok = get(&loop, port, "/healthz?verbose");
        assert_non_null(strstr(ok, "HTTP/1.1 200 OK\r\n"));
        assert_non_null(strstr(ok, "Content-Type: text/plain; charset=utf-8\r\n"));
        assert_non_null(strstr(ok, "\r\n\r\nok\n"));

        _cleanup_(freep) char *missing = get(&loop, port, "/nothing");
        assert_non_null(strstr(missing, "HTTP/1.1 404 "));
        _cleanup_(freep) char *empty = get(&loop, port, "/empty");
        assert_non_null(strstr(empty, "HTTP/1.1 503 "));
        _cleanup_(freep) char *huge = get(&loop, port, "/huge");
        assert_non_null(strstr(huge, "HTTP/1.1 500 "));
        assert_int_equal(calls, 4);
        end(&loop, s);
}

/* Larger than the socket's buffers, so that the server waits for the client in between. */
static void test_large_body(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        _cleanup_(freep) char *r = get(&loop, http_server_port(s), "/metrics");
        assert_non_null(strstr(r, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert_non_null(strstr(r, "Content-Length: 1000000\r\n"));
        assert_int_equal(strlen(strstr(r, "\r\n\r\n") + 4), 1000000);
        end(&loop, s);
}

static void test_methods(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        int port = http_server_port(s);
        _cleanup_(freep) char *head =
                exchange(&loop, port, "HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_non_null(strstr(head, "HTTP/1.1 200 OK\r\n"));
        assert_null(strstr(head, "\r\n\r\nok"));
        assert_int_equal(calls, 1);
        _cleanup_(freep) char *post = exchange(
                &loop, port,
                "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
        assert_non_null(strstr(post, "HTTP/1.1 405 "));
        assert_non_null(strstr(post, "Allow: GET, HEAD\r\n"));
        _cleanup_(freep) char *junk = exchange(&loop, port, "\x16\x03\x01\x02 what is this\r\n\r\n");
        assert_null(strstr(junk, "200 OK"));
        assert_int_equal(calls, 1);
        end(&loop, s);
}

static void test_many_at_once(void **state) {
        enum { N = 40 };
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        struct client c[N];
        for (int i = 0; i < N; i++)
                client_start(&loop, &c[i], http_server_port(s),
                             "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        for (int i = 0; i < N; i++) {
                _cleanup_(freep) char *r = client_wait(&loop, &c[i]);
                assert_non_null(strstr(r, "200 OK"));
        }
        assert_int_equal(calls, N);
        end(&loop, s);
}

/* A client with many long requests costs one page per turn of the loop, not one per connection, even if it
 * sends short requests in between. */
/* failure: a client requests the metrics on many connections -> the page is rendered once per turn of the
 * loop */
static void test_the_metrics_page_is_rendered_once_a_turn(void **state) {
        enum { N = 30, SHORT = 10 };
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        struct client c[N];
        for (int i = 0; i < N; i++)
                client_start(&loop, &c[i], http_server_port(s),
                             i % 3 == 0 ? "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                                        : "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        for (int i = 0; i < N; i++) {
                _cleanup_(freep) char *r = client_wait(&loop, &c[i]);
                assert_non_null(strstr(r, i % 3 == 0 ? "\r\n\r\nok\n" : "Content-Length: 2000\r\n"));
        }
        assert_in_range(calls, SHORT + 1, SHORT + (N - SHORT) / 2);
        /* In a later turn it may be another page. */
        calls = 0;
        _cleanup_(freep) char *later = get(&loop, http_server_port(s), "/page");
        assert_non_null(strstr(later, "200 OK"));
        assert_int_equal(calls, 1);
        end(&loop, s);
}

/* A client that has sent half of its request does not prevent the server from being freed. */
static void test_free_with_open_connection(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        struct client c;
        client_start(&loop, &c, http_server_port(s), "GET /healthz HTTP/1.1\r\nHo");
        _cleanup_(freep) char *ok = get(&loop, http_server_port(s), "/healthz");
        assert_non_null(ok);
        http_server_free(s);
        _cleanup_(freep) char *nothing = client_wait(&loop, &c);
        assert_string_equal(nothing, "");
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

static void count_turn(uv_check_t *check) {
        ++*(unsigned *)check->data;
}

static void on_time_over(uv_timer_t *t) {
        *(bool *)t->data = true;
}

static void on_tick(uv_timer_t *t) {
        ++*(unsigned *)t->data;
}

/* Idle connections do not keep the loop busy. */
static void test_idle_connections_cost_nothing(void **state) {
        uv_loop_t loop;
        unsigned calls = 0, turns = 0;
        bool over = false;
        struct http_server *s = begin(&loop, &calls);
        struct client half, kept;
        uv_check_t check;
        uv_timer_t timer;
        client_start(&loop, &half, http_server_port(s), "GET /healthz HTTP/1.1\r\nHo");
        client_start(&loop, &kept, http_server_port(s), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        while (!kept.in.n)
                uv_run(&loop, UV_RUN_ONCE);
        uv_check_init(&loop, &check);
        uv_timer_init(&loop, &timer);
        check.data = &turns;
        timer.data = &over;
        uv_check_start(&check, count_turn);
        uv_timer_start(&timer, on_time_over, 300, 0);
        while (!over)
                uv_run(&loop, UV_RUN_ONCE);
        assert_true(turns < 20);
        uv_close((uv_handle_t *)&check, NULL);
        uv_close((uv_handle_t *)&timer, NULL);
        http_server_free(s);
        _cleanup_(freep) char *nothing = client_wait(&loop, &half), *answer = client_wait(&loop, &kept);
        assert_string_equal(nothing, "");
        assert_non_null(strstr(answer, "200 OK"));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- limits ---- */

static int begin_limited(uv_loop_t *loop, unsigned *calls, const struct http_limits *limits,
                         struct http_server **ret) {
        struct err e;
        uv_loop_init(loop);
        if (http_server_new(loop,
                            &(struct http_server_options){
                                    .endpoint = "127.0.0.1:0", .fn = handler, .u = calls, .limits = limits },
                            ret, &e) < 0)
                fail_msg("%s", e.msg);
        return http_server_port(*ret);
}

static void test_connection_is_kept(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s = begin(&loop, &calls);
        static const char twice[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: "
                                    "x\r\nConnection: close\r\n\r\n";
        _cleanup_(freep) char *r = exchange(&loop, http_server_port(s), twice);
        assert_int_equal(calls, 2);
        const char *second = strstr(r, "ok\nHTTP/1.1 200 OK");
        assert_non_null(second);
        assert_true(strstr(r, "Connection: close") > second);
        end(&loop, s);
}

/* Clients that connect and send nothing, or half of a request, or keep their connection. */
/* failure: 100 clients of the metrics port send nothing or half a request -> a probe is still answered */
static void test_many_clients_do_not_block_a_probe(void **state) {
        enum { N = 100 };
        static const char *const requests[] = { "", "GET /healthz HT",
                                                "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" };
        for (size_t k = 0; k < ARRAY_LEN(requests); k++) {
                uv_loop_t loop;
                unsigned calls = 0, open = 0;
                struct client c[N];
                struct http_server *s = begin(&loop, &calls);
                for (size_t i = 0; i < N; i++) {
                        client_start(&loop, &c[i], http_server_port(s), requests[k]);
                        for (int t = 0; t < 3; t++)
                                uv_run(&loop, UV_RUN_NOWAIT);
                }
                _cleanup_(freep) char *ok = get(&loop, http_server_port(s), "/healthz");
                assert_non_null(strstr(ok, "200 OK"));
                for (size_t i = 0; i < N; i++)
                        open += !c[i].done;
                assert_in_range(open, 1, 32);
                http_server_free(s);
                for (size_t i = 0; i < N; i++)
                        free(client_wait(&loop, &c[i]));
                uv_run(&loop, UV_RUN_DEFAULT);
                assert_int_equal(uv_loop_close(&loop), 0);
        }
}

/* Runs in a child: sends requests without end over one connection, and reads the answers. */
static void pipeline(int port) {
        static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        enum { COPIES = 200 };
        const struct sockaddr_in a = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        static char requests[COPIES * (sizeof request - 1)], answers[65536];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        for (size_t i = 0; i < COPIES; i++)
                memcpy(requests + i * (sizeof request - 1), request, sizeof request - 1);
        if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
                _exit(1);
        for (size_t sent = 0;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
                if (poll(&p, 1, -1) < 0)
                        _exit(1);
                if (p.revents & POLLIN && recv(fd, answers, sizeof answers, MSG_DONTWAIT) == 0)
                        _exit(0);
                if (p.revents & POLLOUT) {
                        ssize_t n = send(fd, requests + sent, sizeof requests - sent,
                                         MSG_DONTWAIT | MSG_NOSIGNAL);
                        sent = n > 0 ? (sent + (size_t)n) % sizeof requests : sent;
                }
        }
}

/* failure: a client of the metrics port sends complete requests without end -> the program does its other
 * work */
static void test_requests_without_end_leave_the_loop_free(void **state) {
        uv_loop_t loop;
        unsigned calls = 0, ticks = 0;
        struct http_server *s = begin(&loop, &calls);
        uv_timer_t timer;
        pid_t child = fork();
        if (child == 0)
                pipeline(http_server_port(s));
        assert_true(child > 0);
        while (!calls)
                uv_run(&loop, UV_RUN_ONCE);
        uv_timer_init(&loop, &timer);
        timer.data = &ticks;
        uv_timer_start(&timer, on_tick, 20, 20);
        alarm(20); /* if a callback never returns to the loop */
        while (ticks < 10)
                uv_run(&loop, UV_RUN_ONCE);
        alarm(0);
        assert_true(calls > 10);
        uv_close((uv_handle_t *)&timer, NULL);
        end(&loop, s);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
}

static const struct http_limits hurried = {
        .connections = 8, .request_ms = 30, .idle_ms = 30, .answers_bytes = 1000000
};

/* failure: a client of the metrics port never completes its request -> its connection is closed after a time
 * limit */
static void test_an_unfinished_request_times_out(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s;
        int port = begin_limited(&loop, &calls, &hurried, &s);
        static const char *const requests[] = {
                "", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /healthz HTTP/1.1\r\nContent-Length: 10\r\nHost: x\r\n\r\nabc"
        };
        for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
                _cleanup_(freep) char *r = exchange(&loop, port, requests[i]); /* waits for the end */
                assert_int_equal(*r != '\0', i == 2);
        }
        end(&loop, s);
}

/* A client that requests a long answer and reads nothing. */
static int ask_and_read_nothing(uv_loop_t *loop, int port, const unsigned *calls) {
        static const char request[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
        const struct sockaddr_in a = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
        while (!*calls)
                uv_run(loop, UV_RUN_ONCE);
        return fd;
}

/* failure: clients request the metrics and read nothing -> the memory of unread answers is limited */
static void test_unread_answers_are_limited(void **state) {
        static const struct http_limits patient = {
                .connections = 8, .request_ms = 600000, .idle_ms = 600000, .answers_bytes = 1000000
        };
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s;
        int port = begin_limited(&loop, &calls, &patient, &s), fd = ask_and_read_nothing(&loop, port, &calls);
        _cleanup_(freep) char *refused = get(&loop, port, "/large"), *ok = get(&loop, port, "/healthz");
        assert_non_null(strstr(refused, " 503 "));
        assert_non_null(strstr(refused, "too many answers wait for their readers"));
        assert_non_null(strstr(ok, " 200 OK"));
        close(fd);
        end(&loop, s);
}

/* The memory of its answer is released, so that others can be answered. */
/* failure: a client does not read its answer -> its connection is closed, and others are answered */
static void test_an_unread_answer_times_out(void **state) {
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s;
        int port = begin_limited(&loop, &calls, &hurried, &s), fd = ask_and_read_nothing(&loop, port, &calls);
        for (bool answered = false; !answered;) {
                _cleanup_(freep) char *r = get(&loop, port, "/large");
                answered = strstr(r, " 200 OK") != NULL;
        }
        close(fd);
        end(&loop, s);
}

static void test_endpoints(void **state) {
        static const char *const good[] = { ":0", "127.0.0.1:0", "0.0.0.0:0", "localhost:0",
                                            "[::ffff:127.0.0.1]:0" };
        static const char *const bad[] = { "", "8080", ":", ":x", ":65536", ":-1", "127.0.0.1" };
        uv_loop_t loop;
        unsigned calls = 0;
        struct http_server *s;
        struct err e;
        uv_loop_init(&loop);
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                if (http_server_new(
                            &loop,
                            &(struct http_server_options){ .endpoint = good[i], .fn = handler, .u = &calls },
                            &s, &e) < 0)
                        fail_msg("%s", e.msg);
                _cleanup_(freep) char *ok = get(&loop, http_server_port(s), "/healthz");
                assert_non_null(strstr(ok, "200 OK"));
                http_server_free(s);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(http_server_new(&loop,
                                                 &(struct http_server_options){
                                                         .endpoint = bad[i], .fn = handler, .u = &calls },
                                                 &s, &e),
                                 -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
        assert_int_equal(http_server_new(&loop,
                                         &(struct http_server_options){
                                                 .endpoint = "127.0.0.1:0", .fn = handler, .u = &calls },
                                         &s, &e),
                         0);
        _cleanup_(freep) char *taken = xasprintf("127.0.0.1:%d", http_server_port(s));
        struct http_server *second;
        assert_int_equal(
                http_server_new(
                        &loop, &(struct http_server_options){ .endpoint = taken, .fn = handler, .u = &calls },
                        &second, &e),
                -1);
        assert_int_equal(e.code, EADDRINUSE);
        assert_non_null(strstr(e.msg, taken));
        http_server_free(NULL);
        end(&loop, s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_large_body),
                cmocka_unit_test(test_methods),
                cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_the_metrics_page_is_rendered_once_a_turn),
                cmocka_unit_test(test_free_with_open_connection),
                cmocka_unit_test(test_idle_connections_cost_nothing),
                cmocka_unit_test(test_connection_is_kept),
                cmocka_unit_test(test_many_clients_do_not_block_a_probe),
                cmocka_unit_test(test_requests_without_end_leave_the_loop_free),
                cmocka_unit_test(test_an_unfinished_request_times_out),
                cmocka_unit_test(test_unread_answers_are_limited),
                cmocka_unit_test(test_an_unread_answer_times_out),
                cmocka_unit_test(test_endpoints),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
