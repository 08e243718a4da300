/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver_tree.h"
#include "hook/in_root.h"
#include "hook/ldconf.h"
#include "tree.h"

static const char *const folders[] = { "/usr/lib64", "/usr/lib64/vdpau", "/opt/x" };
static bool known[3];
static struct ldconf c;
static char *root;
static int fd;

static int setup(void **state) {
        (void)state;
        memset(known, 0, sizeof known);
        c = (struct ldconf){ .folders = folders, .n_folders = 3, .known = known };
        root = tree_new();
        fd = in_root_open(root);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        close(fd);
        tree_remove(root);
        return 0;
}

static void included_files_count(void **state) {
        (void)state;
        tree_put(root, "etc/ld.so.conf",
                 "# comment\ninclude ld.so.conf.d/*.conf /etc/more.conf\n/usr/lib64/  # x\n");
        tree_put(root, "etc/ld.so.conf.d/a.conf", "  /opt/x=libc6\n");
        tree_put(root, "etc/ld.so.conf.d/b.txt", "/usr/lib64/vdpau\n");
        tree_put(root, "etc/more.conf", "include /etc/more.conf\nhwcap 1 nosegneg\n");
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(known[1]);
        assert_true(known[2]);
        assert_true(c.includes_files);
}

static void a_configuration_without_includes_is_recognized(void **state) {
        (void)state;
        ldconf_read(&c, fd);
        assert_false(c.includes_files);
        tree_put(root, "etc/ld.so.conf", "/usr/lib64");
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(c.includes_files);
}

/* The files of the image may be links, devices, FIFOs or folders. */
static void only_regular_files_are_read(void **state) {
        (void)state;
        tree_put(root, "etc/ld.so.conf", "include /etc/*.conf\n");
        driver_tree_link(root, "etc/a.conf", "/../../../../../../etc/ld.so.conf");
        driver_tree_link(root, "etc/b.conf", "/dev/zero");
        _cleanup_(freep) char *fifo = xasprintf("%s/etc/c.conf", root);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        tree_put(root, "etc/d.conf/x", "");
        ldconf_read(&c, fd);
        assert_false(known[0]);
        assert_true(c.n_files < LDCONF_FILES_MAX);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(included_files_count),
                T(a_configuration_without_includes_is_recognized),
                T(only_regular_files_are_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
