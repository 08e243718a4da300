/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "imex/imex_ctl.h"

static void test_status(void **state) {
        assert_string_equal(imex_ctl_parse_status(STR("READY\n")), "READY");
        assert_string_equal(imex_ctl_parse_status(STR("READY")), "READY");
        assert_string_equal(imex_ctl_parse_status(STR("  WAITING_FOR_RECOVERY \r\n")),
                            "WAITING_FOR_RECOVERY");
        assert_string_equal(imex_ctl_parse_status(STR("warning: log file cannot be opened\nREADY\n\n")),
                            "READY");
        assert_string_equal(imex_ctl_parse_status(STR("INITIALIZING\nINIT_GPU\n")), "INIT_GPU");
        assert_string_equal(imex_ctl_parse_status(STR("UNAVAILABLE\n")), "UNAVAILABLE");
}

static void test_status_unknown(void **state) {
        assert_string_equal(imex_ctl_parse_status(STR("")), "");
        assert_string_equal(imex_ctl_parse_status((struct str){ 0 }), "");
        assert_string_equal(imex_ctl_parse_status(STR("NOT READY\n")), "");
        assert_string_equal(imex_ctl_parse_status(STR("READY!\n")), "");
        assert_string_equal(imex_ctl_parse_status(STR("ready\n")), "");
        assert_string_equal(imex_ctl_parse_status(STR("Failed to connect to the server\n")), "");
}

#define DOMAIN                                                                                               \
        "{\"nodes\":{"                                                                                       \
        "\"0\":{\"status\":\"READY\",\"host\":\"10.0.0.1\",\"hostName\":\"a\",\"version\":\"580.95.05\","    \
        "\"connections\":{\"0\":{\"host\":\"10.0.0.1\",\"status\":\"CONNECTED\",\"changed\":true},"          \
        "\"1\":{\"host\":\"10.0.0.2\",\"status\":\"CONNECTED\",\"changed\":true},\"2\":{\"host\":\"127.0.0." \
        "2\",\"status\":\"NEVER_CONNECTED\"}}},"                                                             \
        "\"1\":{\"status\":\"READY\",\"host\":\"10.0.0.2\",\"hostName\":\"b\",\"version\":\"580.95.05\","    \
        "\"connections\":{}},"                                                                               \
        "\"2\":{\"status\":\"UNAVAILABLE\",\"host\":\"127.0.0.2\",\"hostName\":\"N/A\"}},"                   \
        "\"timestamp\":\"9/4/2026 00:00:00.000\",\"status\":\"DEGRADED\"}"

static void check_domain(struct str text) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        assert_int_equal(imex_ctl_parse_domain(text, a, &d, &e), 0);
        assert_string_equal(d.status, "DEGRADED");
        assert_int_equal(d.n_nodes, 3);
        assert_int_equal(d.nodes[2].id, 2);
        assert_string_equal(d.nodes[2].version, "");
        assert_int_equal(d.nodes[2].n_connections, 0);
        assert_ptr_equal(imex_ctl_find(&d, "10.0.0.2", NULL), &d.nodes[1]);
        assert_ptr_equal(imex_ctl_find(&d, NULL, "a"), &d.nodes[0]);
        assert_null(imex_ctl_find(&d, "10.0.0.9", "x"));
        assert_null(imex_ctl_find(&d, "10.0.0.1", "b")); /* two answers are none */
        assert_int_equal(imex_ctl_connected(&d.nodes[0]), 1);
        assert_int_equal(imex_ctl_connected(&d.nodes[2]), 0);
}

static void test_domain(void **state) {
        check_domain(STR(DOMAIN));
        check_domain(STR("a warning\n" DOMAIN "\nand more\n"));
}

static void test_domain_refused(void **state) {
        static const char *const bad[] = {
                "",
                "no object",
                "{",
                "{}",
                "[]",
                "{\"nodes\":[]}",
                "{\"nodes\":{\"x\":{}}}",
                "{\"nodes\":{\"-1\":{}}}",
                "{\"nodes\":{\"0\":{\"connections\":{\"one\":{}}}}}",
                "{\"nodes\":{\"99999999999999999999\":{}}}",
        };
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(imex_ctl_parse_domain(str_from(bad[i]), a, &d, &e), -1);
        assert_int_equal(imex_ctl_parse_domain(STR("{\"nodes\":{\"0\":7}}"), a, &d, &e),
                         0); /* odd, but nothing in it is believed */
        assert_string_equal(d.nodes[0].host, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_status_unknown),
                cmocka_unit_test(test_domain),
                cmocka_unit_test(test_domain_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
