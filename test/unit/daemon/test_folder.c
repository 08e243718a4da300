/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the kubelet plugin while the kernel refuses inotify. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/log.h"
#include "base/str.h"
#include "daemon/folder.h"
#include "faults.h"
#include "tree.h"
#include "world/loop.h"

FAULTS_WRAP(int, -1, EMFILE, inotify_init1, (int flags), (flags))

static char *root, logged[4096];
static uv_loop_t loop;
static struct folder folder;
static unsigned n_changed;

void __wrap_log_write(enum log_level level, const char *source, int line, const char *msg,
                      const struct kv *kvs);
void __wrap_log_write(enum log_level level, const char *source, int line, const char *msg,
                      const struct kv *kvs) {
        size_t n = strlen(logged);
        snprintf(logged + n, sizeof logged - n, "%s: %s\n", msg, kvs[0].v.s);
}

static unsigned n_lines(void) {
        unsigned n = 0;
        for (const char *p = logged; (p = strchr(p, '\n')); p++)
                n++;
        return n;
}

static void on_changed(void *u) {
        n_changed++;
}

static bool is_in(const char *clique) {
        char now[FOLDER_WORD_MAX];
        struct err e;
        return folder_fabric(&folder, now, &e) == 0 && streq(now, clique);
}

static int setup(void **state) {
        root = tree_new();
        tree_put(root, FOLDER_FABRIC_FILE, "a.1\n");
        tree_put(root, FOLDER_EDITS_FILE, "one\n");
        *logged = '\0';
        n_changed = 0;
        return uv_loop_init(&loop);
}

static int teardown(void **state) {
        folder_stop(&folder);
        loop_end(&loop);
        tree_remove(root);
        return 0;
}

static void a_change_is_noticed_at_once(void **state) {
        folder_start(&folder, &loop, root, on_changed, NULL);
        assert_true(is_in("a.1") && folder_outdated(&folder, "two") && !folder_outdated(&folder, "one"));
        tree_put(root, FOLDER_FABRIC_FILE, "a.2\n");
        RUN_UNTIL(&loop, n_changed);
        assert_true(is_in("a.2"));
        assert_string_equal(logged, "");
}

static void starts_without(const char *call, int errnum, const char *limit) {
        faults_at_with(call, 1, errnum, true);
        folder_start(&folder, &loop, root, on_changed, NULL);
        assert_true(is_in("a.1"));
        run_for(&loop, 65000);
        assert_int_equal(n_changed, 2);
        assert_int_equal(n_lines(), 1);
        assert_non_null(strstr(logged, limit));
        assert_true(faults_off());
        run_for(&loop, 30000);
        assert_int_equal(n_changed, 3);
        /* Now there is a watch. */
        tree_put(root, FOLDER_EDITS_FILE, "two\n");
        RUN_UNTIL(&loop, n_changed > 3);
        n_changed = 0;
        run_for(&loop, 65000);
        assert_int_equal(n_changed, 0);
}

/* failure: the node has no inotify instance left -> a daemon starts, and reads its files every 30 s */
static void a_daemon_starts_without_an_inotify_instance(void **state) {
        starts_without("inotify_init1", EMFILE, "fs.inotify.max_user_instances");
}

/* failure: the node has no inotify watch left -> a daemon starts, and reads its files every 30 s */
static void a_daemon_starts_without_an_inotify_watch(void **state) {
        starts_without("inotify_add_watch", ENOSPC, "fs.inotify.max_user_watches");
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_change_is_noticed_at_once),
                T(a_daemon_starts_without_an_inotify_instance),
                T(a_daemon_starts_without_an_inotify_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
