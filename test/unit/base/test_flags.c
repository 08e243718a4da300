/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/mem.h"

static const char *node, *root;
static int64_t port, lease, v;
static bool leader, label;

static const struct flag table[] = {
        { "node-name", .type = FLAG_STR, .dest = &node, .required = true, .help = "this node" },
        { "nvidia-driver-root", .type = FLAG_STR, .dest = &root, .alt_env = "HOST_DRIVER_ROOT" },
        { "healthcheck-port", .type = FLAG_INT, .dest = &port, .min = -1, .max = 65535 },
        { "lease", .type = FLAG_DURATION_MS, .dest = &lease },
        { "leader-election-enabled", .type = FLAG_BOOL, .dest = &leader },
        { "label", .env = "LABEL_IT", .type = FLAG_BOOL, .dest = &label },
        { "v", .env = "LOG_VERBOSITY", .type = FLAG_INT, .dest = &v },
        { 0 },
};

/* Strings point into argv, so the copies must live until the test has checked them. */
static char *kept[256];
static size_t n_kept;
static int rest;
static bool help;
static struct err e;

static int parse(const char *const *args) {
        char *argv[16] = { (char[]){ "prog" } };
        int argc = 1;
        for (; args[argc - 1]; argc++)
                argv[argc] = kept[n_kept++] = xstrdup(args[argc - 1]);
        node = NULL;
        root = "/";
        port = -1;
        lease = 15000;
        v = 0;
        leader = label = false;
        e = (struct err){ 0 };
        return flags_parse(table, argc, argv, &rest, &help, &e);
}
#define PARSE(...) parse((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static int clear(void **state) {
        (void)state;
        const char *names[] = {
                "NODE_NAME", "NVIDIA_DRIVER_ROOT",      "HOST_DRIVER_ROOT", "HEALTHCHECK_PORT",
                "LEASE",     "LEADER_ELECTION_ENABLED", "LABEL_IT",         "LOG_VERBOSITY"
        };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                unsetenv(names[i]);
        while (n_kept)
                free(kept[--n_kept]);
        return 0;
}

static void forms_of_an_argument(void **state) {
        (void)state;
        assert_int_equal(PARSE("--node-name", "n1", "--healthcheck-port=51515", "-v", "6",
                               "--leader-election-enabled", "--label=false", "run", "--x"),
                         0);
        assert_string_equal(node, "n1");
        assert_int_equal(port, 51515);
        assert_int_equal(v, 6);
        assert_true(leader);
        assert_false(label);
        assert_int_equal(rest, 8);
        assert_false(help);
        assert_int_equal(PARSE("--node-name=a", "--", "--b"), 0);
        assert_int_equal(rest, 3);
}

static void command_line_precedes_environment_precedes_default(void **state) {
        (void)state;
        setenv("NODE_NAME", "from-env", 1);
        setenv("HEALTHCHECK_PORT", "7", 1);
        setenv("LABEL_IT", "true", 1);
        assert_int_equal(PARSE("--healthcheck-port", "8"), 0);
        assert_string_equal(node, "from-env");
        assert_int_equal(port, 8);
        assert_true(label);
        assert_int_equal(lease, 15000);
        assert_string_equal(root, "/");
}

static void second_variable_is_read(void **state) {
        (void)state;
        setenv("HOST_DRIVER_ROOT", "/run/nvidia/driver", 1);
        assert_int_equal(PARSE("--node-name=n"), 0);
        assert_string_equal(root, "/run/nvidia/driver");
        setenv("NVIDIA_DRIVER_ROOT", "", 1);
        assert_int_equal(PARSE("--node-name=n"), 0);
        assert_string_equal(root, "/run/nvidia/driver");
        setenv("NVIDIA_DRIVER_ROOT", "/first", 1);
        assert_int_equal(PARSE("--node-name=n"), 0);
        assert_string_equal(root, "/first");
}

static void empty_number_in_the_environment_is_unset(void **state) {
        (void)state;
        setenv("HEALTHCHECK_PORT", "", 1);
        setenv("LEASE", "", 1);
        assert_int_equal(PARSE("--node-name=n"), 0);
        assert_int_equal(port, -1);
        assert_int_equal(lease, 15000);
}

static void durations(void **state) {
        (void)state;
        static const struct {
                const char *text;
                int64_t ms;
        } good[] = { { "15s", 15000 }, { "1m30s", 90000 },       { "250ms", 250 }, { "1.5h", 5400000 },
                     { "0", 0 },       { "2h45m0.5s", 9900500 }, { "-2s", -2000 }, { "1000us", 1 } };
        static const char *const bad[] = { "",     "15",    "s",    "1x",     "1e3s",
                                           "infs", "0x10s", "--1s", "1.2.3s", "99999999999999999h",
                                           "1 s" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                assert_int_equal(PARSE("--node-name=n", "--lease", good[i].text), 0);
                assert_int_equal(lease, good[i].ms);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(PARSE("--node-name=n", "--lease", bad[i]), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

static void mistakes_name_the_flag(void **state) {
        (void)state;
        assert_int_equal(PARSE("--node-nam", "x"), -1);
        assert_string_equal(e.msg, "unknown flag '--node-nam'");
        assert_int_equal(PARSE("--node-name"), -1);
        assert_string_equal(e.msg, "--node-name needs a value");
        assert_int_equal(PARSE("--node-name=n", "--healthcheck-port=8x"), -1);
        assert_string_equal(e.msg, "--healthcheck-port: '8x' is not a whole number");
        assert_int_equal(PARSE("--node-name=n", "--healthcheck-port=65536"), -1);
        assert_string_equal(e.msg, "--healthcheck-port: 65536 is not between -1 and 65535");
        assert_int_equal(PARSE("--node-name=n", "--healthcheck-port=65535"), 0);
        assert_int_equal(PARSE("--node-name=n", "--healthcheck-port=-2"), -1);
        assert_int_equal(PARSE("--node-name=n", "--label=maybe"), -1);
        assert_int_equal(PARSE(NULL), -1);
        assert_string_equal(e.msg, "--node-name (or NODE_NAME) is required");
        setenv("LEASE", "soon", 1);
        assert_int_equal(PARSE("--node-name=n"), -1);
        assert_non_null(strstr(e.msg, "LEASE"));
}

static void help_needs_nothing_else(void **state) {
        (void)state;
        assert_int_equal(PARSE("--help"), 0);
        assert_true(help);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(forms_of_an_argument, clear, clear),
                cmocka_unit_test_setup_teardown(command_line_precedes_environment_precedes_default, clear,
                                                clear),
                cmocka_unit_test_setup_teardown(second_variable_is_read, clear, clear),
                cmocka_unit_test_setup_teardown(empty_number_in_the_environment_is_unset, clear, clear),
                cmocka_unit_test_setup_teardown(durations, clear, clear),
                cmocka_unit_test_setup_teardown(mistakes_name_the_flag, clear, clear),
                cmocka_unit_test_setup_teardown(help_needs_nothing_else, clear, clear),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
