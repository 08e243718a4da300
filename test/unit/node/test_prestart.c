/* SPDX-License-Identifier: Apache-2.0 */
/* The init container, as a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "node/prestart.h"
#include "tree.h"

static char *parent;

static int setup(void **state) {
        (void)state;
        parent = tree_new();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        tree_remove(parent);
        return 0;
}

static void put(const char *path) {
        tree_put(parent, path, "x");
}

static pid_t run(const char *root) {
        pid_t pid = fork();
        if (pid == 0) {
                char name[] = "prestart", a[] = "--nvidia-driver-root", b[] = "--driver-root-parent-path";
                char *argv[] = { name, a, xstrdup(root), b, parent, NULL };
                _exit(prestart_main("plugin", 5, argv));
        }
        return pid;
}

static int status_of(pid_t pid) {
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void an_installed_driver_is_found(void **state) {
        (void)state;
        put("driver/usr/bin/nvidia-smi");
        put("driver/usr/lib64/libnvidia-ml.so.1");
        assert_int_equal(status_of(run("/run/nvidia/driver")), 0);
}

static void a_driver_on_the_host_itself_is_found(void **state) {
        (void)state;
        put("usr/bin/nvidia-smi");
        put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
        assert_int_equal(status_of(run("/")), 0);
}

/* failure: the plugin starts before the NVIDIA driver is installed -> it waits for the driver */
static void a_driver_that_is_installed_later_is_found(void **state) {
        (void)state;
        int status;
        pid_t pid = run("/run/nvidia/driver");
        put("driver/usr/bin/nvidia-smi");
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        put("driver/usr/lib64/libnvidia-ml.so.1");
        assert_int_equal(status_of(pid), 0);
}

/* The root is replaced by another folder, as when a driver container restarts. */
static void a_driver_in_a_replaced_root_is_found(void **state) {
        (void)state;
        int status;
        _cleanup_(freep) char *root = xasprintf("%s/driver", parent), *old = xasprintf("%s/old", parent);
        put("driver/usr/lib64/nothing");
        pid_t pid = run("/run/nvidia/driver");
        assert_int_equal(rename(root, old), 0);
        put("driver/usr/lib64/libnvidia-ml.so.1");
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        put("driver/usr/bin/nvidia-smi");
        assert_int_equal(status_of(pid), 0);
}

static void it_ends_by_a_signal_while_it_waits(void **state) {
        (void)state;
        pid_t pid = run("/run/nvidia/driver");
        kill(pid, SIGTERM);
        int status = 0;
        waitpid(pid, &status, 0);
        /* before or after it has set its handler */
        assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM) ||
                    (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(an_installed_driver_is_found),
                                            T(a_driver_on_the_host_itself_is_found),
                                            T(a_driver_that_is_installed_later_is_found),
                                            T(a_driver_in_a_replaced_root_is_found),
                                            T(it_ends_by_a_signal_while_it_waits) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
