/* SPDX-License-Identifier: Apache-2.0 */
/* Each call up to a listening socket fails once: no descriptor, no handle and no file remains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "dra/dra_plugin.h"
#include "dra/grpc_server.h"
#include "faults.h"
#include "tree.h"

static char *dir, *path;
static uv_loop_t loop;

static int setup(void **state) {
        dir = tree_new();
        path = file_join(dir, "dra.sock");
        return uv_loop_init(&loop);
}

static int teardown(void **state) {
        tree_remove(dir);
        free(path);
        return uv_loop_close(&loop);
}

static int listen_unix(void *u, struct err *e) {
        struct grpc_server *s =
                grpc_server_new(&loop, &(const struct grpc_method){ NULL, NULL }, &grpc_limits_trusted, NULL);
        int r = grpc_server_listen_unix(s, path, 0600, e);
        grpc_server_free(s);
        uv_run(&loop, UV_RUN_DEFAULT);
        return r;
}

static void socket_that_cannot_be_served_is_named_and_leaves_no_file(void **state) {
        /* A server uses these two calls to find and remove its own file when it ends. */
        const struct faults f = {
                .op = listen_unix, .names = path, .dir = dir, .survives = "unlink lstat64 "
        };
        assert_in_range(faults_each(&f), 7, 20); /* socket, bind, chmod, stat, open, listen, rename, ... */
}

static void prepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
}

static void cancelled(void *u, struct dra_op *op, void *data) {
}

static void registered(void *u, bool ok, const char *error) {
}

static int plugin(void *u, struct err *e) {
        static const struct dra_plugin_ops ops = { prepare, prepare, cancelled, registered };
        _cleanup_(freep) char *plugin_dir = file_join(dir, "plugin");
        const struct dra_plugin_options o = {
                .driver_name = "x.example.com", .plugin_dir = plugin_dir, .registrar_dir = dir, .ops = &ops
        };
        struct dra_plugin *p = NULL;
        int r = dra_plugin_new(&loop, &o, &p, e);
        dra_plugin_free(p);
        uv_run(&loop, UV_RUN_DEFAULT);
        return r;
}

/* All opened sockets are closed again. The registration socket is opened last and closed first. */
static void plugin_that_cannot_serve_all_its_sockets_serves_none(void **state) {
        const struct faults f = { .op = plugin, .dir = dir, .survives = "unlink lstat64 " };
        assert_in_range(faults_each(&f), 20, 60);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(socket_that_cannot_be_served_is_named_and_leaves_no_file),
                T(plugin_that_cannot_serve_all_its_sockets_serves_none),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
