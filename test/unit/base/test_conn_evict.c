/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection of a full port makes room for a new one. */
#include "base/conn_evict.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ADDR(n)                                                                                              \
        {                                                                                                    \
                .bytes = { [15] = (n) }                                                                      \
        }

/* failure: one client opens all connections of a port -> only its own connections are closed to make room */
static void an_address_displaces_only_its_own_connections(void **state) {
        struct conn_evict_conn m[16];
        for (size_t i = 0; i < 16; i++)
                m[i] = (struct conn_evict_conn){ .addr = ADDR(1), .since_ms = 1000 + i };
        /* The probe from another address is the oldest and has begun a request, but still stays. */
        m[7] = (struct conn_evict_conn){ .addr = ADDR(2), .unfinished = true, .since_ms = 1 };
        assert_int_equal(conn_evict_choose(m, 16), 0);
}

static void an_unfinished_request_is_closed_before_a_silent_connection(void **state) {
        const struct conn_evict_conn m[] = {
                { .addr = ADDR(1), .since_ms = 1 },
                { .addr = ADDR(2), .since_ms = 9, .unfinished = true },
                { .addr = ADDR(3), .since_ms = 8, .unfinished = true },
                { .addr = ADDR(4), .since_ms = 2 },
        };
        assert_int_equal(conn_evict_choose(m, 4), 2);
        assert_int_equal(conn_evict_choose(m, 2), 1);
        assert_int_equal(conn_evict_choose(m, 1), 0);
}

static void a_connection_that_is_being_answered_stays_and_counts(void **state) {
        const struct conn_evict_conn m[] = {
                { .addr = ADDR(1), .since_ms = 1, .stays = true },
                { .addr = ADDR(1), .since_ms = 9 },
                { .addr = ADDR(2), .since_ms = 2 },
        };
        assert_int_equal(conn_evict_choose(m, 3), 1);
        assert_int_equal(conn_evict_choose(m, 1), 1);
        assert_int_equal(conn_evict_choose(m, 0), 0);
}

static void an_address_is_the_same_in_both_families(void **state) {
        struct sockaddr_in four = { .sin_family = AF_INET };
        struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
        inet_pton(AF_INET, "10.1.2.3", &four.sin_addr);
        inet_pton(AF_INET6, "::ffff:10.1.2.3", &six.sin6_addr);
        struct conn_evict_addr a = conn_evict_addr((const struct sockaddr *)&four),
                               b = conn_evict_addr((const struct sockaddr *)&six),
                               none = conn_evict_addr(NULL);
        assert_memory_equal(&a, &b, sizeof a);
        assert_memory_not_equal(&a, &none, sizeof a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_address_displaces_only_its_own_connections),
                cmocka_unit_test(an_unfinished_request_is_closed_before_a_silent_connection),
                cmocka_unit_test(a_connection_that_is_being_answered_stays_and_counts),
                cmocka_unit_test(an_address_is_the_same_in_both_families),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
