/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "rules/membership.h"
#include "rules/message.h"
#include "rules/verdict.h"

static const struct fabric_assignment active = { .node = "n1", .index = 3, .epoch = 7 },
                                      leaving = { .node = "n1", .index = 3, .epoch = 7, .state = "Leaving" };

/* A node whose daemon has joined. */
static struct member_facts joined(struct arena *a, bool ready) {
        return (struct member_facts){ .name = "n1",
                                      .node = fake_node(a, "n1", true),
                                      .wanted = true,
                                      .clique = CLIQUE_1,
                                      .pod = fake_daemon(a, "n1", "10.0.0.1", CLIQUE_1, ready),
                                      .fabric = CLIQUE_1,
                                      .assignment = &active,
                                      .joined = true };
}

static struct member one(struct arena *a, struct member_facts f, struct membership *ret) {
        membership_make(&f, 1, a, ret);
        assert_int_equal(ret->n_members, 1);
        return ret->members[0];
}

/* failure: a node joins -> its status is exactly what its daemon reports */
static void a_node_has_the_state_that_its_daemon_reports(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member m = one(a, joined(a, true), &all);
        assert_int_equal(m.why, MEMBER_READY);
        assert_true(m.listed && m.wanted);
        assert_int_equal(m.entry.index, 3);
        assert_int_equal(m.peers_connected, 9);
        assert_string_equal(m.entry.ip, "10.0.0.1");
        assert_string_equal(m.entry.status, "Ready");
        assert_int_equal(all.n_cliques, 1);
        assert_int_equal(membership_clique(&all, CLIQUE_1)->n_listed, 1);
        assert_null(membership_clique(&all, CLIQUE_2));
        m = one(a, joined(a, false), &all);
        assert_int_equal(m.why, MEMBER_STARTING);
        assert_string_equal(m.message, "IMEX daemon is STARTING");
        assert_string_equal(m.entry.status, "NotReady");
        arena_free(a);
}

static void a_node_that_does_not_answer_is_lost(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        f.node = fake_node(a, "n1", false);
        assert_int_equal(one(a, f, &all).why, MEMBER_LOST);
        f.node = NULL;
        assert_int_equal(one(a, f, &all).why, MEMBER_LOST);
        assert_true(one(a, f, &all).listed); /* its index is kept */
        f = joined(a, true);
        struct condition ready = { .type = "Ready", .status = "False", .reason = "NodeNotReady" };
        struct pod pod = *f.pod;
        pod.conditions = &ready;
        pod.n_conditions = 1;
        f.pod = &pod;
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1 is not reachable");
        assert_int_equal(one(a, f, &all).why, MEMBER_LOST);
        arena_free(a);
}

/* failure: a daemon fails -> the ComputeDomain reports its reason */
static void a_failing_daemon_is_reported(void **state) {
        struct pod_container_why why = { .reason = "CrashLoopBackOff", .message = "back-off 5m0s" };
        struct pod_container container = { .waiting = &why };
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        struct pod pod = *f.pod;
        f.pod = &pod;
        pod.containers = &container;
        pod.n_containers = 1;
        for (int joins = 0; joins < 2; joins++) {
                f.joined = joins;
                assert_int_equal(one(a, f, &all).why, MEMBER_FAILING);
                assert_string_equal(
                        one(a, f, &all).message,
                        "daemon Pod d-n1: CrashLoopBackOff; kubectl -n driver logs --previous d-n1 "
                        "shows why it exits");
        }
        why = (struct pod_container_why){ .reason = "ErrImagePull", .message = "no such image" };
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1: ErrImagePull: no such image");
        why.reason = "ContainerCreating";
        assert_int_equal(one(a, f, &all).why, MEMBER_READY);
        pod.ready = "false";
        pod.state = "BACKOFF";
        pod.reason = "it ended with status 1";
        assert_int_equal(one(a, f, &all).why, MEMBER_FAILING);
        assert_string_equal(one(a, f, &all).message, "IMEX daemon is BACKOFF: it ended with status 1");
        pod.state = "STARTING";
        pod.awaited = "n2";
        assert_int_equal(one(a, f, &all).why, MEMBER_FAILING);
        pod = *joined(a, true).pod;
        f.clique = CLIQUE_2;
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1 reports clique ID " CLIQUE_1
                                                     ", but the node's ResourceSlice has " CLIQUE_2);
        arena_free(a);
}

/* A drain, an upgrade or a mistake may delete its Pod days before it ends. */
static void a_terminating_daemon_continues_to_serve(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        struct pod ending = *f.pod;
        ending.o.meta.deleted = 900;
        f.pod = &ending;
        assert_int_equal(one(a, f, &all).why, MEMBER_READY);
        ending.ready = "false";
        ending.state = "STARTING";
        assert_int_equal(one(a, f, &all).why, MEMBER_STARTING);
        assert_string_equal(one(a, f, &all).message, "IMEX daemon is STARTING");
        arena_free(a);
}

/* Its present report is from before the boot, and does not count. */
/* failure: a daemon reports another boot than its Node -> it gets no assignment, and the status names both */
static void a_daemon_that_reports_another_boot_is_not_ready(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        struct node node = *f.node;
        node.boot_id = "22222222-2222-4222-8222-222222222222";
        f.node = &node;
        f.other_boot = "11111111-1111-4111-8111-111111111111";
        for (int joins = 0; joins < 2; joins++) {
                f.joined = joins;
                struct member m = one(a, f, &all);
                assert_int_equal(m.why, MEMBER_STARTING);
                assert_non_null(
                        strstr(m.message,
                               "daemon Pod d-n1 has not reported since the Node booted (it reports boot ID "
                               "11111111-1111-4111-8111-111111111111, and the Node "
                               "22222222-2222-4222-8222-222222222222). If this persists, delete the Pod"));
        }
        struct pod_container_why why = { .reason = "CrashLoopBackOff" };
        struct pod_container container = { .waiting = &why };
        struct pod pod = *f.pod;
        pod.containers = &container;
        pod.n_containers = 1;
        f.pod = &pod;
        assert_int_equal(one(a, f, &all).why, MEMBER_FAILING);
        arena_free(a);
}

/* failure: a node has not joined -> the ComputeDomain reports what it waits for */
static void a_node_that_has_not_joined_reports_what_it_waits_for(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        f.joined = false;
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1 has not joined yet");
        struct pod waits = *f.pod;
        waits.reason = "no IMEX domain wants this node";
        f.pod = &waits;
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1 has not joined yet");
        waits.reason = "trying again";
        f.seen = true;
        assert_string_equal(one(a, f, &all).message, "daemon Pod d-n1 has not joined yet: trying again");
        f.busy = true;
        assert_string_equal(one(a, f, &all).message,
                            "daemon Pod d-n1 must leave another ComputeDomain first");
        f.busy = false;
        f.assignment = NULL;
        f.full = true;
        assert_int_equal(one(a, f, &all).why, MEMBER_FULL);
        f.full = false;
        struct member m = one(a, f, &all);
        assert_false(m.listed); /* it has no index */
        assert_string_equal(m.entry.ip, "");
        assert_int_equal(all.n_cliques, 0);
        const struct fabric_assignment first = { .node = "n1", .index = 0, .epoch = 7 };
        f.assignment = &first;
        m = one(a, f, &all);
        assert_true(m.listed);
        assert_string_equal(m.entry.ip, "10.0.0.1");
        assert_int_equal(membership_clique(&all, CLIQUE_1)->n_listed, 1);
        f.assignment = NULL;
        f.pod = NULL;
        assert_string_equal(one(a, f, &all).message, "no daemon Pod on the node yet");
        assert_true(all.no_daemon);
        f.occupied = true;
        assert_int_equal(one(a, f, &all).why, MEMBER_OCCUPIED);
        f.clique = f.fabric = NULL;
        assert_string_equal(one(a, f, &all).message, "its ResourceSlice does not state a clique ID yet");
        assert_false(one(a, f, &all).listed);
        arena_free(a);
}

static void a_node_without_a_partition_needs_no_daemon(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member m =
                one(a,
                    (struct member_facts){
                            .name = "n1", .node = fake_node(a, "n1", true), .wanted = true, .clique = "" },
                    &all);
        assert_int_equal(m.why, MEMBER_READY);
        assert_true(m.listed);
        assert_int_equal(m.entry.index, -1);
        assert_int_equal(all.n_cliques, 0);
        arena_free(a);
}

static void nodes_are_counted_by_their_partition(void **state) {
        static const char *const names[] = { "n1", "n2", "n3" }, *const cliques[] = { CLIQUE_2, CLIQUE_1,
                                                                                      CLIQUE_2 };
        struct arena *a = arena_new(16384);
        struct member_facts f[ARRAY_LEN(names)];
        struct membership all;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                f[i] = joined(a, true);
                f[i].name = names[i];
                f[i].node = fake_node(a, names[i], true);
                f[i].pod = fake_daemon(a, names[i], "10.0.0.1", cliques[i], true);
                f[i].clique = f[i].fabric = cliques[i];
        }
        membership_make(f, ARRAY_LEN(f), a, &all);
        assert_int_equal(all.n_cliques, 2);
        assert_int_equal(membership_clique(&all, CLIQUE_1)->n_listed, 1);
        assert_int_equal(membership_clique(&all, CLIQUE_2)->n_listed, 2);
        arena_free(a);
}

static void a_node_that_leaves_is_not_listed_any_more(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        f.assignment = &leaving;
        f.wanted = false;
        struct member m = one(a, f, &all);
        assert_int_equal(m.why, MEMBER_LEAVING);
        assert_false(m.listed);
        assert_int_equal(membership_clique(&all, CLIQUE_1)->n_listed, 0);
        f.wanted = true; /* a claim returns */
        assert_int_equal(one(a, f, &all).why, MEMBER_READY);
        arena_free(a);
}

/* failure: the report of a daemon alone brings a node into a ComputeDomain -> it is no member [tenants] */
static void a_node_without_a_claim_and_an_address_is_no_member(void **state) {
        struct arena *a = arena_new(4096);
        struct membership all;
        struct member_facts f = joined(a, true);
        struct fabric_assignment shown = active;
        f.wanted = false;
        struct member m = one(a, f, &all);
        assert_int_equal(m.why, MEMBER_LEAVING);
        assert_false(m.listed);
        assert_int_equal(membership_clique(&all, CLIQUE_1)->n_listed, 0);
        shown.ip = "10.0.0.1"; /* its claim has just been deleted */
        f.assignment = &shown;
        assert_int_equal(one(a, f, &all).why, MEMBER_READY);
        f.wanted = true; /* the other nodes do not see its address yet */
        shown.ip = "";
        assert_int_equal(one(a, f, &all).why, MEMBER_READY);
        arena_free(a);
}

/* failure: a member changes -> the status of the ComputeDomain follows */
static void the_status_follows_the_members(void **state) {
        struct arena *a = arena_new(4096);
        const struct compute_domain cd = { .o.meta = { .ns = "w", .name = "d", .uid = "u" }, .num_nodes = 1 };
        const struct verdict_problem none = { 0 };
        struct membership all;
        struct verdict v;
        struct member_facts f = joined(a, true);
        one(a, f, &all);
        verdict_make(&(struct verdict_input){ &cd, none, true, 1000 }, &all, a, &v);
        assert_string_equal(v.status, "Ready");
        assert_string_equal(v.conditions[0].message, "The only node is ready");
        assert_string_equal(v.conditions[1].reason, "AllConnected");
        assert_int_equal(v.cliques, 1);
        f.pod = NULL;
        f.joined = false;
        one(a, f, &all);
        verdict_make(&(struct verdict_input){ &cd, none, true, 1000 }, &all, a, &v);
        assert_non_null(
                strstr(v.conditions[0].message,
                       "kubectl describe daemonset -A -l app.kubernetes.io/component=compute-domain-daemon"));
        arena_free(a);
}

/* ---- formed by the Go driver ---- */

#define ENTRY(node, status)                                                                                  \
        "{'nodeName':'" node "','ipAddress':'10.0.0.7','cliqueID':'" CLIQUE_1                                \
        "','index':1,'status':'" status "'}"
#define CLIQUE_OF(entries) "{'metadata':{'name':'c','uid':'c','resourceVersion':'1'},'daemons':[" entries "]}"

/* failure: a ComputeDomain is of the Go driver -> its nodes are the entries of its cliques [go] */
static void the_nodes_of_the_go_driver_are_the_entries_of_its_cliques(void **state) {
        struct arena *a = arena_new(4096);
        const struct clique *cliques[] = {
                fake_clique_json(a, CLIQUE_OF(ENTRY("n3", "NotReady") "," ENTRY("n1", "Ready"))),
                fake_clique_json(a, CLIQUE_OF(ENTRY("n2", "Ready") "," ENTRY("n1", "Ready")))
        };
        const struct pod *pods[7];
        const struct compute_domain cd = { .o.meta.uid = "u" };
        struct go_facts f = { .cd = &cd, .cliques = cliques, .n_cliques = 2, .pods = pods, .n_pods = 7 };
        struct membership all;
        struct verdict v;
        for (size_t i = 0; i < 7; i++)
                pods[i] = fake_daemon(a, message_of(a, "n%zu", i), "", CLIQUE_1, true);
        membership_make_go(&f, a, &all);
        assert_int_equal(all.n_members, 3);
        assert_string_equal(all.members[0].entry.node, "n1");
        assert_string_equal(all.members[2].entry.node, "n3");
        assert_int_equal(all.members[0].why, MEMBER_READY);
        assert_int_equal(all.members[2].why, MEMBER_STARTING);
        assert_string_equal(all.members[0].message, "");
        assert_string_equal(all.members[2].message, "the daemon of the Go driver on it is not ready");
        assert_non_null(strstr(all.go, "run on: n0, n1, n2, n3, n4 and 2 more. "));
        verdict_make(&(struct verdict_input){ &cd, { 0 }, true, 1000 }, &all, a, &v);
        assert_string_equal(v.status, "NotReady");
        assert_string_equal(v.conditions[0].reason, "FormedByGoDriver");
        assert_int_equal(v.n_conditions, 1);
        assert_int_equal(v.n_nodes, 3);
        assert_int_equal(v.nodes_ready, 2);
        assert_true(v.has_nodes);
        verdict_make(&(struct verdict_input){ &cd, { "WriteFailed", "why" }, true, 1000 }, &all, a, &v);
        assert_string_equal(v.conditions[0].reason, "WriteFailed");
        arena_free(a);
}

static void without_cliques_the_go_daemons_write_status_nodes(void **state) {
        struct arena *a = arena_new(4096);
        struct domain_node nodes[] = { { "n2", NULL, NULL, "Ready", 0 }, { "n1", "", "", "Ready", 0 } };
        const struct compute_domain cd = { .o.meta.uid = "u", .nodes = nodes, .n_nodes = 2 };
        const struct go_facts f = { .cd = &cd };
        struct membership all;
        struct verdict v;
        membership_make_go(&f, a, &all);
        assert_non_null(strstr(all.go, "run on: no node. "));
        assert_int_equal(all.n_members, 2);
        assert_string_equal(all.members[0].entry.node, "n1");
        verdict_make(&(struct verdict_input){ &cd, { 0 }, true, 1000 }, &all, a, &v);
        assert_string_equal(v.status, "Ready");
        assert_false(v.has_nodes);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_has_the_state_that_its_daemon_reports),
                cmocka_unit_test(a_node_that_does_not_answer_is_lost),
                cmocka_unit_test(a_failing_daemon_is_reported),
                cmocka_unit_test(a_terminating_daemon_continues_to_serve),
                cmocka_unit_test(a_daemon_that_reports_another_boot_is_not_ready),
                cmocka_unit_test(a_node_that_has_not_joined_reports_what_it_waits_for),
                cmocka_unit_test(a_node_without_a_partition_needs_no_daemon),
                cmocka_unit_test(nodes_are_counted_by_their_partition),
                cmocka_unit_test(a_node_that_leaves_is_not_listed_any_more),
                cmocka_unit_test(a_node_without_a_claim_and_an_address_is_no_member),
                cmocka_unit_test(the_status_follows_the_members),
                cmocka_unit_test(the_nodes_of_the_go_driver_are_the_entries_of_its_cliques),
                cmocka_unit_test(without_cliques_the_go_daemons_write_status_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
