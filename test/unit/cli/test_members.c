/* SPDX-License-Identifier: Apache-2.0 */
/* The kubectl plugin and the controller describe the members of a ComputeDomain equally, from the same
 * objects: the plugin from lists, and the controller from its caches, which keep only a part of each object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/member_view.h"
#include "world/cached_members.h"
#include "world/cluster.h"

/* `expected` is "NODE: MESSAGE" of one member. */
static void compare_members(struct cluster *c, size_t n_expected, const char *expected) {
        size_t n;
        _cleanup_(buf_done) struct buf members = BUF_INIT(1 << 16);
        _cleanup_(freep) char *difference = NULL, *line = xasprintf("%s\n", expected);
        assert_int_equal(
                cached_members_compare(cluster_source(c), "team-b", "bench", &n, &members, &difference),
                CACHED_MEMBERS_EQUAL);
        assert_int_equal(n, n_expected);
        assert_non_null(strstr(buf_str(&members), line));
}

#define BOOT_ID "11111111-1111-4111-8111-111111111111"
#define FABRIC_UID "f0000000-0000-4000-8000-00000000000a"
#define REPORT(node, index, boot)                                                                            \
        "'imex.resource.nvidia.com/"                                                                         \
        "report':'{\\u0022claimUID\\u0022:\\u0022d0000000-0000-4000-8000-00000000000" index                  \
        "\\u0022,\\u0022bootID\\u0022:\\u0022" boot "\\u0022,\\u0022fabricUID\\u0022:\\u0022" FABRIC_UID     \
        "\\u0022,\\u0022assignment\\u0022:\\u0022" CLUSTER_A "/" CLUSTER_BENCH "/" index                     \
        "/1\\u0022,\\u0022seen\\u0022:1}'"
#define ASSIGNMENT(node, index, state) "{'node':'" node "','index':" index ",'epoch':1" state "}"

static void put_assignments(struct cluster *c, const char *assignments, int slots) {
        cluster_put(c, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                    "'},'rack':'rack-a','tableOf':'" CLUSTER_A
                    "','domains':[{'owner':{'kind':'ComputeDomain','namespace':'team-b','name':'bench','uid':"
                    "'" CLUSTER_BENCH
                    "'},'infix':'x','slots':%d,'port':28000,'assignments':[%s]}],'channels':[]}",
                    slots, assignments);
}

static void claim_nodes(struct cluster *c, const char *nodes) {
        for (const char *p = nodes; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 }, name[32];
                snprintf(name, sizeof name, "job-%s.channel", node);
                cluster_claim(c, "team-b", name, CLUSTER_BENCH, node);
        }
}

/* Ready, BACKOFF, an earlier boot, leaving, and without an assignment; and a claim of another namespace. */
static void lists_and_caches_give_the_same_members(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        claim_nodes(c, "a0a1a2b0");
        cluster_claim(c, "team-z", "other.channel", CLUSTER_BENCH, "b1");
        put_assignments(c,
                        ASSIGNMENT("a0", "0", "") "," ASSIGNMENT("a1", "1", "") "," ASSIGNMENT(
                                "a2", "2", "") "," ASSIGNMENT("a3", "3", ",'state':'Leaving'"),
                        18);
        cluster_daemon(c, "a0",
                       "'imex.resource.nvidia.com/state':'READY','imex.resource.nvidia.com/"
                       "ready':'true','imex.resource.nvidia.com/peers':'2/3'," REPORT("a0", "0", BOOT_ID),
                       NULL);
        cluster_daemon(
                c, "a1",
                "'imex.resource.nvidia.com/state':'BACKOFF','imex.resource.nvidia.com/"
                "ready':'false','imex.resource.nvidia.com/reason':'it broke'," REPORT("a1", "1", BOOT_ID),
                NULL);
        cluster_daemon(c, "a2", REPORT("a2", "2", "22222222-2222-4222-8222-222222222222"), NULL);
        compare_members(c, 5, "a1: IMEX daemon is BACKOFF: it broke");
        cluster_free(c);
}

static void a_full_domain_and_missing_objects_give_the_same_members(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        claim_nodes(c, "a0a1a2a3");
        put_assignments(c, ASSIGNMENT("a0", "0", ""), 1);
        cluster_remove(c, &kube_nodes, NULL, "a1");
        cluster_remove(c, &kube_resource_slices, NULL, "a2-compute-domain");
        cluster_daemon(c, "a3", "",
                       "'phase':'Running','containerStatuses':[{'name':'x','state':{'waiting':{'reason':'"
                       "CrashLoopBackOff'}}}]");
        compare_members(c, 4, "a2: its ResourceSlice does not state a clique ID yet");
        cluster_free(c);
}

static void without_a_complete_list_the_conditions_are_the_only_source(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        struct membership m;
        struct view v;
        claim_nodes(c, "a0");
        cluster_fail(c, &kube_resource_slices, ERR_RETRY, "timed out");
        view_init(&v, cluster_source(c));
        view_read(&v, VIEW_DOMAINS, NULL);
        assert_false(member_view_make(&v, view_find(&v, VIEW_DOMAINS, "team-b", "bench"), &m));
        view_done(&v);
        cluster_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_and_caches_give_the_same_members),
                cmocka_unit_test(a_full_domain_and_missing_objects_give_the_same_members),
                cmocka_unit_test(without_a_complete_list_the_conditions_are_the_only_source),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
