#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/watch_file.h"

static char dir[] = "/tmp/test_watch_file.XXXXXX";
static unsigned calls, stops;

static void on_change(struct watch_file *w) {
        calls++;
}

static void on_stopped(struct watch_file *w) {
        stops++;
        assert_int_equal(*(int *)w->u, 42);
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

/* Runs the loop until what has happened so far is delivered: inotify delivers at once, the call back a turn
 * later. */
static void turns(void) {
        for (int i = 0; i < 5; i++)
                uv_run(uv_default_loop(), UV_RUN_NOWAIT);
}

static void test_changes(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/state.json", dir);
        struct watch_file w = { 0 };
        struct err e;
        int u = 42;

        w.u = &u;
        calls = stops = 0;
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        assert_true(w.active);
        turns();
        assert_int_equal(calls, 0);

        write_file("other", "x");
        turns();
        assert_int_equal(calls, 0);

        /* Created and written ten times in one turn: one call. */
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
        watch_file_stop(&w, on_stopped);
        assert_false(w.active);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(calls, 3);
        assert_int_equal(stops, 1);

        watch_file_stop(&w, on_stopped);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(stops, 1);

        /* The same owner may start again. */
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        unlink(path);
        turns();
        assert_int_equal(calls, 4);
        watch_file_stop(&w, NULL);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static void test_owner_may_go_at_once(void **state) {
        _cleanup_(freep) char *path = xasprintf("%s/state.json", dir);
        struct watch_file *w = xnew(struct watch_file);
        struct err e;

        calls = 0;
        assert_int_equal(watch_file_start(w, uv_default_loop(), path, on_change, &e), 0);
        write_file("state.json", "x");
        watch_file_stop(w, NULL);
        free(w);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        assert_int_equal(calls, 0);
        unlink(path);
}

static void stop_from_inside(struct watch_file *w) {
        calls++;
        watch_file_stop(w, NULL);
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

/* The folder itself goes: nothing more would come, so the owner is told to look. */
static void test_folder_that_goes_is_told(void **state) {
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
        watch_file_stop(&w, NULL);
        turns();
        move_file("gone", "inner");
        assert_int_equal(watch_file_start(&w, uv_default_loop(), path, on_change, &e), 0);
        assert_int_equal(rmdir(inner), 0);
        turns();
        assert_int_equal(calls, 2);
        watch_file_stop(&w, NULL);
        turns();
}

static void test_missing_folder(void **state) {
        struct watch_file w = { 0 };
        struct err e = { 0 };

        assert_int_equal(watch_file_start(&w, uv_default_loop(), "/no/such/folder/x", on_change, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_false(w.active);
        watch_file_stop(&w, on_stopped);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
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
                cmocka_unit_test(test_owner_may_go_at_once),
                cmocka_unit_test(test_stop_inside_the_callback),
                cmocka_unit_test(test_folder_that_goes_is_told),
                cmocka_unit_test(test_missing_folder),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
