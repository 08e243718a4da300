/* SPDX-License-Identifier: Apache-2.0 */
/* A driver root that cannot be read does not count as one without a driver, or with fewer libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "nvidia/driver_root.h"
#include "tree.h"

/* The C library has no function openat2(). We pass four arguments. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
static int syscall_errno = ENFILE;
static unsigned disturbed; /* the number of next calls that return EAGAIN */

long __wrap_syscall(long number, ...) {
        long a[4];
        va_list ap;
        va_start(ap, number);
        for (int i = 0; i < 4; i++)
                a[i] = va_arg(ap, long);
        va_end(ap);
        if (disturbed) {
                disturbed--;
                errno = EAGAIN;
                return -1;
        }
        return faults_hit("syscall", syscall_errno) ? -1 : __real_syscall(number, a[0], a[1], a[2], a[3]);
}

static char *dir;
static struct driver_root root;

static int setup(void **state) {
        dir = tree_new();
        root = (struct driver_root){ .host = "/run/nvidia/driver", .here = dir };
        tree_put(dir, "usr/bin/nvidia-imex", "x");
        tree_put(dir, "usr/lib64/libnvidia-ml.so.1", "x");
        tree_put(dir, "usr/lib64/libcuda.so.580.95.05", "x");
        return 0;
}

static int teardown(void **state) {
        tree_remove(dir);
        return 0;
}

static int find(void *u, struct err *e) {
        _cleanup_(arena_freep) struct arena *arena = arena_new(512);
        struct driver_file f = { 0 };
        int r = driver_root_find_binary(&root, "nvidia-imex", arena, &f, e);
        if (r < 0)
                assert_int_not_equal(e->kind, ERR_NOT_FOUND);
        return r;
}

/* A file was renamed, or a file system was mounted, so the kernel gives no answer. */
/* failure: a mount or rename disturbs a lookup -> it is repeated */
static void a_disturbed_lookup_is_repeated(void **state) {
        _cleanup_(arena_freep) struct arena *arena = arena_new(512);
        struct driver_file f = { 0 };
        struct err e;
        disturbed = 100;
        assert_int_equal(driver_root_find_binary(&root, "nvidia-imex", arena, &f, &e), 0);
        assert_int_equal(disturbed, 0);
}

/* failure: no descriptor is left while the driver is searched -> that does not count as a missing program */
static void a_failed_search_for_a_program_does_not_count_as_missing(void **state) {
        assert_in_range(faults_each(&(struct faults){ .op = find, .names = "driver" }), 4, 20);
}

/* Denies access, as SELinux does to a container that is not privileged. */
/* failure: SELinux denies access to the driver root -> that does not count as a missing driver */
static void a_denied_search_for_a_program_does_not_count_as_missing(void **state) {
        _cleanup_(arena_freep) struct arena *arena = arena_new(512);
        struct driver_file f = { 0 };
        struct err e;
        syscall_errno = EACCES;
        faults_at("syscall", 3);
        assert_int_equal(driver_root_find_binary(&root, "nvidia-imex", arena, &f, &e), -1);
        assert_true(faults_off());
        assert_int_equal(e.kind, ERR_DENIED);
        assert_non_null(strstr(e.msg, "'nvidia-imex'"));
        assert_non_null(strstr(e.msg, "/usr/bin/nvidia-imex"));
        assert_non_null(strstr(e.msg, "Permission denied"));
        /* An unreadable folder does not hide a library in a readable one. */
        faults_at("syscall", 1);
        assert_int_equal(driver_root_find_binary(&root, "nvidia-imex", arena, &f, &e), 0);
        assert_true(faults_off());
        syscall_errno = ENFILE;
}

static int list(void *u, struct err *e) {
        _cleanup_(arena_freep) struct arena *arena = arena_new(512);
        struct driver_files f = { 0 };
        int r = driver_root_list_libraries(&root, "580.95.05", arena, &f, e);
        if (r == 0)
                assert_int_equal(f.n, 2);
        return r;
}

/* failure: any call fails while libraries are searched -> all are found, or an error is returned */
static void a_search_finds_all_libraries_or_fails(void **state) {
        assert_in_range(faults_each(&(struct faults){ .op = list }), 7, 30);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = { T(a_disturbed_lookup_is_repeated),
                                            T(a_failed_search_for_a_program_does_not_count_as_missing),
                                            T(a_denied_search_for_a_program_does_not_count_as_missing),
                                            T(a_search_finds_all_libraries_or_fails) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
