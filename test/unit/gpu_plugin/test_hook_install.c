/* SPDX-License-Identifier: Apache-2.0 */
/* The hook's copies on the host are complete and never overwritten, and exist as long as a CDI file names
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "gpu_plugin/gpu_hook.h"
#include "tree.h"

#define KIND "k8s.gpu.nvidia.com/claim"

static char *dir, *plugin, *cdi, *program;

static int setup(void **state) {
        dir = tree_new();
        plugin = file_join(dir, "plugin");
        cdi = file_join(dir, "cdi");
        program = file_join(dir, "image/cdi-hook");
        tree_put(dir, "plugin/checkpoint.json", "{}");
        tree_put(dir, "cdi/other.yaml", "");
        tree_put(dir, "image/cdi-hook", "one");
        return 0;
}

static int teardown(void **state) {
        free(plugin);
        free(cdi);
        free(program);
        tree_remove(dir);
        return 0;
}

static char *installed(void) {
        char *path = NULL;
        struct err e;
        if (gpu_hook_install(program, plugin, &path, &e) < 0)
                fail_msg("%s", e.msg);
        return path;
}

static ino_t inode(const char *path) {
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        return st.st_ino;
}

static void a_copy_has_the_hash_of_its_content_and_is_left_alone(void **state) {
        _cleanup_(freep) char *one = installed(), *again = NULL, *two = NULL;
        /* The start of the SHA-256 of "one". */
        assert_true(str_ends(one, "/plugin/cdi-hook-7692c3ad3540bb80"));
        ino_t before = inode(one);
        again = installed();
        assert_string_equal(one, again);
        assert_int_equal(inode(one), before);
        tree_put(dir, "image/cdi-hook", "two");
        two = installed();
        assert_string_not_equal(one, two);
        assert_int_equal(inode(one), before);
}

/* failure: a copy of the hook is truncated -> it is replaced */
static void a_truncated_copy_of_the_hook_is_replaced(void **state) {
        _cleanup_(freep) char *one = installed(), *text = NULL;
        struct err e;
        assert_int_equal(file_replace(one, "on", 2, 0755, &e), 0);
        free(installed());
        assert_int_equal(file_read(one, 64, &text, NULL, &e), 0);
        assert_string_equal(text, "one");
}

/* failure: no CDI file names a copy of the hook any more -> the copy is removed */
static void unused_copies_of_the_hook_are_removed(void **state) {
        _cleanup_(freep) char *one = installed(), *two = NULL, *three = NULL;
        tree_put(dir, "image/cdi-hook", "two");
        two = installed();
        tree_put(dir, "image/cdi-hook", "three");
        three = installed();
        _cleanup_(freep) char *text = xasprintf("{\"path\":\"%s\"}", one);
        tree_put(dir, "cdi/k8s.gpu.nvidia.com-claim_uid-1.yaml", text);
        _cleanup_(freep) char *half = file_join(plugin, ".cdi-hook-0011223344556677.tmp.7.0");
        tree_put(plugin, ".cdi-hook-0011223344556677.tmp.7.0", "ha");
        gpu_hook_remove_old(plugin, three, cdi, KIND);
        assert_int_equal(access(half, F_OK), -1);
        assert_int_equal(access(one, X_OK), 0);
        assert_int_equal(access(two, X_OK), -1);
        assert_int_equal(access(three, X_OK), 0);
        _cleanup_(freep) char *checkpoint = file_join(plugin, "checkpoint.json");
        assert_int_equal(access(checkpoint, R_OK), 0);
}

/* failure: CDI files cannot be read -> all copies of the hook stay */
static void copies_of_the_hook_stay_when_cdi_files_cannot_be_read(void **state) {
        _cleanup_(freep) char *one = installed(), *two = NULL;
        tree_put(dir, "image/cdi-hook", "two");
        two = installed();
        gpu_hook_remove_old(plugin, two, "/nowhere", KIND);
        assert_int_equal(access(one, X_OK), 0);
        /* A folder in place of a file cannot be read. */
        tree_put(dir, "cdi/k8s.gpu.nvidia.com-claim_uid-1.yaml/x", "");
        gpu_hook_remove_old(plugin, two, cdi, KIND);
        assert_int_equal(access(one, X_OK), 0);
}

static void a_hook_that_is_missing_is_an_error(void **state) {
        char *path = NULL;
        struct err e;
        assert_int_equal(gpu_hook_install("/nowhere/cdi-hook", plugin, &path, &e), -1);
        assert_non_null(strstr(e.msg, "/nowhere/cdi-hook"));
        assert_null(path);
        assert_int_equal(gpu_hook_install(program, "/nowhere", &path, &e), -1);
        assert_string_equal(path, "/nowhere/cdi-hook-7692c3ad3540bb80");
        free(path);
        assert_false(gpu_hook_is_noexec(plugin));
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_copy_has_the_hash_of_its_content_and_is_left_alone),
                T(a_truncated_copy_of_the_hook_is_replaced),
                T(unused_copies_of_the_hook_are_removed),
                T(copies_of_the_hook_stay_when_cdi_files_cannot_be_read),
                T(a_hook_that_is_missing_is_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
