/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/fake.h"

#include "rules/seated.h"
#include "rules/verdict.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"

static const struct node *node_of(struct arena *a, bool ready) {
        struct node *n = arena_alloc(a, sizeof *n);
        struct condition *c = arena_alloc(a, sizeof *c);
        *c = (struct condition){ .type = "Ready", .status = ready ? "True" : "False" };
        *n = (struct node){ .conditions = c, .n_conditions = 1 };
        return n;
}

static const struct pod *agent_of(struct arena *a, bool ready) {
        static struct pod_ip ip = { "10.0.0.1" };
        struct pod *p = arena_alloc(a, sizeof *p);
        *p = (struct pod){ .o.meta.name = "agent-1",
                           .clique_id = CLIQUE,
                           .template_hash = "h",
                           .state = ready ? "READY" : "STARTING",
                           .index = "3",
                           .peers = "0/0",
                           .ready = ready ? "true" : "false",
                           .ips = &ip,
                           .n_ips = 1 };
        return p;
}

static const struct fabric_seat seat = { .node = "n1", .index = 3, .epoch = 7 };

/* A node whose agent has joined. */
static struct seated_facts joined(struct arena *a, bool ready) {
        return (struct seated_facts){ .node = { .name = "n1",
                                                .node = node_of(a, true),
                                                .wanted = true,
                                                .clique = CLIQUE,
                                                .pod = agent_of(a, ready) },
                                      .fabric = CLIQUE,
                                      .seat = &seat,
                                      .joined = true };
}

static struct formed_seat one(struct arena *a, struct seated_facts s, struct formation *ret) {
        seated_make(&s, 1, "driver compute-domain-agent", 1000, a, ret);
        assert_int_equal(ret->n_members, 1);
        return ret->members[0];
}

static void a_node_is_as_its_agent_says(void **state) {
        struct arena *a = arena_new(4096);
        struct formation f;
        struct formed_seat m = one(a, joined(a, true), &f);
        assert_int_equal(m.why, FORMATION_READY);
        assert_true(m.listed && m.wanted);
        assert_int_equal(m.seat.index, 3);
        assert_int_equal(m.written, 3);
        assert_string_equal(m.seat.ip, "10.0.0.1");
        assert_int_equal(f.n_imex, 1);
        assert_int_equal(f.imex[0].n_listed, 1);
        m = one(a, joined(a, false), &f);
        assert_int_equal(m.why, FORMATION_STARTING);
        assert_string_equal(m.message, "IMEX daemon is STARTING");
        struct seated_facts s = joined(a, true);
        s.node.node = node_of(a, false);
        assert_int_equal(one(a, s, &f).why, FORMATION_LOST);
        arena_free(a);
}

static void what_a_node_waits_for_is_said(void **state) {
        struct arena *a = arena_new(4096);
        struct formation f;
        struct seated_facts s = joined(a, true);
        s.joined = false;
        assert_string_equal(one(a, s, &f).message, "IMEX agent Pod agent-1 has not joined yet");
        struct pod waits = *s.node.pod;
        waits.reason = "no IMEX domain wants this node";
        s.node.pod = &waits;
        assert_string_equal(one(a, s, &f).message, "IMEX agent Pod agent-1 has not joined yet");
        waits.reason = "trying again";
        s.told = true;
        assert_string_equal(one(a, s, &f).message, "IMEX agent Pod agent-1 has not joined yet: trying again");
        s.busy = true;
        assert_string_equal(one(a, s, &f).message,
                            "IMEX agent Pod agent-1 leaves another ComputeDomain first");
        s.busy = false;
        s.seat = NULL;
        s.full = true;
        assert_int_equal(one(a, s, &f).why, FORMATION_FULL);
        s.full = false;
        s.node.pod = NULL;
        assert_string_equal(one(a, s, &f).message, "no IMEX agent on the node yet");
        assert_string_equal(f.hint, "driver compute-domain-agent");
        s.node.held_by = "another ComputeDomain";
        assert_int_equal(one(a, s, &f).why, FORMATION_HELD);
        s.node.clique = NULL;
        s.fabric = NULL;
        assert_false(one(a, s, &f).listed);
        arena_free(a);
}

static void a_node_without_a_fabric_needs_no_agent(void **state) {
        struct arena *a = arena_new(4096);
        struct formation f;
        struct seated_facts s = {
                .node = { .name = "n1", .node = node_of(a, true), .wanted = true, .clique = "" }
        };
        struct formed_seat m = one(a, s, &f);
        assert_int_equal(m.why, FORMATION_READY);
        assert_true(m.listed);
        assert_int_equal(f.n_imex, 0);
        arena_free(a);
}

static void who_leaves_is_not_listed_any_more(void **state) {
        struct arena *a = arena_new(4096);
        struct formation f;
        struct seated_facts s = joined(a, true);
        s.leaving = true;
        s.node.wanted = false;
        struct formed_seat m = one(a, s, &f);
        assert_int_equal(m.why, FORMATION_LEAVING);
        assert_false(m.listed);
        s.node.wanted = true; /* it is taken back */
        assert_int_equal(one(a, s, &f).why, FORMATION_READY);
        arena_free(a);
}

static void the_status_says_what_it_says_of_daemon_pods(void **state) {
        struct arena *a = arena_new(4096);
        const struct compute_domain cd = { .o.meta = { .ns = "w", .name = "d", .uid = "u" }, .num_nodes = 1 };
        const struct verdict_problem none = { 0 };
        struct formation f;
        struct verdict v;
        one(a, joined(a, true), &f);
        verdict_make(&cd, &f, &none, true, 1000, a, &v);
        assert_string_equal(v.status, "Ready");
        assert_string_equal(v.conditions[0].message, "The only node is ready");
        assert_string_equal(v.conditions[1].reason, "AllConnected");
        assert_int_equal(v.cliques, 1);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_is_as_its_agent_says),
                cmocka_unit_test(what_a_node_waits_for_is_said),
                cmocka_unit_test(a_node_without_a_fabric_needs_no_agent),
                cmocka_unit_test(who_leaves_is_not_listed_any_more),
                cmocka_unit_test(the_status_says_what_it_says_of_daemon_pods),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
