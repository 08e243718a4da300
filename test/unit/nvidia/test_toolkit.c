/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvidia/toolkit.h"
#include "tree.h"

#define PACKAGE "etc/nvidia-container-runtime/config.toml"
#define OPERATOR "usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
#define IGNORES "disable-require = false\n[features]\nignore-imex-channel-requests = true\n"
#define GIVES "disable-require = false\n[nvidia-container-runtime]\nmode = \"auto\"\n"

static char *one, *two, why[400];

static int setup(void **state) {
        (void)state;
        one = tree_new();
        two = tree_new();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        tree_remove(one);
        tree_remove(two);
        return 0;
}

static enum toolkit_answer look(void) {
        const struct driver_root roots[] = { { "/run/nvidia/driver", one }, { "/", two } };
        return toolkit_look(roots, 2, why, sizeof why);
}

static void nobody_knows_of_a_toolkit_without_a_configuration(void **state) {
        (void)state;
        assert_int_equal(look(), TOOLKIT_NOT_FOUND);
        assert_string_equal(why, "");
}

static void wherever_it_is_each_configuration_has_to_say_so(void **state) {
        (void)state;
        tree_put(two, OPERATOR, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(one, PACKAGE, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(two, PACKAGE, GIVES);
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(
                strstr(why, "/etc/nvidia-container-runtime/config.toml does not set " TOOLKIT_SETTING));
        tree_put(two, PACKAGE, "[features]\nignore-imex-channel-requests = false\n");
        assert_int_equal(look(), TOOLKIT_GIVES);
        tree_put(two, PACKAGE, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
}

static void what_cannot_be_read_says_nothing_good(void **state) {
        (void)state;
        tree_put(one, PACKAGE, "[features]\nignore-imex-channel-requests = 1\n");
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(strstr(why, "cannot be read (line 2: "));
        tree_put(one, PACKAGE, IGNORES);
        tree_put(two, PACKAGE "/file", "x");
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(strstr(why, "is no regular file"));
}

/* A link as the host has it leads to a file of the host, not to one of ours. */
static void links_stay_below_the_root(void **state) {
        (void)state;
        _cleanup_(freep) char *link = NULL;
        tree_put(two, "opt/toolkit.toml", IGNORES);
        tree_put(two, "etc/nvidia-container-runtime/other", "x");
        link = xasprintf("%s/" PACKAGE, two);
        assert_int_equal(symlink("/opt/toolkit.toml", link), 0);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(two, "opt/toolkit.toml", GIVES);
        assert_int_equal(look(), TOOLKIT_GIVES);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(nobody_knows_of_a_toolkit_without_a_configuration),
                T(wherever_it_is_each_configuration_has_to_say_so),
                T(what_cannot_be_read_says_nothing_good),
                T(links_stay_below_the_root),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
