/* SPDX-License-Identifier: Apache-2.0 */
/* The server on real sockets: listening, connections that end at bad moments, limits. */
#include "dra/grpc_server.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "dra/grpc_conn.h"
#include "peer.h"

struct bed {
        uv_loop_t loop;
        struct grpc_server *server;
        char *dir, *path;
        struct grpc_call *kept[1024];
        size_t n_kept;
        unsigned handled, cancelled;
        bool was_cancelled;
        bool free_in_handler, free_in_cancel;
        struct peer *close_in_handler;
};

static void free_server(struct bed *b) {
        grpc_server_free(TAKE(b->server));
}

static void on_echo(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        b->handled++;
        if (b->close_in_handler)
                peer_close(b->close_in_handler);
        grpc_call_reply(call, message.p, message.n);
        if (b->free_in_handler)
                free_server(b);
}

static void on_cancel(void *u, struct grpc_call *call) {
        struct bed *b = u;
        b->cancelled++;
        b->was_cancelled = true;
        for (size_t i = 0; i < b->n_kept; i++)
                if (b->kept[i] == call)
                        b->kept[i--] = b->kept[--b->n_kept];
        if (b->free_in_cancel)
                free_server(b);
}

static void on_keep(void *u, struct grpc_call *call, struct str message) {
        struct bed *b = u;
        b->handled++;
        grpc_call_on_cancel(call, on_cancel, b);
        assert_true(b->n_kept < ARRAY_LEN(b->kept));
        b->kept[b->n_kept++] = call;
        if (b->free_in_handler)
                free_server(b);
}

static void on_large(void *u, struct grpc_call *call, struct str message) {
        _cleanup_(freep) char *p = xcalloc(1, GRPC_MAX_MESSAGE);
        grpc_call_reply(call, p, GRPC_MAX_MESSAGE);
}

static void listen_here(struct bed *b) {
        static const struct grpc_method methods[] = { { "/test.Test/Echo", on_echo },
                                                      { "/test.Test/Keep", on_keep },
                                                      { "/test.Test/Large", on_large },
                                                      { NULL, NULL } };
        struct err e;
        b->server = grpc_server_new(&b->loop, methods, &grpc_limits_trusted, b);
        if (grpc_server_listen_unix(b->server, b->path, 0600, &e) < 0)
                fail_msg("%s", e.msg);
}

static struct bed *bed_new(void) {
        struct bed *b = xnew(struct bed);
        char dir[] = "/tmp/grpc.XXXXXX";
        assert_non_null(mkdtemp(dir));
        b->dir = xstrdup(dir);
        b->path = file_join(dir, "dra.sock");
        uv_loop_init(&b->loop);
        listen_here(b);
        return b;
}

static unsigned files_in(const char *dir) {
        DIR *d = opendir(dir);
        unsigned n = 0;
        for (const struct dirent *f; (f = readdir(d));)
                n += !streq(f->d_name, ".") && !streq(f->d_name, "..");
        closedir(d);
        return n;
}

/* The loop must end, because no handle remains. */
static void bed_free(struct bed *b) {
        free_server(b);
        uv_run(&b->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&b->loop), 0);
        assert_int_equal(files_in(b->dir), 0);
        assert_int_equal(rmdir(b->dir), 0);
        free(b->dir);
        free(b->path);
        free(b);
}

static void assert_reply(const struct h2_call *call, const char *want) {
        struct str s = h2_reply(call);
        assert_int_equal(s.n, strlen(want));
        assert_memory_equal(s.p, want, s.n);
}

/* Listening. */

static void test_unix_socket(void **state) {
        struct bed *b = bed_new();
        struct stat st;
        assert_int_equal(lstat(b->path, &st), 0);
        assert_true(S_ISSOCK(st.st_mode));
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(files_in(b->dir), 1); /* no temporary name */
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", "hello", 5, NULL);
        peer_wait(p, call);
        assert_reply(call, "hello");
        peer_free(p, &b->loop);
        bed_free(b);
}

/* Any file of a killed process is replaced. */
static void test_stale_socket(void **state) {
        struct bed *b = bed_new();
        free_server(b);
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        snprintf(a.sun_path, sizeof a.sun_path, "%s", b->path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
        close(fd);
        listen_here(b);
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", "x", 1, NULL);
        peer_wait(p, call);
        assert_reply(call, "x");
        peer_free(p, &b->loop);
        bed_free(b);
}

/* Two processes during an update: the old one must not remove the socket of the new one. */
static void test_successor_keeps_its_socket(void **state) {
        struct bed *b = bed_new();
        struct grpc_server *old = TAKE(b->server);
        listen_here(b);
        grpc_server_free(old);
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", "x", 1, NULL);
        peer_wait(p, call);
        assert_reply(call, "x");
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_cannot_listen(void **state) {
        struct bed *b = bed_new();
        struct err e;
        _cleanup_(freep) char *missing = file_join(b->dir, "no/such/dra.sock"),
                              *folder = file_join(b->dir, "folder");
        char longest[200];
        memset(longest, 'x', sizeof longest - 1);
        longest[sizeof longest - 1] = '\0';
        _cleanup_(freep) char *too_long = file_join(b->dir, longest);
        assert_int_equal(grpc_server_listen_unix(b->server, missing, 0600, &e), -1);
        assert_int_equal(e.code, ENOENT);
        assert_int_equal(grpc_server_listen_unix(b->server, too_long, 0600, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(grpc_server_listen_unix(b->server, folder, 0600, &e), -1);
        assert_non_null(strstr(e.msg, folder));
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(files_in(b->dir), 1);
        bed_free(b);
}

/* Calls. */

static void on_later(uv_timer_t *t) {
        struct bed *b = t->data;
        while (b->n_kept)
                grpc_call_reply(b->kept[--b->n_kept], "late", 4);
        uv_close((uv_handle_t *)t, NULL);
}

/* An answer that is given outside of a read is sent without another event on the socket. */
static void test_answer_from_a_timer(void **state) {
        struct bed *b = bed_new();
        uv_timer_t later;
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call = peer_call(p, "/test.Test/Keep", "x", 1, NULL);
        uv_timer_init(&b->loop, &later);
        later.data = b;
        uv_timer_start(&later, on_later, 50, 0);
        peer_wait(p, call);
        assert_reply(call, "late");
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_largest_message(void **state) {
        struct bed *b = bed_new();
        char *big = xcalloc(1, GRPC_MAX_MESSAGE);
        memset(big, 'b', GRPC_MAX_MESSAGE);
        struct peer *p = peer_unix(&b->loop, b->path);
        h2_open_windows(p->h2);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", big, GRPC_MAX_MESSAGE, NULL);
        peer_wait(p, call);
        struct str s = h2_reply(call);
        assert_int_equal(s.n, GRPC_MAX_MESSAGE);
        assert_memory_equal(s.p, big, s.n);
        free(big);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_many_connections_and_calls(void **state) {
        enum { PEERS = 10, CALLS = 100 };
        struct bed *b = bed_new();
        struct peer *p[PEERS];
        struct h2_call *call[PEERS][CALLS];
        for (size_t i = 0; i < PEERS; i++) {
                p[i] = peer_unix(&b->loop, b->path);
                for (size_t k = 0; k < CALLS; k++)
                        call[i][k] = peer_call(p[i], "/test.Test/Echo", "x", 1, NULL);
        }
        for (size_t i = 0; i < PEERS; i++) {
                for (size_t k = 0; k < CALLS; k++) {
                        peer_wait(p[i], call[i][k]);
                        assert_reply(call[i][k], "x");
                }
                peer_free(p[i], &b->loop);
        }
        assert_int_equal(b->handled, PEERS * CALLS);
        bed_free(b);
}

static void test_deadline(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call =
                peer_call(p, "/test.Test/Keep", "x", 1, &(struct h2_options){ .timeout = "50m" });
        peer_wait(p, call);
        assert_int_equal(call->grpc_status, GRPC_DEADLINE_EXCEEDED);
        assert_int_equal(b->cancelled, 1);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* Connections that end at bad moments. */

static void test_peer_resets_and_closes(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *first = peer_call(p, "/test.Test/Keep", "x", 1, NULL);
        (void)peer_call(p, "/test.Test/Keep", "x", 1, NULL);
        while (b->n_kept < 2)
                uv_run(&b->loop, UV_RUN_ONCE);
        h2_reset(first);
        peer_flush(p);
        loop_until(&b->loop, &b->was_cancelled);
        assert_int_equal(b->cancelled, 1);
        b->was_cancelled = false;
        peer_close(p);
        loop_until(&b->loop, &b->was_cancelled);
        assert_int_equal(b->cancelled, 2);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* The write of the answer fails. Nothing may be freed while the handler runs. */
static void test_peer_closes_in_handler(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path);
        for (int i = 0; i < 20; i++)
                (void)peer_call(p, i % 3 ? "/test.Test/Echo" : "/test.Test/Keep", "x", 1, NULL);
        b->close_in_handler = p;
        while (b->handled < 20)
                uv_run(&b->loop, UV_RUN_ONCE);
        while (b->n_kept)
                uv_run(&b->loop, UV_RUN_ONCE);
        assert_int_equal(b->cancelled, 7);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* failure: a request ends the server while the next one was read with it -> no freed memory is used */
static void test_freed_in_handler(void **state) {
        for (int keep = 0; keep <= 1; keep++) {
                struct bed *b = bed_new();
                struct peer *p = peer_unix(&b->loop, b->path), *other = peer_unix(&b->loop, b->path);
                b->free_in_handler = true;
                struct h2_call *call =
                        peer_call(p, keep ? "/test.Test/Keep" : "/test.Test/Echo", "x", 1, NULL);
                /* In the same read: the server that could answer it has been freed. */
                (void)peer_call(p, "/test.Test/Echo", "x", 1, NULL);
                loop_until(&b->loop, &p->closed);
                assert_int_equal(b->handled, 1);
                loop_until(&b->loop, &other->closed);
                if (keep) {
                        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
                        assert_int_equal(b->cancelled, 1);
                } else {
                        assert_reply(call, "x");
                }
                assert_true(p->h2->goaway && other->h2->goaway);
                peer_free(p, &b->loop);
                peer_free(other, &b->loop);
                bed_free(b);
        }
}

static void test_freed_in_cancel(void **state) {
        enum how { RESET, CLOSE, DEADLINE };
        for (enum how how = RESET; how <= DEADLINE; how++) {
                struct bed *b = bed_new();
                struct peer *p = peer_unix(&b->loop, b->path);
                struct h2_call *call =
                        peer_call(p, "/test.Test/Keep", "x", 1,
                                  &(struct h2_options){ .timeout = how == DEADLINE ? "30m" : NULL });
                (void)peer_call(p, "/test.Test/Keep", "x", 1, NULL);
                while (b->handled < 2)
                        uv_run(&b->loop, UV_RUN_ONCE);
                b->free_in_cancel = true;
                if (how == RESET) {
                        h2_reset(call);
                        peer_flush(p);
                } else if (how == CLOSE) {
                        peer_close(p);
                }
                loop_until(&b->loop, &p->closed);
                loop_until(&b->loop, &b->was_cancelled);
                loop_turns(&b->loop, 3);
                assert_int_equal(b->cancelled, 2);
                peer_free(p, &b->loop);
                bed_free(b);
        }
}

static void test_goaway_on_shutdown(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path);
        struct h2_call *call = peer_call(p, "/test.Test/Keep", "x", 1, NULL);
        while (!b->n_kept)
                uv_run(&b->loop, UV_RUN_ONCE);
        free_server(b);
        assert_int_equal(b->cancelled, 1); /* before it returns */
        assert_int_equal(access(b->path, F_OK), -1);
        loop_until(&b->loop, &p->closed);
        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
        assert_string_equal(call->grpc_message, "the server is shutting down");
        assert_true(p->h2->goaway);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* Bad peers. */

/* The peer requests much and reads nothing. Others are served, and the end of the server does not wait for
 * it. */
static void test_peer_that_does_not_read(void **state) {
        struct bed *b = bed_new();
        struct peer *mute = peer_unix(&b->loop, b->path), *p = peer_unix(&b->loop, b->path);
        uv_read_stop(&mute->h.stream);
        h2_open_windows(mute->h2);
        for (int i = 0; i < 20; i++)
                (void)peer_call(mute, "/test.Test/Large", "x", 1, NULL);
        for (int i = 0; i < 10; i++) {
                struct h2_call *call = peer_call(p, "/test.Test/Echo", "x", 1, NULL);
                peer_wait(p, call);
                assert_reply(call, "x");
        }
        free_server(b);
        loop_until(&b->loop, &p->closed);
        peer_free(mute, &b->loop);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* The peer closes while an answer is half written. */
static void test_peer_closes_during_a_write(void **state) {
        struct bed *b = bed_new();
        struct peer *mute = peer_unix(&b->loop, b->path);
        uv_read_stop(&mute->h.stream);
        h2_open_windows(mute->h2);
        (void)peer_call(mute, "/test.Test/Keep", "x", 1, NULL);
        (void)peer_call(mute, "/test.Test/Large", "x", 1, NULL);
        while (!b->n_kept)
                uv_run(&b->loop, UV_RUN_ONCE);
        loop_turns(&b->loop, 5);
        peer_close(mute);
        loop_until(&b->loop, &b->was_cancelled);
        peer_free(mute, &b->loop);
        bed_free(b);
}

/* The others are not affected. When one ends, there is room again. */
static void test_a_connection_beyond_the_limit_is_closed(void **state) {
        enum { LIMIT = 128 };
        struct bed *b = bed_new();
        struct peer *p[LIMIT];
        struct h2_call *call[LIMIT];
        for (size_t i = 0; i < LIMIT; i++) {
                p[i] = peer_unix(&b->loop, b->path);
                call[i] = peer_call(p[i], "/test.Test/Keep", "x", 1, NULL);
                while (b->n_kept <= i)
                        uv_run(&b->loop, UV_RUN_ONCE);
        }
        struct peer *extra = peer_unix(&b->loop, b->path);
        loop_until(&b->loop, &extra->closed);
        assert_int_equal(b->cancelled, 0);
        while (b->n_kept)
                grpc_call_reply(b->kept[--b->n_kept], "late", 4);
        for (size_t i = 0; i < LIMIT; i++) {
                peer_wait(p[i], call[i]);
                assert_reply(call[i], "late");
                peer_free(p[i], &b->loop);
        }
        peer_free(extra, &b->loop);
        loop_turns(&b->loop, 5);
        struct peer *next = peer_unix(&b->loop, b->path);
        struct h2_call *served = peer_call(next, "/test.Test/Echo", "x", 1, NULL);
        peer_wait(next, served);
        assert_reply(served, "x");
        peer_free(next, &b->loop);
        bed_free(b);
}

/* A connection that cannot be accepted without a descriptor does not stay in the queue, and others are
 * served. */
/* failure: no descriptor is left for a connection -> it is closed, and others are served */
static void test_a_connection_without_a_descriptor_is_closed(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path);
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        struct rlimit was, few;
        loop_turns(&b->loop, 5);
        memcpy(addr.sun_path, b->path, strlen(b->path));
        struct pollfd late = { .fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN };
        assert_int_equal(connect(late.fd, (const struct sockaddr *)&addr, sizeof addr), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
        few = was;
        few.rlim_cur = (rlim_t)late.fd;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        loop_turns(&b->loop, 5);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_equal(poll(&late, 1, 0), 1);
        assert_true(late.revents & POLLHUP);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", "x", 1, NULL);
        peer_wait(p, call);
        assert_reply(call, "x");
        close(late.fd);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void test_not_http2(void **state) {
        struct bed *b = bed_new();
        struct peer *p = peer_unix(&b->loop, b->path), *bad = peer_unix(&b->loop, b->path);
        char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        uv_buf_t raw = uv_buf_init(text, sizeof text - 1);
        assert_true(uv_try_write(&bad->h.stream, &raw, 1) > 0);
        loop_until(&b->loop, &bad->closed);
        struct h2_call *call = peer_call(p, "/test.Test/Echo", "x", 1, NULL);
        peer_wait(p, call);
        assert_reply(call, "x");
        peer_free(p, &b->loop);
        peer_free(bad, &b->loop);
        bed_free(b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unix_socket),
                cmocka_unit_test(test_stale_socket),
                cmocka_unit_test(test_successor_keeps_its_socket),
                cmocka_unit_test(test_cannot_listen),
                cmocka_unit_test(test_answer_from_a_timer),
                cmocka_unit_test(test_largest_message),
                cmocka_unit_test(test_many_connections_and_calls),
                cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_peer_resets_and_closes),
                cmocka_unit_test(test_peer_closes_in_handler),
                cmocka_unit_test(test_freed_in_handler),
                cmocka_unit_test(test_freed_in_cancel),
                cmocka_unit_test(test_goaway_on_shutdown),
                cmocka_unit_test(test_peer_that_does_not_read),
                cmocka_unit_test(test_peer_closes_during_a_write),
                cmocka_unit_test(test_a_connection_beyond_the_limit_is_closed),
                cmocka_unit_test(test_a_connection_without_a_descriptor_is_closed),
                cmocka_unit_test(test_not_http2),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
