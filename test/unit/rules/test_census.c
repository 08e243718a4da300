/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "rules/census.h"

static void every_node_is_in_one_state(void **state) {
        struct member members[] = {
                { .why = MEMBER_READY },   { .why = MEMBER_READY },   { .why = MEMBER_STARTING },
                { .why = MEMBER_FAILING }, { .why = MEMBER_HELD },    { .why = MEMBER_FULL },
                { .why = MEMBER_LOST },    { .why = MEMBER_LEAVING },
        };
        const struct membership f = { .members = members, .n_members = ARRAY_LEN(members) };
        struct census c = census_daemons(&f, 3);
        assert_int_equal(c.nodes[CENSUS_READY], 2);
        assert_int_equal(c.nodes[CENSUS_STARTING], 1);
        assert_int_equal(c.nodes[CENSUS_FAILING], 3);
        assert_int_equal(c.nodes[CENSUS_LOST], 1);
        assert_int_equal(c.nodes[CENSUS_LEAVING], 1);
        assert_int_equal(c.peers_missing, 3);
        for (size_t i = 0; i < CENSUS_STATES; i++)
                assert_non_null(census_names[i]);
}

static void hosts_are_counted_by_the_reports_of_their_plugins(void **state) {
        const struct host hosts[] = { { .name = "a", .state = HOST_UP },
                                      { .name = "b", .state = HOST_DEGRADED },
                                      { .name = "c", .state = HOST_DOWN },
                                      { .name = "d" } };
        struct census c = census_hosts(hosts, ARRAY_LEN(hosts));
        assert_int_equal(c.nodes[CENSUS_READY], 1);
        assert_int_equal(c.nodes[CENSUS_FAILING], 2);
        assert_int_equal(c.nodes[CENSUS_LOST], 1);
        assert_int_equal(c.peers_missing, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_node_is_in_one_state),
                cmocka_unit_test(hosts_are_counted_by_the_reports_of_their_plugins),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
