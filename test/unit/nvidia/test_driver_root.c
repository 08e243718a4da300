/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "nvidia/driver_root.h"
#include "tree.h"

static char *top, *here;
static struct arena *arena;
static struct driver_root root;
static struct err e;

static char *at(const char *path) {
        return xasprintf("%s%s", here, path);
}

static void put(const char *path) {
        tree_put(here, path + 1, "x");
}

static void link_to(const char *path, const char *target) {
        _cleanup_(freep) char *p = at(path);
        assert_int_equal(symlink(target, p), 0);
}

static void folder(const char *path) {
        _cleanup_(freep) char *p = at(path);
        assert_int_equal(file_mkdirs(p, 0755, &e), 0);
}

static int setup(void **state) {
        (void)state;
        top = tree_new();
        here = xasprintf("%s/root", top);
        arena = arena_new(512);
        root = (struct driver_root){ .host = "/run/nvidia/driver", .here = here };
        return mkdir(here, 0755);
}

static int teardown(void **state) {
        (void)state;
        tree_remove(top);
        free(here);
        arena_free(arena);
        return 0;
}

static void expect(const struct driver_file *f, const char *real, const char *inside) {
        _cleanup_(freep) char *h = at(real);
        _cleanup_(freep) char *host = xasprintf("/run/nvidia/driver%s", real);
        assert_string_equal(f->here, h);
        assert_string_equal(f->host, host);
        assert_string_equal(f->inside, inside);
}

static void library_through_links(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        put("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05");
        link_to("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.95.05");
        assert_int_equal(driver_root_find_library(&root, "libnvidia-ml.so.1", arena, &f, &e), 0);
        expect(&f, "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05",
               "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
}

/* failure: a folder is called libnvidia-ml.so.1 -> the library is still found */
static void directory_does_not_shadow_the_library(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        folder("/libnvidia-ml.so.1");
        folder("/usr/lib64/libnvidia-ml.so.1");
        put("/lib64/libnvidia-ml.so.1");
        assert_int_equal(driver_root_find_library(&root, "libnvidia-ml.so.1", arena, &f, &e), 0);
        expect(&f, "/lib64/libnvidia-ml.so.1", "/lib64/libnvidia-ml.so.1");
}

static void absolute_link_stays_in_the_root(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        put("/opt/driver/nvidia-smi");
        folder("/usr/bin");
        link_to("/usr/bin/nvidia-smi", "/opt/driver/nvidia-smi");
        assert_int_equal(driver_root_find_binary(&root, "nvidia-smi", arena, &f, &e), 0);
        expect(&f, "/opt/driver/nvidia-smi", "/usr/bin/nvidia-smi");
}

static void link_cannot_leave_the_root(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        _cleanup_(freep) char *secret = file_join(top, "secret");
        assert_int_equal(file_replace_volatile(secret, "s", 1, 0600, &e), 0);
        folder("/usr/bin");
        link_to("/usr/bin/nvidia-smi", "../../../secret");
        assert_int_equal(driver_root_find_binary(&root, "nvidia-smi", arena, &f, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

/* failure: the driver's programs are in /opt/bin -> they are found there first */
static void opt_bin_comes_first_and_misses_name_what_was_searched(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        assert_int_equal(driver_root_find_binary(&root, "nvidia-imex", arena, &f, &e), -1);
        assert_non_null(strstr(e.msg, "'nvidia-imex' is not in driver root '/run/nvidia/driver': is it "
                                      "installed there, and is the chart value nvidiaDriverRoot correct?"));
        assert_non_null(strstr(e.msg, "/usr/bin"));
        put("/usr/bin/nvidia-imex");
        put("/opt/bin/nvidia-imex");
        assert_int_equal(driver_root_find_binary(&root, "nvidia-imex", arena, &f, &e), 0);
        expect(&f, "/opt/bin/nvidia-imex", "/opt/bin/nvidia-imex");
}

static void missing_root(void **state) {
        (void)state;
        struct driver_file f = { 0 };
        struct driver_root none = { .host = "/h", .here = "/nowhere/at/all" };
        assert_int_equal(driver_root_find_binary(&none, "nvidia-imex", arena, &f, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void libraries_of_one_version_with_their_names(void **state) {
        (void)state;
        struct driver_files f = { 0 };
        put("/usr/lib64/libnvidia-ml.so.580.95.05");
        link_to("/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.95.05");
        put("/usr/lib64/libcuda.so.580.95.05");
        link_to("/usr/lib64/libcuda.so.1", "libcuda.so.580.95.05");
        link_to("/usr/lib64/libcuda.so", "libcuda.so.1");
        put("/usr/lib64/libcuda.so.570.1");
        put("/usr/lib64/libc.so.6");
        folder("/usr/lib64/libdir.so.580.95.05");
        assert_int_equal(driver_root_list_libraries(&root, "580.95.05", arena, &f, &e), 0);
        assert_int_equal(f.n, 4);
        expect(&f.items[0], "/usr/lib64/libcuda.so.580.95.05", "/usr/lib64/libcuda.so.1");
        expect(&f.items[1], "/usr/lib64/libcuda.so.580.95.05", "/usr/lib64/libcuda.so.580.95.05");
        expect(&f.items[2], "/usr/lib64/libnvidia-ml.so.580.95.05", "/usr/lib64/libnvidia-ml.so.1");
        expect(&f.items[3], "/usr/lib64/libnvidia-ml.so.580.95.05", "/usr/lib64/libnvidia-ml.so.580.95.05");
}

static void library_without_a_version_is_listed_too(void **state) {
        (void)state;
        struct driver_files f = { 0 };
        put("/usr/lib64/libnvidia-ml.so.1");
        assert_int_equal(driver_root_list_libraries(&root, "580.95.05", arena, &f, &e), 0);
        assert_int_equal(f.n, 1);
        expect(&f.items[0], "/usr/lib64/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1");
}

/* failure: a driver has hundreds of libraries -> all are found */
static void any_number_of_libraries_is_found(void **state) {
        struct driver_files f = { 0 };
        put("/usr/lib64/libnvidia-ml.so.1");
        for (int i = 0; i < 700; i++) {
                _cleanup_(freep) char *path = xasprintf("/usr/lib64/lib%d.so.580.95.05", i);
                put(path);
        }
        assert_int_equal(driver_root_list_libraries(&root, "580.95.05", arena, &f, &e), 0);
        assert_int_equal(f.n, 701);
}

static void the_machine_itself_as_root(void **state) {
        (void)state;
        struct driver_root slash = { .host = "/", .here = "/" };
        struct driver_file f = { 0 };
        assert_int_equal(driver_root_find_binary(&slash, "env", arena, &f, &e), 0);
        assert_string_equal(f.inside, "/usr/bin/env");
        assert_int_equal(f.here[0], '/');
        assert_int_not_equal(f.here[1], '/');
}

/* With RESOLVE_IN_ROOT, openat2() refuses ".." with EAGAIN while any file is renamed anywhere. */
/* failure: files are renamed while the driver root is searched -> no library is missed */
static void a_rename_storm_hides_no_library(void **state) {
        (void)state;
        _cleanup_(freep) char *a = at("/a"), *b = at("/b");
        put("/a");
        put("/usr/lib64/real.so.1");
        folder("/etc/alternatives/x");
        link_to("/etc/alternatives/x/l", "../../../usr/lib64/real.so.1");
        link_to("/usr/lib64/libnvidia-ml.so.1", "../../etc/alternatives/x/l");
        pid_t storm = fork();
        assert_int_not_equal(storm, -1);
        if (storm == 0)
                while (rename(a, b) == 0 && rename(b, a) == 0)
                        continue;
        if (storm == 0)
                _exit(1);
        unsigned failed = 0;
        for (unsigned i = 0; i < 20000; i++) {
                _cleanup_(arena_freep) struct arena *each = arena_new(512);
                struct driver_file f = { 0 };
                failed += driver_root_find_library(&root, "libnvidia-ml.so.1", each, &f, &e) < 0;
        }
        int status = 0;
        kill(storm, SIGKILL);
        assert_int_equal(waitpid(storm, &status, 0), storm);
        assert_true(WIFSIGNALED(status)); /* the renames continued until the end */
        assert_int_equal(failed, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(library_through_links),
                T(directory_does_not_shadow_the_library),
                T(absolute_link_stays_in_the_root),
                T(link_cannot_leave_the_root),
                T(opt_bin_comes_first_and_misses_name_what_was_searched),
                T(missing_root),
                T(libraries_of_one_version_with_their_names),
                T(library_without_a_version_is_listed_too),
                T(any_number_of_libraries_is_found),
                T(the_machine_itself_as_root),
                T(a_rename_storm_hides_no_library),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
