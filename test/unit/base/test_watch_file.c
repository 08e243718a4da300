/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/watch_file.h"

static char dir[] = "/tmp/test_watch_file.XXXXXX";
static unsigned calls;

static void on_change(struct watch_file *w) {
        calls++;
}

/* A folder that another process creates just before the next watch. */
static const char *appears;

/* Replaces that of the C library. */
int inotify_add_watch(int fd, const char *path, uint32_t mask) {
        if (appears)
                assert_int_equal(mkdir(appears, 0755), 0);
        appears = NULL;
        return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

static void write_file(const char *name, const char *text) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void move_file(const char *from, const char *to) {
        _cleanup_(freep) char *a = xasprintf("%s/%s", dir, from), *b = xasprintf("%s/%s", dir, to);

        assert_int_equal(rename(a, b), 0);
}

/* Runs the loop until all changes so far are delivered: inotify delivers at once, the callback comes a turn
 * later. */
static void turns(void) {
        for (int i = 0; i < 5; i++)
                uv_run(uv_default_loop(), UV_RUN_NOWAIT);
}

static void test_changes(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/state.json", dir);
        struct watch_file w = { 0 };
        struct err e;

        calls = 0;
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        assert_true(w.active);
        turns();
        assert_int_equal(calls, 0);

        write_file("other", "x");
        turns();
        assert_int_equal(calls, 0);

        /* Created, and written ten times in one turn: one call. */
        for (int i = 0; i < 10; i++)
                write_file("state.json", "1");
        turns();
        assert_int_equal(calls, 1);

        write_file("state.json.tmp", "2");
        turns();
        assert_int_equal(calls, 1);
        move_file("state.json.tmp", "state.json");
        turns();
        assert_int_equal(calls, 2);

        unlink(path);
        turns();
        assert_int_equal(calls, 3);

        write_file("state.json", "3");
        watch_file_stop(&w);
        assert_false(w.active);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(calls, 3);

        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);

        /* The same owner may start again. */
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        unlink(path);
        turns();
        assert_int_equal(calls, 4);
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static void test_all_files_of_a_folder(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/", dir);
        struct watch_file w = { 0 };
        struct err e;

        calls = 0;
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        write_file("one", "x");
        turns();
        assert_int_equal(calls, 1);
        move_file("one", "another");
        turns();
        assert_int_equal(calls, 2);
        watch_file_stop(&w);
        turns();
}

static void test_owner_may_be_freed_at_once(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/state.json", dir);
        struct watch_file *w = xnew(struct watch_file);
        struct err e;

        calls = 0;
        assert_int_equal(watch_file_start(w, uv_default_loop(), path, on_change, &e), 0);
        write_file("state.json", "x");
        watch_file_stop(w);
        free(w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(calls, 0);
        unlink(path);
}

static void stop_from_inside(struct watch_file *w) {
        calls++;
        watch_file_stop(w);
}

static void test_stop_inside_the_callback(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/state.json", dir);
        struct watch_file w = { 0 };
        struct err e;

        calls = 0;
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, stop_from_inside, &e), 0);
        write_file("state.json", "x");
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(calls, 1);
        unlink(path);
}

/* The folder itself is removed. No more events would come, so the owner is called. */
/* failure: the folder of a watched file is removed -> its owner is notified */
static void the_removal_of_a_watched_folder_is_reported(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/inner/state.json", dir),
                              *inner = xasprintf("%s/inner", dir);
        struct watch_file w = { 0 };
        struct err e;

        calls = 0;
        assert_int_equal(mkdir(inner, 0755), 0);
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        move_file("inner", "gone");
        turns();
        assert_int_equal(calls, 1);
        watch_file_stop(&w);
        turns();
        move_file("gone", "inner");
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        assert_int_equal(rmdir(inner), 0);
        turns();
        assert_int_equal(calls, 2);
        watch_file_stop(&w);
        turns();
}

static void test_missing_folder(void **state) {
        struct watch_file w = { 0 };
        struct err e = { 0 };

        assert_int_equal(watch_file_start(&w, uv_default_loop(), "/no/such/folder/x", on_change, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_false(w.active);
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static char *in_dir(const char *name) {
        return xasprintf("%s/%s", dir, name);
}

static void expect_call(const char *when) {
        unsigned before = calls;
        turns();
        if (calls != before + 1)
                fail_msg("%s: %u calls", when, calls - before);
}

/* failure: a folder appears just before it is watched for -> the file in it is watched */
static void a_folder_that_appears_before_its_watch_is_not_missed(void **state) {
        _cleanup_(freep) char *folder = xasprintf("%s/late", dir), *path = xasprintf("%s/sock", folder);
        struct watch_file w = { 0 };
        struct err e;

        calls = 0;
        appears = folder;
        assert_int_equal(watch_file_start_below(&w, uv_default_loop(), dir, path, on_change, &e), 0);
        assert_null(appears);
        write_file("late/sock", "x");
        turns();
        assert_int_equal(calls, 1);
        watch_file_stop(&w);
        turns();
        unlink(path);
        rmdir(folder);
}

/* failure: a watched folder is removed or replaced -> the new folder is watched */
static void test_folder_is_replaced(void **state) {
        _cleanup_(freep) char *folder = in_dir("f"), *path = in_dir("f/state.json"), *aside = in_dir("g");
        struct watch_file w = { 0 };
        struct err e;
        mkdir(folder, 0700);
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        write_file("f/state.json", "x");
        expect_call("made");
        unlink(path);
        rmdir(folder);
        expect_call("file and folder removed");
        mkdir(folder, 0700);
        write_file("f/state.json", "x");
        expect_call("both made again");
        write_file("f/state.json", "y");
        expect_call("changed in the new folder");
        /* All between two turns. */
        unlink(path);
        rmdir(folder);
        mkdir(folder, 0700);
        expect_call("replaced at once");
        write_file("f/state.json", "z");
        expect_call("changed in the one after");
        /* Another folder gets the name, with its own file. */
        assert_int_equal(rename(folder, aside), 0);
        expect_call("moved away");
        write_file("g/state.json", "not ours any more");
        turns();
        unsigned before = calls;
        write_file("g/state.json", "nor now");
        turns();
        assert_int_equal(calls, before);
        assert_int_equal(rename(aside, folder), 0);
        expect_call("moved in");
        write_file("f/state.json", "ours again");
        expect_call("changed in what moved in");
        assert_true(w.active);
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        unlink(path);
        rmdir(folder);
}

static void test_parent_is_removed(void **state) {
        _cleanup_(freep) char *parent = in_dir("p"), *folder = in_dir("p/f"),
                              *path = in_dir("p/f/state.json");
        struct watch_file w = { 0 };
        struct err e;
        mkdir(parent, 0700);
        mkdir(folder, 0700);
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        rmdir(folder);
        rmdir(parent);
        expect_call("parent removed");
        assert_false(w.active);
        watch_file_stop(&w);
        mkdir(parent, 0700);
        mkdir(folder, 0700);
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        write_file("p/f/state.json", "x");
        expect_call("watched again");
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        unlink(path);
        rmdir(folder);
        rmdir(parent);
}

/* The kernel keeps a limited number of events, and does not report which ones were lost. */
/* failure: the kernel drops inotify events -> the owner of each watched file is notified */
static void test_lost_inotify_events_are_reported(void **state) {
        _cleanup_(freep) char *path = in_dir("state.json"), *a = in_dir("a"), *b = in_dir("b"), *limit = NULL;
        struct watch_file w = { 0 };
        struct err e;
        write_file("a", "");
        write_file("b", "");
        assert_int_equal(file_read("/proc/sys/fs/inotify/max_queued_events", 64, &limit, NULL, &e), 0);
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        for (long i = 0; i < atol(limit) + 2; i++)
                assert_int_equal(chmod(i & 1 ? a : b, 0600), 0);
        expect_call("overflow");
        write_file("state.json", "x");
        expect_call("after it");
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        unlink(path);
        unlink(a);
        unlink(b);
}

static void test_two_in_one_folder(void **state) {
        _cleanup_(freep) char *path = in_dir("state.json"), *other = in_dir("other.json");
        struct watch_file w = { 0 }, x = { 0 };
        struct err e;
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        assert_int_equal(watch_file_start(&x, uv_default_loop(), other, stop_from_inside, &e), 0);
        write_file("other.json", "x");
        expect_call("the other, which stops itself");
        write_file("other.json", "y");
        turns();
        write_file("state.json", "x");
        expect_call("the first");
        watch_file_stop(&w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        unlink(path);
        unlink(other);
}

static int setup(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        _cleanup_(freep) char *other = xasprintf("%s/other", dir);

        unlink(other);
        rmdir(dir);
        return uv_loop_close(uv_default_loop());
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_changes),
                cmocka_unit_test(test_all_files_of_a_folder),
                cmocka_unit_test(test_owner_may_be_freed_at_once),
                cmocka_unit_test(test_stop_inside_the_callback),
                cmocka_unit_test(the_removal_of_a_watched_folder_is_reported),
                cmocka_unit_test(test_missing_folder),
                cmocka_unit_test(a_folder_that_appears_before_its_watch_is_not_missed),
                cmocka_unit_test(test_folder_is_replaced),
                cmocka_unit_test(test_parent_is_removed),
                cmocka_unit_test(test_lost_inotify_events_are_reported),
                cmocka_unit_test(test_two_in_one_folder),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
