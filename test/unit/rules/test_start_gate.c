/* SPDX-License-Identifier: Apache-2.0 */
/* When the pods of a ComputeDomain with a start gate may start. */
#include "rules/start_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/names.h"
#include "api/reasons.h"

static struct cd_condition gate_of(const struct compute_domain *cd, const struct start_gate_nodes *nodes,
                                   struct arena *a) {
        struct cd_condition c = { 0 };
        start_gate(cd, nodes, a, &c);
        assert_string_equal(c.type, CONDITION_START_GATE_OPEN);
        return c;
}

/* failure: a start gate has a wrong value, or no number of nodes -> a condition reports it, and pods wait */
static void a_gate_that_cannot_work_is_reported_and_closed(void **state) {
        static const struct {
                const char *value;
                int64_t num_nodes;
                const char *message;
        } rows[] = {
                { "yes", 2,
                  "Annotation resource.nvidia.com/start-gate has the value 'yes': use \"true\" or "
                  "\"false\"" },
                { "", 2,
                  "Annotation resource.nvidia.com/start-gate has the value '': use \"true\" or \"false\"" },
                { "true", 0,
                  "Annotation resource.nvidia.com/start-gate needs the number of nodes, but spec.numNodes is "
                  "0" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(256);
                const struct compute_domain cd = { .num_nodes = rows[i].num_nodes,
                                                   .start_gate = rows[i].value };
                struct cd_condition c = gate_of(&cd, &(struct start_gate_nodes){ 3, 0, "", .used = true }, a);
                assert_string_equal(c.status, "False");
                assert_string_equal(c.reason, REASON_START_GATE_INVALID);
                assert_ptr_equal(strstr(c.message, rows[i].message), c.message);
                arena_free(a);
        }
}

/* failure: fewer nodes are connected than spec.numNodes -> the start gate stays closed, and the condition
 * names what is missing */
static void the_gate_opens_when_enough_nodes_are_connected(void **state) {
        static const struct {
                struct start_gate_nodes nodes;
                bool was_open;
                const char *status, *reason, *message;
        } rows[] = {
                { { 0, 0, "" },
                  false,
                  "False",
                  REASON_START_GATE_CLOSED,
                  "0 of 2 nodes are connected. 2 more must join: their pods do not exist, or have no node" },
                { { 1, 1, "n1: IMEX daemon is STARTING", .used = true },
                  false,
                  "False",
                  REASON_START_GATE_CLOSED,
                  "1 of 2 nodes are connected. n1: IMEX daemon is STARTING" },
                { { 1, 0, "", .used = true },
                  false,
                  "False",
                  REASON_START_GATE_CLOSED,
                  "1 of 2 nodes are connected. 1 more must join: their pods do not exist, or have no node" },
                { { 2, 0, "", .used = true },
                  false,
                  "True",
                  REASON_START_GATE_OPENED,
                  "Enough nodes were connected. The gate stays open while pods use this ComputeDomain" },
                { { 2, 1, "n2: lost", .used = true }, false, "True", REASON_START_GATE_OPENED, NULL },
                /* A pod is replaced after another one has completed. */
                { { 1, 0, "", .used = true }, true, "True", REASON_START_GATE_OPENED, NULL },
                { { 0, 1, "n0: lost", .used = true }, true, "True", REASON_START_GATE_OPENED, NULL },
                /* The next workload of the ComputeDomain. */
                { { 0, 0, "" }, true, "False", REASON_START_GATE_CLOSED, NULL },
                { { 0, 1, "n0: stopping" }, true, "False", REASON_START_GATE_CLOSED, NULL },
                { { 0, 0, "", .go = true },
                  false,
                  "True",
                  REASON_START_GATE_OPENED,
                  "The Go driver formed this ComputeDomain, so its pods do not wait" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(256);
                struct cd_condition was = { .type = CONDITION_START_GATE_OPEN,
                                            .status = rows[i].was_open ? "True" : "False" };
                const struct compute_domain cd = {
                        .num_nodes = 2, .start_gate = "true", .conditions = &was, .n_conditions = 1
                };
                struct cd_condition c = gate_of(&cd, &rows[i].nodes, a);
                if (!streq(c.status, rows[i].status) || !streq(c.reason, rows[i].reason))
                        fail_msg("row %zu: %s %s", i, c.status, c.reason);
                if (rows[i].message)
                        assert_string_equal(c.message, rows[i].message);
                arena_free(a);
        }
}

static void a_gate_for_one_node_opens(void **state) {
        struct arena *a = arena_new(256);
        const struct compute_domain cd = { .num_nodes = 1, .start_gate = "true" };
        assert_string_equal(gate_of(&cd, &(struct start_gate_nodes){ 1, 0, "", .used = true }, a).status,
                            "True");
        arena_free(a);
}

static void a_node_is_connected_if_it_is_ready_and_has_all_peers(void **state) {
        struct arena *a = arena_new(256);
        struct member_clique clique = { "c", 4 };
        struct member m[] = {
                { { "n0", "1", "c", "Ready", 0 }, true, true, MEMBER_READY, "", 3 },
                { { "n1", "1", "c", "Ready", 1 }, true, true, MEMBER_READY, "", 2 },
                { { "n2", "1", "c", "Ready", 2 }, true, true, MEMBER_READY, "", -1 },
                { { "n3", "1", "c", "NotReady", 3 }, true, true, MEMBER_STARTING, "starts", 0 },
                { { "n4", "", "", "Ready", -1 }, true, true, MEMBER_READY, "", -1 },
                { { "n5", "", NULL, "NotReady", -1 }, false, true, MEMBER_STARTING, "joins", -1 },
                { { "n6", "", "c", "NotReady", 3 }, false, false, MEMBER_LEAVING, "leaves", -1 },
        };
        const struct membership all = { m, ARRAY_LEN(m), &clique, 1, false, NULL };
        struct start_gate_nodes nodes;
        start_gate_of_members(&all, a, &nodes);
        assert_int_equal(nodes.connected, 2);
        assert_int_equal(nodes.others, 4);
        assert_true(nodes.used);
        assert_false(nodes.go);
        assert_string_equal(nodes.lacking, "n1: not connected to all of its peers; n2: not connected to all "
                                           "of its peers; n3: starts; n5: joins");
        start_gate_of_members(&(struct membership){ &m[6], 1, &clique, 1, false, NULL }, a, &nodes);
        assert_false(nodes.used);
        assert_int_equal(nodes.connected + nodes.others, 0);
        /* The only node has no peers. */
        clique.n_listed = 1;
        start_gate_of_members(&(struct membership){ &m[2], 1, &clique, 1, false, NULL }, a, &nodes);
        assert_int_equal(nodes.connected, 1);
        start_gate_of_members(&(struct membership){ &m[2], 1, NULL, 1, false, "Go" }, a, &nodes);
        assert_true(nodes.go);
        arena_free(a);
}

static void a_host_is_connected_if_it_is_UP(void **state) {
        struct arena *a = arena_new(256);
        static const struct host hosts[] = { { "n0", true, HOST_UP, NULL },
                                             { "n1", true, HOST_DEGRADED, "n2 is away" },
                                             { "n2", true, HOST_DOWN, NULL },
                                             { "n3", .reported = false },
                                             { "n4", .reported = false, .reason = "no config.cfg" } };
        struct start_gate_nodes nodes;
        start_gate_of_hosts(hosts, ARRAY_LEN(hosts), a, &nodes);
        assert_int_equal(nodes.connected, 1);
        assert_int_equal(nodes.others, 4);
        assert_true(nodes.used);
        assert_string_equal(nodes.lacking,
                            "n1: n2 is away; n2: its IMEX is not READY; n3: the state of its "
                            "IMEX has not been reported; n4: the state of its IMEX is not known: no "
                            "config.cfg");
        start_gate_of_hosts(NULL, 0, a, &nodes);
        assert_false(nodes.used);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_gate_that_cannot_work_is_reported_and_closed),
                cmocka_unit_test(the_gate_opens_when_enough_nodes_are_connected),
                cmocka_unit_test(a_gate_for_one_node_opens),
                cmocka_unit_test(a_node_is_connected_if_it_is_ready_and_has_all_peers),
                cmocka_unit_test(a_host_is_connected_if_it_is_UP),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
