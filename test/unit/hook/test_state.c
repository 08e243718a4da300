/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "hook/in_root.h"
#include "hook/oci_state.h"
#include "tree.h"

static char *root;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        tree_remove(root);
        return 0;
}

static void finds(const char *json, const char *a, const char *b, int want, const char *value) {
        char got[64] = "";
        assert_int_equal(oci_json_find(json, strlen(json), a, b, got, sizeof got), want);
        if (want > 0)
                assert_string_equal(got, value);
}

static void a_member_is_found_among_others(void **state) {
        (void)state;
        finds("{\"bundle\":\"/b\"}", "bundle", NULL, 1, "/b");
        finds(" { \"a\" : [1,{\"bundle\":\"no\"},\"]\"] , \"bundle\" : \"/b\" } ", "bundle", NULL, 1, "/b");
        finds("{\"annotations\":{\"root\":\"no\"},\"root\":{\"readonly\":true,\"path\":\"rootfs\"}}", "root",
              "path", 1, "rootfs");
        finds("{\"root\":\"/r\"}", "root", "path", 0, NULL);
        finds("{\"root\":{\"path\":7}}", "root", "path", 0, NULL);
        finds("{}", "root", NULL, 0, NULL);
        finds("{\"bun\\u0064le\":\"/\\u00e4\\ud83d\\ude00\\n\"}", "bundle", NULL, 1,
              "/\xc3\xa4\xf0\x9f\x98\x80\n");
}

/* failure: the container runtime's state is not valid JSON -> the hook refuses it */
static void state_that_is_not_json_is_refused(void **state) {
        (void)state;
        static const char *const bad[] = { "",
                                           "[]",
                                           "{",
                                           "{\"a\"",
                                           "{\"a\":}",
                                           "{\"a\":1,}",
                                           "{\"bundle\":\"/b",
                                           "{\"bundle\":\"\\u12\"}",
                                           "{\"bundle\":\"\\ud800\"}",
                                           "{\"bundle\":\"\\x\"}",
                                           "{\"bundle\":\"\n\"}",
                                           "{\"bundle\":\"/a\\u0000/b\"}" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                finds(bad[i], "bundle", NULL, -1, NULL);
        /* longer than the buffer */
        finds("{\"bundle\":\"/0123456789012345678901234567890123456789012345678901234567890123456789\"}",
              "bundle", NULL, -1, NULL);
        char deep[300] = "{\"a\":";
        memset(deep + 5, '[', 200);
        finds(deep, "bundle", NULL, -1, NULL);
}

static int state_of(const char *text, char *path) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], text, strlen(text)), strlen(text));
        close(fds[1]);
        int r = oci_state_root(fds[0], path);
        close(fds[0]);
        return r;
}

static void the_root_is_read_from_the_bundle(void **state) {
        (void)state;
        char path[OCI_PATH_MAX];
        _cleanup_(freep) char *text = xasprintf("{\"ociVersion\":\"1.2\",\"bundle\":\"%s\"}", root);
        _cleanup_(freep) char *rootfs = xasprintf("%s/rootfs", root);
        assert_int_equal(state_of(text, path), -1); /* no config.json */
        tree_put(root, "config.json", "{\"root\":{\"path\":\"rootfs\"}}");
        assert_int_equal(state_of(text, path), 0);
        assert_string_equal(path, rootfs);
        tree_put(root, "config.json", "{\"root\":{\"path\":\"/run/elsewhere\"}}");
        assert_int_equal(state_of(text, path), 0);
        assert_string_equal(path, "/run/elsewhere");
        tree_put(root, "config.json", "{\"root\":{}}");
        assert_int_equal(state_of(text, path), -1);
        assert_int_equal(state_of("{\"root\":\"/of/crun\",\"bundle\":\"/b\"}", path), 0);
        assert_string_equal(path, "/of/crun");
        assert_int_equal(state_of("{\"bundle\":\"relative\"}", path), -1);
        assert_int_equal(state_of("{}", path), -1);
        assert_int_equal(state_of("", path), -1);
}

/* failure: the state names the host's root as the container's -> the hook refuses it */
static void the_hosts_root_is_refused_as_a_container_root(void **state) {
        (void)state;
        assert_int_equal(in_root_open("/"), -1);
        assert_int_equal(in_root_open("/proc/self/root"), -1);
        assert_int_equal(in_root_open("relative"), -1);
        assert_int_equal(in_root_open("/nowhere/at/all"), -1);
        int fd = in_root_open(root);
        assert_true(fd >= 0);
        close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_member_is_found_among_others),
                T(state_that_is_not_json_is_refused),
                T(the_root_is_read_from_the_bundle),
                T(the_hosts_root_is_refused_as_a_container_root),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
