/* SPDX-License-Identifier: Apache-2.0 */
/* The container toolkit's configuration is created, changed and removed, and so are its folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cd_plugin/toolkit_watch.h"
#include "tree.h"

#define PACKAGE "etc/nvidia-container-runtime/config.toml"
#define TALOS "usr/local/etc/nvidia-container-runtime/config.toml"
#define GKE "home/kubernetes/bin/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
#define OPERATOR "usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
#define IGNORES "[features]\nignore-imex-channel-requests = true\n"

static uv_loop_t loop;
static char *root, *driver;
static struct toolkit_watch *watch;
static bool late;

static void on_changed(void *u) {
        ++*(unsigned *)u;
}

static void on_late(uv_timer_t *t) {
        late = true;
}

static unsigned changes;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        driver = tree_new();
        uv_loop_init(&loop);
        changes = 0;
        tree_put(root, "etc/hostname", "n0");
        const struct driver_root roots[] = { { "/run/nvidia/driver", driver }, { "/", root } };
        watch = toolkit_watch_new(&loop, &(struct toolkit_watch_options){ .roots = roots,
                                                                          .n_roots = TOOLKIT_ROOTS_MAX,
                                                                          .changed = on_changed,
                                                                          .u = &changes });
        return 0;
}

static int teardown(void **state) {
        (void)state;
        toolkit_watch_free(watch);
        uv_run(&loop, UV_RUN_DEFAULT);
        tree_remove(root);
        tree_remove(driver);
        return uv_loop_close(&loop);
}

static void becomes(enum toolkit_answer want) {
        uv_timer_t alarm;
        const char *why;
        late = false;
        uv_timer_init(&loop, &alarm);
        uv_timer_start(&alarm, on_late, 5000, 0);
        while (toolkit_watch_get(watch, &why) != want && !late)
                uv_run(&loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&alarm, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(toolkit_watch_get(watch, &why), want);
}

static void remove_below(const char *path) {
        char *there = xasprintf("%s/%s", root, path);
        tree_remove(there);
}

/* failure: the container toolkit's configuration changes in any place -> the change is noticed */
static void each_change_of_a_toolkit_configuration_is_noticed(void **state) {
        (void)state;
        const char *why;
        assert_int_equal(toolkit_watch_get(watch, &why), TOOLKIT_NOT_FOUND);
        tree_put(root, PACKAGE, "x = 1\n");
        becomes(TOOLKIT_GIVES);
        tree_put(root, PACKAGE, IGNORES);
        becomes(TOOLKIT_IGNORES);
        tree_put(root, OPERATOR, "x = 1\n");
        becomes(TOOLKIT_GIVES);
        (void)toolkit_watch_get(watch, &why);
        assert_non_null(strstr(why, "/" OPERATOR));
        remove_below("usr");
        becomes(TOOLKIT_IGNORES);
        tree_put(root, TALOS, "x = 1\n");
        becomes(TOOLKIT_GIVES);
        tree_put(root, TALOS, IGNORES);
        becomes(TOOLKIT_IGNORES);
        tree_put(root, GKE, "x = 1\n");
        becomes(TOOLKIT_GIVES);
        remove_below("home");
        remove_below("usr");
        becomes(TOOLKIT_IGNORES);
        remove_below("etc/nvidia-container-runtime");
        becomes(TOOLKIT_NOT_FOUND);
        tree_put(root, PACKAGE, IGNORES);
        becomes(TOOLKIT_IGNORES);
        assert_true(changes >= 6);
}

static void the_same_setting_in_other_text_is_no_change(void **state) {
        (void)state;
        tree_put(root, PACKAGE, IGNORES);
        becomes(TOOLKIT_IGNORES);
        unsigned before = changes;
        tree_put(root, PACKAGE, IGNORES "# a comment\n");
        tree_put(root, "etc/other", "x");
        tree_put(root, OPERATOR, IGNORES);
        for (int i = 0; i < 20; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(changes, before);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(each_change_of_a_toolkit_configuration_is_noticed),
                T(the_same_setting_in_other_text_is_no_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
