/* SPDX-License-Identifier: Apache-2.0 */
/* Each system call fails once: resources are released, and the error names the object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/child.h"
#include "base/file.h"
#include "base/http_client.h"
#include "base/http_server.h"
#include "base/mem.h"
#include "base/watch_file.h"
#include "faults.h"
#include "tree.h"

static char *dir, *path;
static uv_loop_t loop;

static int setup(void **state) {
        dir = tree_new();
        path = file_join(dir, "file");
        tree_put(dir, "file", "old");
        return uv_loop_init(&loop);
}

static int teardown(void **state) {
        tree_remove(dir);
        free(path);
        return uv_loop_close(&loop);
}

/* ---- files ---- */

static int replace(void *u, struct err *e) {
        return file_replace(path, "new one", 7, 0600, e);
}

static void old_or_new(void *u, const char *call, bool worked) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        assert_int_equal(file_read(path, 100, &text, NULL, &e), 0);
        assert_true(streq(text, "new one") || (streq(text, "old") && !worked));
        tree_put(dir, "file", "old");
}

/* failure: a system call fails while a file is replaced -> the file has the old or the new content */
static void replaced_file_is_the_old_or_the_new_one(void **state) {
        /* The name is free in any case: an existing file would belong to another process with this PID. */
        const struct faults f = {
                .op = replace, .check = old_or_new, .names = dir, .dir = dir, .survives = "unlink "
        };
        assert_in_range(faults_each(&f), 7,
                        20); /* unlink, create, chmod, write, sync, rename, open and sync the folder */
}

static int read_it(void *u, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        return file_read(path, 100, &text, NULL, e) < 0 ? -1 : file_open_nofollow(path, &fd, e);
}

static void unreadable_file_is_named(void **state) {
        assert_in_range(faults_each(&(struct faults){ .op = read_it, .names = path }), 4, 20);
}

static int make_folders(void *u, struct err *e) {
        _cleanup_(freep) char *b = file_join(dir, "a/b");
        return file_mkdirs(b, 0755, e);
}

static void remove_folders(void *u, const char *call, bool worked) {
        _cleanup_(freep) char *a = file_join(dir, "a"), *b = file_join(dir, "a/b");
        rmdir(b);
        rmdir(a);
}

static void folder_that_cannot_be_created_is_named(void **state) {
        assert_in_range(
                faults_each(&(struct faults){ .op = make_folders, .check = remove_folders, .names = "/tmp" }),
                3, 20);
}

/* ---- handles of the loop ---- */

static void on_change(struct watch_file *w) {
}

static int watch(void *u, struct err *e) {
        struct watch_file w = { 0 };
        int r = watch_file_start(&w, &loop, path, on_change, e);
        watch_file_stop(&w);
        uv_run(&loop, UV_RUN_DEFAULT);
        return r;
}

static void watch_that_the_kernel_refuses_names_the_folder(void **state) {
        /* The descriptor, the folder, and its parent. */
        assert_int_equal(faults_each(&(struct faults){ .op = watch, .names = dir }), 3);
}

static void count_change(struct watch_file *w) {
        ++*(unsigned *)w->u;
}

/* failure: a watched folder is recreated when no inotify watch is left -> its owner can start the watch again */
static void watch_that_cannot_follow_its_folder_ends(void **state) {
        _cleanup_(freep) char *folder = file_join(dir, "moved"), *file = file_join(folder, "file");
        unsigned calls = 0;
        struct watch_file w = { .u = &calls };
        struct err e;
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(watch_file_start(&w, &loop, file, count_change, &e), 0);
        faults_at("inotify_add_watch", 4); /* the parent and the folder, after each of the two changes */
        assert_int_equal(rmdir(folder), 0);
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(calls, 1);
        assert_true(w.active);
        assert_int_equal(mkdir(folder, 0700), 0);
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_true(faults_off());
        assert_int_equal(calls, 2);
        assert_false(w.active);
        uv_run(&loop, UV_RUN_DEFAULT);
        rmdir(folder);
}

static void on_child(void *u, const struct child_result *r) {
        if (r->err)
                *(struct err *)u = *r->err;
        else
                assert_int_equal(r->exit_status, 0);
}

static int run_child(void *u, struct err *e) {
        *e = (struct err){ 0 };
        child_run(&loop, &(struct child_options){ .argv = (const char *const[]){ "true", NULL },
                                                  .timeout_ms = 5000,
                                                  .done = on_child,
                                                  .u = e });
        uv_run(&loop, UV_RUN_DEFAULT);
        return e->kind ? -1 : 0;
}

/* Reads of the pipe that reports a failed exec, and of the output. Both failures then look like the end of
 * the text. */
static void child_that_cannot_be_started_is_named(void **state) {
        assert_in_range(
                faults_each(&(struct faults){ .op = run_child, .names = "true", .survives = "read " }), 6,
                30);
}

static int on_request(void *u, const char *request, struct buf *out, const char **ret_content_type) {
        buf_adds(out, "ok");
        return 200;
}

static int serve(void *u, struct err *e) {
        struct http_server *s;
        int r = http_server_new(&loop, &(struct http_server_options){ .endpoint = u, .fn = on_request }, &s,
                                e);
        if (r == 0)
                http_server_free(s);
        uv_run(&loop, UV_RUN_DEFAULT);
        return r;
}

/* failure: a port cannot be opened -> the error names the address */
static void http_server_that_cannot_listen_names_its_address(void **state) {
        static char all[] = ":0", one[] = "127.0.0.1:0";
        /* Only a caller that let the kernel choose the port needs to get it. */
        const struct faults f = { .op = serve, .names = "':0'", .survives = "getsockname ", .u = all };
        const struct faults g = {
                .op = serve, .names = "'127.0.0.1:0'", .survives = "getsockname ", .u = one
        };
        assert_in_range(faults_each(&f), 6, 30);
        assert_in_range(faults_each(&g), 6, 30);
}

/* ---- a request ---- */

static void on_answer(void *u, const struct http_response *r) {
        struct err *e = u;
        *e = r->transport ? *r->transport
                          : (struct err){ .kind = r->status == 200 ? ERR_NONE : ERR_INTERNAL,
                                          .msg = "another status" };
        e->code = 1; /* answered */
}

static int request(void *u, struct err *e) {
        struct http_client *client = u;
        *e = (struct err){ 0 };
        http_start(client,
                   &(struct http_request){
                           .method = "GET", .path = "/", .timeout_ms = 5000, .done = on_answer, .u = e });
        while (!e->code)
                uv_run(&loop, UV_RUN_ONCE);
        return e->kind == ERR_NONE ? 0 : -1;
}

/* failure: the kernel refuses to poll a socket -> that request fails, and the next one works */
static void request_that_cannot_be_polled_fails_and_the_next_one_works(void **state) {
        struct http_server *server;
        struct http_client *client;
        struct err e;
        assert_int_equal(
                http_server_new(&loop,
                                &(struct http_server_options){ .endpoint = "127.0.0.1:0", .fn = on_request },
                                &server, &e),
                0);
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", http_server_port(server));
        assert_int_equal(
                http_client_new(&loop, &(struct http_client_options){ .base_url = url }, &client, &e), 0);
        for (int i = 0; i < 2; i++) {
                faults_at("uv_poll_init", 1);
                assert_int_equal(request(client, &e), -1);
                assert_true(faults_off());
                assert_int_equal(e.kind, ERR_RETRY);
                assert_non_null(strstr(e.msg, "its socket cannot be watched: no space left on device"));
                assert_int_equal(request(client, &e), 0);
                http_client_reconnect(client);
                uv_run(&loop, UV_RUN_NOWAIT);
        }
        http_client_free(client);
        http_server_free(server);
        uv_run(&loop, UV_RUN_DEFAULT);
}

struct moment {
        struct http_client *client;
        unsigned answers;
        struct err first, later;
};

/* As kube_client does: when a request ends, the next one starts. */
static void on_answer_start_another(void *u, const struct http_response *r) {
        struct moment *m = u;
        struct err *e = m->answers++ ? &m->later : &m->first;
        *e = r->transport ? *r->transport : (struct err){ 0 };
        if (m->answers == 1)
                http_start(m->client, &(struct http_request){ .method = "GET",
                                                              .path = "/",
                                                              .timeout_ms = 5000,
                                                              .done = on_answer_start_another,
                                                              .u = m });
}

/* The kernel refuses the socket of one call in the same turn in which another one ends. */
static void call_that_starts_while_the_connection_is_dropped_waits(void **state) {
        struct moment m = { 0 };
        struct err e;
        uv_tcp_t silent; /* accepts connections and sends nothing */
        struct sockaddr_in a;
        int n = sizeof a;

        uv_tcp_init(&loop, &silent);
        assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &a), 0);
        assert_int_equal(uv_tcp_bind(&silent, (struct sockaddr *)&a, 0), 0);
        assert_int_equal(listen(silent.io_watcher.fd, 10), 0);
        assert_int_equal(uv_tcp_getsockname(&silent, (struct sockaddr *)&a, &n), 0);
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", ntohs(a.sin_port));
        assert_int_equal(
                http_client_new(&loop, &(struct http_client_options){ .base_url = url }, &m.client, &e), 0);
        http_start(m.client, &(struct http_request){ .method = "GET",
                                                     .path = "/",
                                                     .timeout_ms = 50,
                                                     .done = on_answer_start_another,
                                                     .u = &m });
        for (int i = 0; i < 5; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
        usleep(60000); /* its time-out has passed when libcurl is called next */
        faults_at("uv_poll_init", 1);
        http_start(m.client, &(struct http_request){ .method = "GET",
                                                     .path = "/",
                                                     .timeout_ms = 5000,
                                                     .done = on_answer_start_another,
                                                     .u = &m });
        while (m.answers < 2)
                uv_run(&loop, UV_RUN_ONCE);
        assert_true(faults_off());
        assert_non_null(strstr(m.first.msg, "timed out"));
        assert_non_null(strstr(m.later.msg, "its socket cannot be watched"));
        http_client_free(m.client);
        uv_close((uv_handle_t *)&silent, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
}

/* ---- folders ---- */

static int count_entry(void *u, int folder, const char *name, struct err *e) {
        ++*(unsigned *)u;
        return streq(name, "bad") ? err_set(e, ERR_INVALID, 0, "bad") : 0;
}

static int count_entries(void *u, struct err *e) {
        *(unsigned *)u = 0;
        return file_each(dir, count_entry, u, e);
}

static void all_or_an_error(void *u, const char *call, bool worked) {
        if (worked)
                assert_int_equal(*(unsigned *)u, 3);
}

/* A folder that cannot be read to its end does not count as complete. */
static void folder_that_cannot_be_read_does_not_count_as_empty(void **state) {
        unsigned n;
        struct err e;
        tree_put(dir, "a", "");
        tree_put(dir, "b", "");
        const struct faults f = { .op = count_entries, .check = all_or_an_error, .names = dir, .u = &n };
        assert_in_range(faults_each(&f), 5, 20); /* opendir, each entry, and the end */
        _cleanup_(freep) char *missing = file_join(dir, "missing");
        assert_int_equal(file_each(missing, count_entry, &n, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        tree_put(dir, "bad", "");
        assert_int_equal(count_entries(&n, &e), -1);
        assert_string_equal(e.msg, "bad");
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(replaced_file_is_the_old_or_the_new_one),
                T(folder_that_cannot_be_read_does_not_count_as_empty),
                T(unreadable_file_is_named),
                T(folder_that_cannot_be_created_is_named),
                T(watch_that_the_kernel_refuses_names_the_folder),
                T(watch_that_cannot_follow_its_folder_ends),
                T(child_that_cannot_be_started_is_named),
                T(http_server_that_cannot_listen_names_its_address),
                T(request_that_cannot_be_polled_fails_and_the_next_one_works),
                T(call_that_starts_while_the_connection_is_dropped_waits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
