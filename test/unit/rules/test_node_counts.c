/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "rules/node_counts.h"

static void every_node_is_in_one_state(void **state) {
        struct member members[] = {
                { .why = MEMBER_READY },   { .why = MEMBER_READY },    { .why = MEMBER_STARTING },
                { .why = MEMBER_FAILING }, { .why = MEMBER_OCCUPIED }, { .why = MEMBER_FULL },
                { .why = MEMBER_LOST },    { .why = MEMBER_LEAVING },
        };
        const struct membership f = { .members = members, .n_members = ARRAY_LEN(members) };
        struct node_counts c = node_counts_daemons(&f, 3);
        assert_int_equal(c.nodes[NODE_COUNTS_READY], 2);
        assert_int_equal(c.nodes[NODE_COUNTS_STARTING], 1);
        assert_int_equal(c.nodes[NODE_COUNTS_FAILING], 3);
        assert_int_equal(c.nodes[NODE_COUNTS_LOST], 1);
        assert_int_equal(c.nodes[NODE_COUNTS_LEAVING], 1);
        assert_int_equal(c.peers_missing, 3);
        for (size_t i = 0; i < NODE_COUNTS_STATES; i++)
                assert_non_null(node_counts_names[i]);
}

static void hosts_are_counted_by_the_reports_of_their_plugins(void **state) {
        const struct host hosts[] = { { .name = "a", .reported = true, .state = HOST_UP },
                                      { .name = "b", .reported = true, .state = HOST_DEGRADED },
                                      { .name = "c", .reported = true, .state = HOST_DOWN },
                                      { .name = "d" } };
        struct node_counts c = node_counts_hosts(hosts, ARRAY_LEN(hosts));
        assert_int_equal(c.nodes[NODE_COUNTS_READY], 1);
        assert_int_equal(c.nodes[NODE_COUNTS_FAILING], 2);
        assert_int_equal(c.nodes[NODE_COUNTS_LOST], 1);
        assert_int_equal(c.peers_missing, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_node_is_in_one_state),
                cmocka_unit_test(hosts_are_counted_by_the_reports_of_their_plugins),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
