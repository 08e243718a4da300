/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why` that depend on a single node: a pod with a node selector, the pod that still has the
 * node's channel, and pods that are new or being deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "cli/command.h"
#include "cli/command_table.h"
#include "cli/tool_kinds.h"
#include "world/cluster.h"

static struct cluster *cluster;

static int set_up(void **state) {
        (void)state;
        cluster = cluster_new();
        options.output = "json";
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        options.output = "table";
        cluster_free(cluster);
        return 0;
}

/* Runs `why NAME`, and returns the exit code. The answer must contain the text. */
static int why_has(const char *name, const char *text) {
        struct cli c = {
                .a = arena_new(1024), .args = &name, .n_args = 1, .source = cluster_source(cluster)
        };
        c.t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX) };
        view_init(&c.v, c.source);
        int r = command_why.run(&c);
        if (!strstr(buf_str(&c.t.out), text))
                fail_msg("no '%s' in: %s", text, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
        return r;
}

/* ---- node selectors ---- */

#define ON(label, value) ",'nodeSelector':{'" label "':'" value "'}"
#define CANNOT                                                                                               \
        "0/7 nodes are available: 1 cannot allocate all claims, 6 node(s) didn\\u0027t match Pod\\u0027s "   \
        "node affinity/selector."

static void pod_selects(const char *selector) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0",
                                                        .claim = "train-0.channel",
                                                        .status = CLUSTER_UNSCHEDULED(CANNOT),
                                                        .more = selector });
}

static void label_node(const char *name, const char *clique) {
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s','nvidia.com/gpu.present':"
                "'true','" GPU_CLIQUE_LABEL "':'%s'}},'status':{'conditions':[{'type':'Ready','status':"
                "'True'}]}}",
                name, name, clique);
}

static void a_selected_node_that_withholds_its_channel_is_the_cause(void **state) {
        (void)state;
        label_node("a2", CLUSTER_A);
        cluster_withhold(cluster, "a2");
        cluster_event(cluster, "Node", NULL, "a2", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (FabricError): 2 of 4 GPUs are not "
                      "registered");
        pod_selects(ON("kubernetes.io/hostname", "a2"));
        assert_int_equal(why_has("train-0", "\"cause\":\"a2 withholds the channel: FabricError: 2 of 4 GPUs "
                                            "are not registered\""),
                         COMMAND_PROBLEM);
}

static void a_selected_node_in_use_is_the_cause_while_others_are_free(void **state) {
        (void)state;
        label_node("a2", CLUSTER_A);
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001", "");
        cluster_claim(cluster, "team-a", "x.channel", "aa000000-0000-4000-8000-000000000001", "a2");
        pod_selects(ON("kubernetes.io/hostname", "a2"));
        assert_int_equal(
                why_has("train-0", "\"cause\":\"no free channel: 1 of 1 on a2 in use (1 team-a/llm)\""),
                COMMAND_PROBLEM);
}

static void a_selected_node_without_a_plugin_is_the_cause(void **state) {
        (void)state;
        label_node("a2", CLUSTER_A);
        cluster_withhold(cluster, "a2");
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a2");
        pod_selects(ON("kubernetes.io/hostname", "a2"));
        assert_int_equal(why_has("train-0", "\"cause\":\"no plugin runs on a2\""), COMMAND_PROBLEM);
        /* The plugin of the Go driver, and a pod of `kubectl compute-domains test`, run the same program. */
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'go','name':'go','labels':{}},'spec':{'nodeName':'a2','"
                "containers':[{'name':'compute-domains','image':'nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.0"
                "','command':['compute-domain-kubelet-plugin']}]}}");
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-a','name':'test','labels':{}},'spec':{'nodeName':'a2','"
                    "containers':[{'name':'channel','image':'registry.example/compute-domains:v0.1.0','"
                    "command':['compute-domain-kubelet-plugin','channels','--wait']}]}}");
        assert_int_equal(why_has("train-0", "\"cause\":\"no plugin runs on a2\""), COMMAND_PROBLEM);
}

static void a_selector_that_matches_no_gpu_node_is_the_cause(void **state) {
        (void)state;
        pod_selects(ON("example.com/pool", "gb200"));
        assert_int_equal(why_has("train-0",
                                 "\"cause\":\"the pod may run on no GPU node: 6 without the labels of its "
                                 "nodeSelector or node affinity\""),
                         COMMAND_PROBLEM);
}

#define NODE_AFFINITY(key, op, value)                                                                        \
        ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms'" \
        ":[{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" value "]}]}]}}}"

static void nodes_outside_of_the_node_affinity_do_not_count(void **state) {
        (void)state;
        label_node("a2", CLUSTER_A);
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001", "");
        cluster_claim(cluster, "team-a", "x.channel", "aa000000-0000-4000-8000-000000000001", "a2");
        pod_selects(NODE_AFFINITY("kubernetes.io/hostname", "In", "'a2','z'"));
        assert_int_equal(
                why_has("train-0", "\"cause\":\"no free channel: 1 of 1 on a2 in use (1 team-a/llm)\""),
                COMMAND_PROBLEM);
}

static void taint_node(const char *name, const char *clique, const char *value) {
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'%s','labels':{'nvidia.com/gpu.present':'true','" GPU_CLIQUE_LABEL
                "':'%s'}},'spec':{'taints':[{'key':'team','value':'%s','effect':'NoSchedule'}]},'status':{"
                "'conditions':[{'type':'Ready','status':'True'}]}}",
                name, clique, value);
}

/* b0 and b1 have a free channel. */
static void nodes_with_a_taint_that_the_pod_does_not_tolerate_do_not_count(void **state) {
        (void)state;
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001", "");
        for (const char *p = "a0a1a2a3"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                taint_node(node, CLUSTER_A, "b");
                cluster_claim(cluster, "team-a", node, "aa000000-0000-4000-8000-000000000001", node);
        }
        taint_node("b0", CLUSTER_B, "a");
        taint_node("b1", CLUSTER_B, "a");
        pod_selects(",'tolerations':[{'key':'team','operator':'Equal','value':'b','effect':'NoSchedule'}]");
        assert_int_equal(
                why_has("train-0",
                        "\"cause\":\"no free channel: 4 of 4 on the allowed nodes in use (4 team-a/llm)\""),
                COMMAND_PROBLEM);
        pod_selects(",'tolerations':[{'key':'team','value':'c'}]");
        assert_int_equal(why_has("train-0",
                                 "\"cause\":\"the pod may run on no GPU node: 6 with a taint that it "
                                 "does not tolerate (team=b:NoSchedule)\""),
                         COMMAND_PROBLEM);
}

/* The pods of the workload run on rack-a, and the pod must run there, too. */
static void a_rack_whose_nodes_the_pod_may_not_use_is_not_recommended(void **state) {
        (void)state;
        for (int tainted = 0; tainted < 2; tainted++) {
                for (const char *p = "a0a1a2a3"; *p; p += 2) {
                        char node[3] = { p[0], p[1], 0 };
                        cluster_claim(cluster, "team-b", node, CLUSTER_BENCH, node);
                }
                cluster_put_pod(cluster,
                                &(struct cluster_pod){ .name = "train-1", .claim = "a1", .node = "a1" });
                if (tainted) {
                        taint_node("b0", CLUSTER_B, "a");
                        taint_node("b1", CLUSTER_B, "a");
                }
                pod_selects(",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                            "'topologyKey':'" GPU_CLIQUE_LABEL "','labelSelector':{}}]}}");
                assert_int_equal(why_has("train-0", tainted ? "in use: 4 team-b/bench)\""
                                                            : "in use: 4 team-b/bench); rack-b has 2 free\""),
                                 COMMAND_PROBLEM);
        }
}

/* ---- a pod that has just got its node ---- */

#define MEMBER(n, i) "{'name':'" n "','cliqueID':'" CLUSTER_A "','index':" i ",'status':'NotReady'}"

static void pod_is_new(const char *ready) {
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-b','name':'bench','uid':'" CLUSTER_BENCH
                    "'},'spec':{'numNodes':0,'channel':{'resourceClaimTemplate':{'name':'bench-channel'}}},'"
                    "status':{'status':'NotReady','nodesReady':0,'nodesWanted':2,'nodes':[" MEMBER(
                            "a0",
                            "0") "," MEMBER("a1",
                                            "1") "],'conditions':[{'type':'Ready','status':'False','reason':'"
                                                 "NodesNotReady','message':'0 of 2 nodes are ready. %s'}]}}",
                    ready);
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster,
                        &(struct cluster_pod){ .name = "train-0", .claim = "train-0.channel", .node = "a0" });
        cluster_confine(cluster, "team-b");
}

/* The kubelet writes its first Event after 45 seconds. */
static void a_user_learns_from_the_condition_ready_that_imex_waits_for_peers(void **state) {
        (void)state;
        pod_is_new("a0: IMEX daemon is STARTING: nvidia-imex is WAITING_FOR_PEERS (it waits for the other "
                   "nodes of the domain); a1: no daemon Pod on the node yet");
        assert_int_equal(why_has("train-0", "{\"reason\":\"waiting-for-peers\",\"possible\":false"),
                         COMMAND_PROBLEM);
}

static void the_state_of_another_node_is_not_the_cause(void **state) {
        (void)state;
        pod_is_new("a0: no daemon Pod on the node yet; a1: IMEX daemon is STARTING: nvidia-imex is "
                   "WAITING_FOR_PEERS (it waits for the other nodes of the domain)");
        assert_int_equal(why_has("train-0", "{\"reason\":\"NodesNotReady\",\"possible\":false"),
                         COMMAND_PROBLEM);
}

static void a_node_that_the_condition_ready_does_not_name_is_in_the_list(void **state) {
        (void)state;
        pod_is_new("b0: no daemon Pod on the node yet; and 9 more");
        assert_int_equal(why_has("train-0", "\"cause\":\"ComputeDomain bench: a0 has joined and is not ready "
                                            "yet. 0 of 2 nodes are ready. b0: no daemon Pod"),
                         COMMAND_PROBLEM);
}

/* ---- the pod that still has the channel ---- */

#define ELSEWHERE                                                                                            \
        "Failed to prepare dynamic resources: a0: device \\u0027channel-0\\u0027 is still held by a claim "  \
        "of "                                                                                                \
        "another namespace: a node has one channel for one pod at a time"

static void pod_is_held_up(void) {
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001", "");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-a','name':'old','deletionTimestamp':'2026-11-27T12:05:00Z',"
                "'deletionGracePeriodSeconds':600},'spec':{'nodeName':'a0','containers':[]},'status':{"
                "'phase':'Running'}}");
        cluster_claim(cluster, "team-a", "old.channel", "aa000000-0000-4000-8000-000000000001", "a0");
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster,
                        &(struct cluster_pod){ .name = "train-0", .claim = "train-0.channel", .node = "a0" });
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources", ELSEWHERE);
}

/* The Event does not name it. */
static void an_admin_sees_the_pod_of_another_namespace(void **state) {
        (void)state;
        pod_is_held_up();
        assert_int_equal(why_has("train-0", "\"cause\":\"the channel of a0 is still held by team-a/old "
                                            "(Terminating for 5m)\",\"fix\":\"wait until pod team-a/old "
                                            "ends: 5m of its grace period are left\""),
                         COMMAND_PROBLEM);
}

static void a_user_does_not_see_the_pod_of_another_namespace(void **state) {
        (void)state;
        pod_is_held_up();
        cluster_confine(cluster, "team-b");
        assert_int_equal(why_has("train-0", "is still held by a claim of another namespace"),
                         COMMAND_PROBLEM);
}

/* ---- times ---- */

static void a_pod_in_its_grace_period_has_time_left(void **state) {
        (void)state;
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','deletionTimestamp':'2026-11-27T12:05:"
                "00Z','deletionGracePeriodSeconds':600},'spec':{'nodeName':'a0','containers':[]},"
                "'status':{'phase':'Running'}}");
        assert_int_equal(why_has("train-0", "Its containers may run for up to 5m more"), COMMAND_FINE);
        assert_int_equal(why_has("train-0", "\"state\":\"Terminating for 5m\""), COMMAND_FINE);
}

static void pod_is_stuck(void) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','deletionTimestamp':'2026-11-27T11:00:"
                "00Z'},'spec':{'nodeName':'a0','containers':[{'name':'main'}],'resourceClaims':[{'name':"
                "'channel','resourceClaimTemplateName':'bench-channel'}]},'status':{'phase':'Running',"
                "'resourceClaimStatuses':[{'name':'channel','resourceClaimName':'train-0.channel'}]}}");
}

static void node_is(const char *ready) {
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-kubelet-plugin-a0'},'spec':{'nodeName':'a0','containers':[{"
                "'name':'compute-domains','command':['compute-domain-kubelet-plugin']}]},'status':{'phase':"
                "'Running','conditions':[{'type':'Ready','status':'False'}]}}");
        cluster_put(cluster, &kube_nodes,
                    "{'metadata':{'name':'a0','labels':{'" GPU_PRESENT_LABEL
                    "':'true'}},'spec':{},'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                    ready);
}

/* The API server marks all Pods of such a node as not Ready, so the plugin's Pod proves nothing. */
static void a_pod_that_a_lost_node_does_not_end_is_explained_by_the_node(void **state) {
        (void)state;
        pod_is_stuck();
        node_is("Unknown");
        assert_int_equal(why_has("train-0", "\"reason\":\"NodeDown\""), COMMAND_PROBLEM);
        assert_int_equal(why_has("train-0", "node.kubernetes.io/out-of-service"), COMMAND_PROBLEM);
        cluster_confine(cluster, "team-b");
        assert_int_equal(why_has("train-0", "\"fine\":false"), COMMAND_DENIED);
        assert_int_equal(why_has("train-0", "{\"what\":\"nodes\",\"why\":\"may not be read\"}"),
                         COMMAND_DENIED);
}

/* Its kubelet reports and can end pods, so the plugin is the cause. */
static void a_node_with_a_problem_is_not_lost(void **state) {
        (void)state;
        pod_is_stuck();
        node_is("False");
        assert_int_equal(why_has("train-0", "\"reason\":\"NoPlugin\""), COMMAND_PROBLEM);
}

/* A claim of team-b/train-0 that this driver has allocated on a node. */
static void put_claim_of(const char *driver, const char *node) {
        cluster_put(
                cluster, &kube_resource_claims,
                "{'metadata':{'namespace':'team-b','name':'train-0.channel'},'spec':{'devices':{'requests':"
                "[{'name':'x','exactly':{'deviceClassName':'%s'}}]}},'status':{'allocation':{'devices':{"
                "'results':[{'request':'x','driver':'%s','pool':'%s','device':'x-0'}]}}}}",
                driver, driver, node);
}

/* train-0 on a node, with such a claim. `deleted` is added to its metadata. */
static void put_pod_with_claim(const char *node, const char *deleted) {
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'train-0'%s},'spec':{'nodeName':'%s',"
                    "'containers':[{'name':'main'}],'resourceClaims':[{'name':'x',"
                    "'resourceClaimName':'train-0.channel'}]},'status':{'phase':'Pending'}}",
                    deleted, node);
}

#define STUCK ",'deletionTimestamp':'2026-11-27T11:00:00Z'"

/* failure: a pod with a claim of another driver does not end -> `why` names no plugin of this driver */
static void a_claim_of_another_driver_needs_no_plugin(void **state) {
        (void)state;
        cluster_put(cluster, &kube_nodes,
                    "{'metadata':{'name':'cpu-1'},'spec':{},'status':{'conditions':[{'type':'Ready','status':"
                    "'True'}]}}");
        put_pod_with_claim("cpu-1", STUCK);
        put_claim_of("nic.example.com", "cpu-1");
        assert_int_equal(why_has("train-0", "\"causes\":[]"), COMMAND_PROBLEM);
        put_claim_of(GPU_DRIVER, "cpu-1");
        assert_int_equal(why_has("train-0", "\"cause\":\"no plugin runs on cpu-1"), COMMAND_PROBLEM);
        put_claim_of(CD_DRIVER, "cpu-1");
        assert_int_equal(why_has("train-0", "\"cause\":\"no plugin runs on cpu-1"), COMMAND_PROBLEM);
}

/* failure: IMEX fails on the node of a pod without a channel -> `why` does not name IMEX as the cause */
static void a_pod_without_a_channel_does_not_wait_for_imex(void **state) {
        (void)state;
        cluster_daemon(cluster, "a0",
                       "'imex.resource.nvidia.com/state':'BACKOFF','imex.resource.nvidia.com/ready':'false',"
                       "'imex.resource.nvidia.com/reason':'another nvidia-imex on this node owns the "
                       "driver\\u0027s only IMEX session'",
                       NULL);
        put_pod_with_claim("a0", "");
        put_claim_of("nic.example.com", "a0");
        assert_int_equal(why_has("train-0", "\"cause\":\"no Event and no condition shows why"),
                         COMMAND_PROBLEM);
}

/* failure: the kubelet knows no plugin of the GPU driver -> `why` examines the plugin on the node */
static void a_gpu_driver_that_is_not_registered_is_searched_on_the_node(void **state) {
        (void)state;
        put_pod_with_claim("a0", "");
        put_claim_of(GPU_DRIVER, "a0");
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources",
                      "Failed to prepare dynamic resources: DRA driver " GPU_DRIVER " is not registered");
        assert_int_equal(why_has("train-0", "\"cause\":\"no plugin is registered with the kubelet of a0\""),
                         COMMAND_PROBLEM);
        node_is("True");
        assert_int_equal(why_has("train-0", "compute-domains-kubelet-plugin-a0 on a0 is not Ready"),
                         COMMAND_PROBLEM);
}

static void a_pod_that_does_not_end_for_an_unknown_reason_is_not_fine(void **state) {
        (void)state;
        pod_is_stuck();
        assert_int_equal(why_has("train-0", "\"fine\":false"), COMMAND_PROBLEM);
        assert_int_equal(why_has("train-0", "delay the deletion"), COMMAND_PROBLEM);
}

static void a_new_pod_without_a_cause_needs_the_objects_of_the_driver(void **state) {
        (void)state;
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','creationTimestamp':'2026-11-27T11:59:"
                "50Z'},'spec':{'nodeName':'a0','containers':[{'name':'main'}],'resourceClaims':[{'name':"
                "'channel','resourceClaimTemplateName':'bench-channel'}]},'status':{'phase':'Pending',"
                "'resourceClaimStatuses':[{'name':'channel','resourceClaimName':'train-0.channel'}]}}");
        cluster_confine(cluster, "team-b");
        assert_int_equal(why_has("train-0", "{\"what\":\"daemonsets of all namespaces\",\"why\":\"may not be "
                                            "read\"}"),
                         COMMAND_DENIED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_selected_node_that_withholds_its_channel_is_the_cause),
                T(a_selected_node_in_use_is_the_cause_while_others_are_free),
                T(a_selected_node_without_a_plugin_is_the_cause),
                T(a_selector_that_matches_no_gpu_node_is_the_cause),
                T(nodes_outside_of_the_node_affinity_do_not_count),
                T(nodes_with_a_taint_that_the_pod_does_not_tolerate_do_not_count),
                T(a_rack_whose_nodes_the_pod_may_not_use_is_not_recommended),
                T(a_user_learns_from_the_condition_ready_that_imex_waits_for_peers),
                T(the_state_of_another_node_is_not_the_cause),
                T(a_node_that_the_condition_ready_does_not_name_is_in_the_list),
                T(an_admin_sees_the_pod_of_another_namespace),
                T(a_user_does_not_see_the_pod_of_another_namespace),
                T(a_pod_in_its_grace_period_has_time_left),
                T(a_pod_that_a_lost_node_does_not_end_is_explained_by_the_node),
                T(a_node_with_a_problem_is_not_lost),
                T(a_claim_of_another_driver_needs_no_plugin),
                T(a_pod_without_a_channel_does_not_wait_for_imex),
                T(a_gpu_driver_that_is_not_registered_is_searched_on_the_node),
                T(a_pod_that_does_not_end_for_an_unknown_reason_is_not_fine),
                T(a_new_pod_without_a_cause_needs_the_objects_of_the_driver),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
