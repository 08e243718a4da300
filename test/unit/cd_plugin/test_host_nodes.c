/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "cd_plugin/edits.h"
#include "cd_plugin/host_nodes.h"
#include "tree.h"

static char *root;
static struct arena *arena;
static struct err e;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        arena = arena_new(4096);
        umask(077);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_free(arena);
        tree_remove(root);
        return 0;
}

static void make(unsigned major, unsigned first, unsigned count) {
        struct cdi_edits channels;
        if (geteuid() != 0)
                skip(); /* only root may make device nodes */
        edits_channels(arena, major, first, count, &channels);
        if (host_nodes_make(root, &channels, &e) < 0)
                fail_msg("%s", e.msg);
}

static struct stat node(const char *name) {
        _cleanup_(freep) char *path = file_join(root, name);
        struct stat st = { 0 };
        assert_int_equal(lstat(path, &st), 0);
        return st;
}

static void is_channel(const char *name, unsigned major_number, unsigned minor_number) {
        struct stat st = node(name);
        assert_int_equal(st.st_mode, S_IFCHR | 0666);
        assert_int_equal(major(st.st_rdev), major_number);
        assert_int_equal(minor(st.st_rdev), minor_number);
}

static int count_one(void *u, int folder, const char *name, struct err *err) {
        (void)folder;
        (void)name;
        (void)err;
        ++*(unsigned *)u;
        return 0;
}

static unsigned count(void) {
        unsigned n = 0;
        assert_int_equal(file_each(root, count_one, &n, &e), 0);
        return n;
}

static void every_channel_gets_a_node_that_all_users_may_open(void **state) {
        (void)state;
        make(240, 7, 3);
        is_channel("channel7", 240, 7);
        is_channel("channel8", 240, 8);
        is_channel("channel9", 240, 9);
        assert_int_equal(count(), 3);
}

static void a_correct_node_is_kept(void **state) {
        (void)state;
        make(240, 0, 1);
        struct stat before = node("channel0");
        make(240, 0, 2);
        assert_int_equal(node("channel0").st_ino, before.st_ino);
        assert_int_equal(count(), 2);
}

/* After a reload of the driver, its devices may have another major, and the old major another driver. */
/* failure: the driver is reloaded with another device major -> the device nodes of channels are replaced */
static void a_node_of_other_numbers_or_mode_is_replaced(void **state) {
        (void)state;
        make(240, 5, 1);
        make(243, 5, 1);
        is_channel("channel5", 243, 5);
        _cleanup_(freep) char *path = file_join(root, "channel5");
        assert_int_equal(chmod(path, 0600), 0);
        make(243, 5, 1);
        is_channel("channel5", 243, 5);
        assert_int_equal(count(), 1);
}

static void other_files_are_replaced_and_links_are_not_followed(void **state) {
        (void)state;
        if (geteuid() != 0)
                skip();
        tree_put(root, "channel0", "text");
        tree_put(root, ".channel0.new", "of a plugin that was killed");
        tree_put(root, "elsewhere", "text");
        _cleanup_(freep) char *link = file_join(root, "channel1");
        assert_int_equal(symlink("elsewhere", link), 0);
        make(240, 0, 2);
        is_channel("channel0", 240, 0);
        is_channel("channel1", 240, 1);
        assert_true(S_ISREG(node("elsewhere").st_mode));
        assert_int_equal(count(), 3);
}

static void errors_name_the_node_and_leave_nothing(void **state) {
        (void)state;
        struct cdi_edits channels;
        edits_channels(arena, 240, 0, 1, &channels);
        assert_int_equal(host_nodes_make("/nowhere", &channels, &e), -1);
        assert_non_null(strstr(e.msg, "/nowhere"));
        tree_put(root, "channel0/x", "a folder in the node's place");
        assert_int_equal(host_nodes_make(root, &channels, &e), -1);
        assert_non_null(strstr(e.msg, "/channel0' (240:0)"));
        assert_int_equal(count(), 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(every_channel_gets_a_node_that_all_users_may_open),
                T(a_correct_node_is_kept),
                T(a_node_of_other_numbers_or_mode_is_replaced),
                T(other_files_are_replaced_and_links_are_not_followed),
                T(errors_name_the_node_and_leave_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
