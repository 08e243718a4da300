/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin notices the registrations of another plugin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "node/registration.h"
#include "tree.h"

static uv_loop_t loop;
static char *plugins, *folder;
static struct registration_watch *watch;
static unsigned n_registered;
static bool late;

static void on_registered(void *u) {
        (void)u;
        n_registered++;
}

static void on_late(uv_timer_t *t) {
        (void)t;
        late = true;
}

static void start(void) {
        watch = registration_watch_new(&loop, plugins, "other.example.com", on_registered, NULL);
}

static int setup(void **state) {
        (void)state;
        plugins = tree_new();
        folder = file_join(plugins, "other.example.com");
        uv_loop_init(&loop);
        n_registered = 0;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        registration_watch_free(watch);
        watch = NULL;
        uv_run(&loop, UV_RUN_DEFAULT);
        free(folder);
        tree_remove(plugins);
        return uv_loop_close(&loop);
}

/* Runs the loop until there were n registrations, or for ms. */
static void run_until(unsigned n, unsigned ms) {
        uv_timer_t alarm;
        late = false;
        uv_timer_init(&loop, &alarm);
        uv_timer_start(&alarm, on_late, ms, 0);
        while (n_registered < n && !late)
                uv_run(&loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&alarm, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
}

static void becomes(unsigned n) {
        run_until(n, 5000);
        assert_int_equal(n_registered, n);
}

static void make_folder(void) {
        struct err e;
        assert_int_equal(file_mkdirs(folder, 0755, &e), 0);
}

static void each_registration_is_noticed(void **state) {
        (void)state;
        make_folder();
        start();
        registration_announce(folder);
        becomes(1);
        registration_announce(folder);
        becomes(2);
}

static void the_folder_may_be_created_later(void **state) {
        (void)state;
        start();
        make_folder();
        run_until(1, 100);
        assert_int_equal(n_registered, 0);
        registration_announce(folder);
        becomes(1);
        registration_announce(folder);
        becomes(2);
}

static void an_earlier_registration_and_other_files_are_ignored(void **state) {
        (void)state;
        struct err e;
        make_folder();
        registration_announce(folder);
        start();
        _cleanup_(freep) char *path = file_join(folder, "checkpoint.json");
        assert_int_equal(file_replace_volatile(path, "{}", 2, 0600, &e), 0);
        run_until(1, 100);
        assert_int_equal(n_registered, 0);
}

static void a_folder_that_cannot_be_watched_is_logged_only(void **state) {
        (void)state;
        _cleanup_(freep) char *missing = file_join(plugins, "missing");
        _cleanup_(freep) char *below = file_join(missing, "other.example.com");
        watch = registration_watch_new(&loop, missing, "other.example.com", on_registered, NULL);
        registration_announce(below);
        run_until(1, 50);
        assert_int_equal(n_registered, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(each_registration_is_noticed),
                T(the_folder_may_be_created_later),
                T(an_earlier_registration_and_other_files_are_ignored),
                T(a_folder_that_cannot_be_watched_is_logged_only),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
