/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox if the kernel refuses pivot_root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "hook/in_root.h"
#include "hook/sandbox.h"
#include "tree.h"

static const char *probe;
static char *root;
static bool mounts;
static int pivot_errno;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
        if (number != SYS_pivot_root)
                return __real_syscall(number, a, b, c, d, e, f);
        errno = pivot_errno;
        return -1;
}

static int setup(void **state) {
        (void)state;
        root = tree_new();
        tree_put(root, "etc/hostname", "c");
        if (mounts && mount(root, root, NULL, MS_BIND, NULL) < 0)
                return -1;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        if (mounts)
                umount2(root, MNT_DETACH);
        tree_remove(root);
        return 0;
}

static char *const *prepare(void *u, int fd) {
        static char name[] = "probe";
        static char *const argv[] = { name, NULL };
        (void)u;
        (void)fd;
        return argv;
}

/* Runs in a child, because sandbox_run() moves its caller into other namespaces. */
static int run_with(int errnum) {
        int status = 0;
        pivot_errno = errnum;
        pid_t child = fork();
        if (child == 0) {
                int program = sandbox_program(probe), fd = in_root_open(root);
                _exit(program < 0 || fd < 0                                ? 99
                      : sandbox_run(program, fd, root, prepare, NULL) == 0 ? 0
                                                                           : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* failure: pivot_root is not possible -> the host's root is covered */
static void a_root_that_pivot_root_refuses_is_covered(void **state) {
        (void)state;
        if (!mounts)
                skip();
        assert_int_equal(run_with(EINVAL), 0);
        _cleanup_(freep) char *probed = xasprintf("%s/etc/probed", root);
        assert_int_equal(access(probed, F_OK), 0);
}

/* failure: pivot_root is refused unexpectedly -> the hook fails and runs nothing */
static void any_other_refusal_of_pivot_root_is_an_error(void **state) {
        (void)state;
        if (!mounts)
                skip();
        static const int others[] = { EPERM, EBUSY, ENOTDIR, ENOSYS };
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                assert_int_equal(run_with(others[i]), 1);
        _cleanup_(freep) char *probed = xasprintf("%s/etc/probed", root);
        assert_int_equal(access(probed, F_OK), -1);
}

int main(int argc, char **argv) {
        probe = argv[argc - 1];
        mounts = unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_PRIVATE | MS_REC, "") == 0;
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_root_that_pivot_root_refuses_is_covered),
                T(any_other_refusal_of_pivot_root_is_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
