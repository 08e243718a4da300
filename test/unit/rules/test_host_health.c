/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with a limited number of names, and the condition that shows the health of IMEX. */
#include "rules/host_health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rules/message.h"

static const struct host hosts[] = { { "n1", true, HOST_DOWN, "why" },  { "n2", true, HOST_UP, NULL },
                                     { "n3", true, HOST_DEGRADED, "" }, { "n4", .reported = false },
                                     { "n5", true, HOST_DOWN, "why" },  { "n6", true, HOST_DOWN, "why" },
                                     { "n7", true, HOST_DOWN, "why" },  { "n8", true, HOST_DOWN, "why" },
                                     { "n9", true, HOST_DOWN, "why" } };

static void five_unhealthy_nodes_are_named_and_the_others_counted(void **state) {
#define FIVE                                                                                                 \
        "n1 is DOWN: why; n3 is DEGRADED: no reason given; n5 is DOWN: why; n6 is DOWN: why; n7 is DOWN: "   \
        "why"
        static const struct {
                size_t n;
                const char *message;
        } rows[] = {
                { 1, "n1 is DOWN: why" }, { 7, FIVE }, { 8, FIVE "; and 1 more" }, { 9, FIVE "; and 2 more" }
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(1024);
                struct cd_condition c;
                host_health(hosts, rows[i].n, false, a, &c);
                assert_string_equal(c.type, CONDITION_HOST_IMEX_HEALTHY);
                assert_string_equal(c.status, "False");
                assert_string_equal(c.reason, REASON_DOMAIN_HOST_IMEX_DOWN);
                assert_string_equal(c.message, rows[i].message);
                arena_free(a);
        }
}

static void the_condition_follows_the_states(void **state) {
        static const struct {
                size_t first, n;
                bool of_daemons;
                const char *status, *reason;
        } rows[] = { { 0, 0, false, "Unknown", REASON_NO_NODES },
                     { 1, 1, false, "True", REASON_DOMAIN_HOST_IMEX_UP },
                     { 1, 1, true, "True", REASON_IMEX_UP },
                     { 1, 2, false, "False", REASON_DOMAIN_HOST_IMEX_DEGRADED },
                     { 2, 1, true, "False", REASON_IMEX_DOWN },
                     { 3, 1, false, "Unknown", REASON_NOT_PROBED },
                     { 3, 2, false, "False", REASON_DOMAIN_HOST_IMEX_DOWN } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(1024);
                struct cd_condition c;
                host_health(hosts + rows[i].first, rows[i].n, rows[i].of_daemons, a, &c);
                assert_string_equal(c.status, rows[i].status);
                assert_string_equal(c.reason, rows[i].reason);
                arena_free(a);
        }
}

static void five_names_are_listed_and_the_others_counted(void **state) {
        static const char *const texts[] = { "",
                                             "a",
                                             "a, a",
                                             "a, a, a",
                                             "a, a, a, a",
                                             "a, a, a, a, a",
                                             "a, a, a, a, a and 1 more",
                                             "a, a, a, a, a and 2 more" };
        for (size_t n = 0; n < ARRAY_LEN(texts); n++) {
                struct arena *a = arena_new(1024);
                struct message_list list = { 0 };
                for (size_t i = 0; i < n; i++)
                        message_add(&list, "%s", "a");
                assert_string_equal(message_end(&list, a), texts[n]);
                arena_free(a);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(five_unhealthy_nodes_are_named_and_the_others_counted),
                cmocka_unit_test(the_condition_follows_the_states),
                cmocka_unit_test(five_names_are_listed_and_the_others_counted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
