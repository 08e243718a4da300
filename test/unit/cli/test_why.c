/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why`. Each cause is provoked in a fake cluster. The whole answers are in test/unit/golden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/command_table.h"
#include "unit/golden.h"
#include "world/cluster.h"

static struct cluster *cluster;

static int set_up(void **state) {
        (void)state;
        cluster = cluster_new();
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        cluster_free(cluster);
        return 0;
}

/* Runs a command with one argument, and compares its output. Returns the exit code. */
static int run_golden(const struct command *command, const char *arg, const char *golden) {
        struct cli c = {
                .a = arena_new(1024), .args = &arg, .n_args = arg ? 1 : 0, .source = cluster_source(cluster)
        };
        c.t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX) };
        view_init(&c.v, c.source);
        int r = command->run(&c);
        golden_compare(golden, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
        return r;
}

#define WHY(arg, golden, code) assert_int_equal(run_golden(&command_why, arg, "cli-why-" golden ".txt"), code)
#define AFFINITY                                                                                             \
        ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':"      \
        "'" GPU_CLIQUE_LABEL "'}]}}"
#define RUNS                                                                                                 \
        ",'containerStatuses':[{'name':'main','state':{'running':{'startedAt':'2026-11-27T11:58:00Z'}}}],"   \
        "'conditions':[{'type':'Ready','status':'True'}]"
#define CANNOT "0/7 nodes are available: 7 cannot allocate all claims."

/* A pod that waits for a node, with an unallocated claim. */
static void pod_waits(const char *status, const char *more) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0",
                                                        .claim = "train-0.channel",
                                                        .status = status,
                                                        .more = more });
}

/* A pod on a0 whose claim the plugin does not prepare. */
static void pod_is_created(const char *message) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster,
                        &(struct cluster_pod){ .name = "train-0", .claim = "train-0.channel", .node = "a0" });
        if (message)
                cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources", message);
}

static void use_all(const char *ns, const char *uid, const char *nodes) {
        for (const char *p = nodes; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 }, name[32];
                snprintf(name, sizeof name, "job-%s.channel", node);
                cluster_claim(cluster, ns, name, uid, node);
        }
}

/* ---- the ten causes ---- */

/* 1 */
static void all_channels_in_use_are_counted_by_computedomain(void **state) {
        (void)state;
        cluster_domain(cluster, "team-a", "llm-70b", "aa000000-0000-4000-8000-000000000001", "");
        use_all("team-a", "aa000000-0000-4000-8000-000000000001", "a0a1a2a3");
        use_all("team-c", "cc000000-0000-4000-8000-000000000001", "b0b1");
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        WHY("train-0", "no-free-channel", COMMAND_PROBLEM);
}

/* 2 */
static void withheld_channels_are_explained_by_the_event_of_the_node(void **state) {
        (void)state;
        for (const char *p = "a0a1a2a3b0b1"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                cluster_withhold(cluster, node);
                cluster_event(cluster, "Node", NULL, node, "ComputeDomainDevicesWithheld",
                              "no IMEX channel or daemon is offered on this node (FabricError): 2 of 4 GPUs "
                              "are not registered with the NVLink fabric");
        }
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        WHY("train-0", "withheld", COMMAND_PROBLEM);
}

/* 3 */
static void a_refused_plugin_pod_is_the_cause_if_no_node_offers_a_channel(void **state) {
        (void)state;
        cluster_remove_all(cluster, &kube_resource_slices);
        cluster_remove_all(cluster, &kube_pods);
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':"
                    "[{'name':'x','command':['compute-domain-kubelet-plugin']}]}}},'status':{'"
                    "desiredNumberScheduled':6,'currentNumberScheduled':0}}");
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, "compute-domains-kubelet-plugin", "FailedCreate",
                      "Error creating: pods \\\"compute-domains-kubelet-plugin-x\\\" is forbidden: violates "
                      "PodSecurity \\\"baseline:latest\\\": privileged");
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        WHY("train-0", "no-plugin", COMMAND_PROBLEM);
}

/* 4 */
static void a_misspelt_claim_template_is_compared_with_those_that_exist(void **state) {
        (void)state;
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0", .template = "bentch-channel" });
        WHY("train-0", "template", COMMAND_PROBLEM);
}

/* 5 */
static void a_full_partition_of_the_other_pods_is_named_with_the_free_one(void **state) {
        (void)state;
        use_all("team-a", "aa000000-0000-4000-8000-000000000001", "a1a2a3");
        cluster_claim(cluster, "team-b", "train-1.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-1",
                                                        .claim = "train-1.channel",
                                                        .node = "a0",
                                                        .phase = "Running",
                                                        .status = RUNS });
        pod_waits(CLUSTER_UNSCHEDULED("0/7 nodes are available: 3 cannot allocate all claims, 2 node(s) "
                                      "didn\\u0027t match pod affinity rules."),
                  AFFINITY);
        WHY("train-0", "partition-full", COMMAND_PROBLEM);
}

/* 6 */
static void gpus_that_are_offered_twice_are_recognized_by_the_message(void **state) {
        (void)state;
        pod_waits(CLUSTER_UNSCHEDULED("nil or empty request mappings, no update of pod team-b/train-0 "
                                      "ExtendedResourceClaimStatus"),
                  NULL);
        WHY("train-0", "gpus-twice", COMMAND_PROBLEM);
}

static void free_channels_and_taken_gpus_are_distinguished(void **state) {
        (void)state;
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster,
                        &(struct cluster_pod){
                                .name = "train-0",
                                .claim = "train-0.channel",
                                .containers = "{'name':'main','resources':{'limits':{'nvidia.com/gpu':'4'},"
                                              "'claims':[{'name':'channel'}]}}",
                                .status = CLUSTER_UNSCHEDULED(CANNOT) });
        WHY("train-0", "gpus", COMMAND_PROBLEM);
}

static void a_taint_is_no_lack_of_gpus(void **state) {
        (void)state;
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster,
                        &(struct cluster_pod){
                                .name = "train-0",
                                .claim = "train-0.channel",
                                .containers = "{'name':'main','resources':{'limits':{'nvidia.com/gpu':'4'},"
                                              "'claims':[{'name':'channel'}]}}",
                                .status = CLUSTER_UNSCHEDULED(
                                        "0/7 nodes are available: 1 cannot allocate "
                                        "all claims, 6 node(s) had untolerated taint {x: y}.") });
        WHY("train-0", "taint", COMMAND_PROBLEM);
}

/* 7 */
static void imex_of_the_host_is_named_as_the_cause(void **state) {
        (void)state;
        cluster_daemon(cluster, "a0",
                       "'imex.resource.nvidia.com/state':'BACKOFF','imex.resource.nvidia.com/"
                       "ready':'false','imex.resource.nvidia.com/reason':'another nvidia-imex on this "
                       "node owns the driver\\u0027s only IMEX session'",
                       NULL);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','nodesReady':2,'nodesWanted':3,'nodes':[{'name':'a0','cliqueID':"
                       "'" CLUSTER_A "','index':2,'status':'NotReady'}]");
        pod_is_created("Failed to prepare dynamic resources: a0: IMEX daemon is BACKOFF: another nvidia-imex "
                       "on this node owns the driver\\u0027s only IMEX session");
        WHY("train-0", "host-imex", COMMAND_PROBLEM);
}

/* 8 */
static void a_quota_that_forbids_the_daemon_is_named(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domain-daemon-a0");
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, CD_DAEMON_OBJECT, "FailedCreate",
                      "Error creating: pods \\\"compute-domain-daemon-x\\\" is forbidden: insufficient quota "
                      "to match these scopes: [{PriorityClass In [system-node-critical]}]");
        pod_is_created("Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        WHY("train-0", "daemon-refused", COMMAND_PROBLEM);
}

/* 9 */
static void the_pod_that_still_holds_the_channel_is_named(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'old-3','deletionTimestamp':'2026-11-27T11:53:"
                    "00Z','finalizers':['example.com/slow']},"
                    "'spec':{'nodeName':'a0','containers':[]},'status':{'phase':'Running'}}");
        cluster_claim(cluster, "team-b", "old-3.channel", CLUSTER_BENCH, "a0");
        pod_is_created("Failed to prepare dynamic resources: a0: device \\u0027channel-0\\u0027 is still "
                       "held by claim \\u0027team-b/old-3.channel\\u0027 (the API server has that claim): "
                       "a node has one channel for one pod");
        WHY("train-0", "held", COMMAND_PROBLEM);
}

/* 10 */
static void nodes_that_imex_waits_for_are_named_with_the_network_policy(void **state) {
        (void)state;
        cluster_daemon(cluster, "a0",
                       "'imex.resource.nvidia.com/state':'STARTING','imex.resource.nvidia.com/"
                       "ready':'false','imex.resource.nvidia.com/peers':'0/1',"
                       "'imex.resource.nvidia.com/reason':'it waits for the other nodes of the "
                       "domain','imex.resource.nvidia.com/awaited':'a3'",
                       NULL);
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'default-deny'},'spec':{'podSelector':{}}}");
        pod_is_created("Failed to prepare dynamic resources: a0: IMEX daemon is STARTING: it waits for the "
                       "other nodes of the domain");
        WHY("train-0", "peers", COMMAND_PROBLEM);
}

/* ---- pods that run ---- */

static void runs_on(const char *pod, const char *node, const char *containers) {
        char claim[64];
        snprintf(claim, sizeof claim, "%s.channel", pod);
        cluster_claim(cluster, "team-b", claim, CLUSTER_BENCH, node);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = pod,
                                                        .claim = claim,
                                                        .node = node,
                                                        .phase = "Running",
                                                        .status = RUNS,
                                                        .containers = containers });
}

#define MEMBER(n, clique, i) "{'name':'" n "','cliqueID':'" clique "','index':" i ",'status':'Ready'}"

static void a_pod_that_runs_gets_the_line_of_nccl_to_look_for(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        runs_on("train-1", "a1", NULL);
        cluster_domain(
                cluster, "team-b", "bench", CLUSTER_BENCH,
                "'status':'Ready','nodesReady':2,'nodesWanted':2,'nodes':[" MEMBER(
                        "a0", CLUSTER_A, "0") "," MEMBER("a1", CLUSTER_A,
                                                         "1") "],'conditions':[{'type':'Ready','status':'"
                                                              "True','reason':'AllNodesReady'},"
                                                              "{'type':'PeersConnected','status':'True','"
                                                              "reason':'AllConnected'}]");
        WHY("train-0", "runs", COMMAND_FINE);
}

static void a_pod_whose_peers_are_missing_is_reported(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','nodesReady':1,'nodesWanted':1,'nodes':[" MEMBER(
                               "a0", CLUSTER_A, "0") "],'conditions':[{'type':'Ready','status':'False','"
                                                     "reason':'NodesMissing','message':'1 of 2'},"
                                                     "{'type':'PeersConnected','status':'False','reason':'"
                                                     "PeersMissing','message':'a0 misses 1 of 1 peers'}]");
        WHY("train-0", "peers-missing", COMMAND_PROBLEM);
}

/* The daemons have not queried the connections again since the last node joined. */
static void peers_that_may_have_connected_since_are_no_cause(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'Ready','nodesReady':2,'nodesWanted':2,'nodes':[" MEMBER(
                               "a0", CLUSTER_A, "0") "],'conditions':[{'type':'Ready','status':'True','"
                                                     "reason':'AllNodesReady'},{'type':'PeersConnected','"
                                                     "status':'False','reason':'PeersMissing','message':'a0 "
                                                     "misses 1 of 1 peers','lastTransitionTime':'2026-11-27T"
                                                     "11:59:30Z'}]");
        WHY("train-0", "peers-connecting", COMMAND_FINE);
        WHY("computedomain/bench", "domain-connecting", COMMAND_FINE);
}

static void a_container_that_does_not_name_the_claim_is_reported(void **state) {
        (void)state;
        runs_on("train-0", "a0", "{'name':'main'}");
        WHY("train-0", "no-claim-in-container", COMMAND_PROBLEM);
}

static void pods_in_two_partitions_are_reported(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        runs_on("train-1", "b0", NULL);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'Ready','nodesReady':2,'nodesWanted':2,'nodes':[" MEMBER(
                               "a0", CLUSTER_A, "0") "," MEMBER("b0", CLUSTER_B, "0") "]");
        WHY("train-0", "two-partitions", COMMAND_PROBLEM);
}

static void pod_has_failed(const char *pod, const char *node) {
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = pod, .node = node, .phase = "Failed" });
}

/* failure: the next attempt of a Job runs in another partition -> `why` ignores its failed pods */
static void a_failed_pod_in_another_partition_is_no_second_partition(void **state) {
        (void)state;
        pod_has_failed("train-1", "a1");
        runs_on("train-0", "b0", NULL);
        cluster_domain(
                cluster, "team-b", "bench", CLUSTER_BENCH,
                "'status':'Ready','nodesReady':1,'nodesWanted':1,'nodes':[" MEMBER("b0", CLUSTER_B, "0") "]");
        WHY("train-0", "next-attempt", COMMAND_FINE);
}

static void a_pod_without_a_channel_gets_the_words_of_the_scheduler(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'web'},'spec':{'containers':[{'name':'main'}]},"
                    "'status':{'phase':'Pending'" CLUSTER_UNSCHEDULED(
                            "0/7 nodes are available: 7 resourceclaim not available on the node.") "}}");
        WHY("web", "no-channel-pending", COMMAND_PROBLEM);
}

static void a_pod_that_runs_without_a_channel_is_reported(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'web'},'spec':{'nodeName':'a0','containers':[{'"
                    "name':'main'}]},"
                    "'status':{'phase':'Running'" RUNS "}}");
        WHY("web", "no-channel-running", COMMAND_PROBLEM);
}

/* The other causes of a pod whose claim is not prepared. */
static void a_daemon_that_crashes_is_named_with_its_log(void **state) {
        (void)state;
        cluster_daemon(cluster, "a0", "",
                       "'phase':'Running','containerStatuses':[{'name':'x','state':{'waiting':{'reason':'"
                       "CrashLoopBackOff',"
                       "'message':'back-off 40s'}},'lastState':{'terminated':{'reason':'Error','message':'no "
                       "claim UID'}}}]");
        pod_is_created("Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        WHY("train-0", "daemon-crashes", COMMAND_PROBLEM);
}

static void a_driver_that_is_not_registered_is_searched_on_the_node(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a0");
        pod_is_created("Failed to prepare dynamic resources: DRA driver compute-domain.nvidia.com is not "
                       "registered");
        WHY("train-0", "not-registered", COMMAND_PROBLEM);
}

static void container_waits(const char *reason, const char *message) {
        _cleanup_(freep) char *status = xasprintf(
                ",'containerStatuses':[{'name':'main','state':{'waiting':{'reason':'%s','message':'%s'}}}]",
                reason, message);
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0",
                                                        .claim = "train-0.channel",
                                                        .node = "a0",
                                                        .status = status });
}

/* failure: the kubelet unprepares a shared claim under a pod that starts -> `why` names the cause */
static void a_claim_that_was_unprepared_too_early_is_named(void **state) {
        (void)state;
        container_waits("CreateContainerError", "failed to inject CDI devices: unresolvable CDI devices "
                                                "k8s.compute-domain.nvidia.com/claim=x-shared");
        WHY("train-0", "unprepared-early", COMMAND_PROBLEM);
}

static void a_claim_that_the_kubelet_has_forgotten_is_named(void **state) {
        (void)state;
        container_waits("CreateContainerConfigError",
                        "internal error: unable to get claim info for ResourceClaim train-0.channel in "
                        "namespace team-b");
        WHY("train-0", "claim-info-lost", COMMAND_PROBLEM);
}

static void a_lost_claim_of_another_driver_is_no_cause_of_this_driver(void **state) {
        (void)state;
        container_waits("CreateContainerConfigError",
                        "internal error: unable to get claim info for ResourceClaim train-0.other in "
                        "namespace team-b");
        WHY("train-0", "claim-info-other", COMMAND_PROBLEM);
}

/* Kubernetes 1.37 and later. */
static void a_claim_that_is_being_unprepared_is_named(void **state) {
        (void)state;
        pod_is_created("Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim "
                       "train-0.channel is being unprepared");
        WHY("train-0", "being-unprepared", COMMAND_PROBLEM);
}

static void a_kubelet_that_may_not_read_the_claim_yet_retries(void **state) {
        (void)state;
        pod_is_created(
                "Failed to prepare dynamic resources: prepare dynamic resources: fetch ResourceClaim "
                "train-0.channel: resourceclaims.resource.k8s.io \\u0022train-0.channel\\u0022 is "
                "forbidden: User \\u0022system:node:a0\\u0022 cannot get resource "
                "\\u0022resourceclaims\\u0022 in API group \\u0022resource.k8s.io\\u0022 in the namespace "
                "\\u0022team-b\\u0022: node: no relationship found between node \\u0027a0\\u0027 and this "
                "object");
        WHY("train-0", "not-linked", COMMAND_PROBLEM);
}

/* The kubelet pulls images only after it has prepared the claims. */
static void an_earlier_refusal_is_no_cause_while_an_image_is_pulled(void **state) {
        (void)state;
        pod_is_created("Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        cluster_event(cluster, "Pod", "team-b", "train-0", "Pulling", "Pulling image example.com/train");
        WHY("train-0", "pulling", COMMAND_FINE);
}

/* failure: Prepare succeeds at its second try and an init container runs -> `why` reports no cause */
static void an_earlier_refusal_is_no_cause_while_an_init_container_runs(void **state) {
        (void)state;
        pod_is_created(NULL);
        cluster_put_pod(cluster, &(struct cluster_pod){
                                         .name = "train-0",
                                         .claim = "train-0.channel",
                                         .node = "a0",
                                         .status = ",'initContainerStatuses':[{'name':'fetch','state':{"
                                                   "'running':{'startedAt':'2026-11-27T11:58:30Z'}}}],"
                                                   "'containerStatuses':[{'name':'main','state':{'waiting':{"
                                                   "'reason':'PodInitializing'}}}]" });
        WHY("train-0", "init-runs", COMMAND_FINE);
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources",
                      "Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        WHY("train-0", "init-runs", COMMAND_FINE);
}

static void a_volume_that_cannot_be_mounted_is_no_cause_of_the_driver(void **state) {
        (void)state;
        pod_is_created("Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedMount",
                      "MountVolume.SetUp failed for volume data");
        WHY("train-0", "mount", COMMAND_PROBLEM);
}

/* No Event, and no condition: the rules of the controller name the cause. */
static void the_rules_of_the_controller_are_the_last_source(void **state) {
        (void)state;
        cluster_put(cluster, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                    "'},'rack':'rack-a','tableOf':'" CLUSTER_A "','domains':[{'owner':{'uid':'" CLUSTER_BENCH
                    "'},'infix':'x','slots':1,'port':28000,'assignments':"
                    "[{'node':'a3','index':0,'epoch':1}]}]}");
        pod_is_created(NULL);
        WHY("train-0", "no-index", COMMAND_PROBLEM);
}

#define STANDING "471691cc-ee7b-8090-9ae5-a9f121bbdd51" /* of CLUSTER_A */
#define STANDING_REPORT(index)                                                                               \
        "'imex.resource.nvidia.com/"                                                                         \
        "report':'{\\u0022claimUID\\u0022:\\u0022d0000000-0000-4000-8000-00000000000" index                  \
        "\\u0022,\\u0022bootID\\u0022:\\u002211111111-1111-4111-8111-111111111111\\u0022,"                   \
        "\\u0022fabricUID\\u0022:\\u0022" STANDING "\\u0022,\\u0022assignment\\u0022:\\u0022" CLUSTER_A      \
        "/" STANDING "/" index "/1\\u0022,\\u0022seen\\u0022:1}'"

/* With imex.isolation=channel, all daemons of a partition serve one IMEX domain, which no ComputeDomain has.
 */
static void a_daemon_of_the_standing_domain_is_found(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        cluster_put(cluster, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A "','uid':'" CLUSTER_A
                    "'},'rack':'rack-a','tableOf':'" CLUSTER_A
                    "','domains':[{'owner':{'kind':'ComputeDomainFabric','name':'" CLUSTER_A
                    "','uid':'" STANDING "'},'infix':'x','slots':18,'port':28000,'assignments':"
                    "[{'node':'a0','index':0,'epoch':1},{'node':'a1','index':1,'epoch':1},"
                    "{'node':'a3','index':3,'epoch':1}]}]}");
        cluster_domain(
                cluster, "team-b", "bench", CLUSTER_BENCH,
                "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'Admitted'},"
                "{'type':'ChannelAssigned','status':'True','reason':'Assigned','message':'channel 5 of "
                "rack-a'}]");
        cluster_daemon(cluster, "a1",
                       "'imex.resource.nvidia.com/state':'READY','imex.resource.nvidia.com/"
                       "ready':'true','imex.resource.nvidia.com/peers':'2/2'," STANDING_REPORT("1"),
                       "'phase':'Running','podIPs':[{'ip':'10.0.0.2'}],"
                       "'conditions':[{'type':'Ready','status':'True'}]");
        cluster_daemon(
                cluster, "a3",
                "'imex.resource.nvidia.com/state':'UNAVAILABLE','imex.resource.nvidia.com/"
                "ready':'false','imex.resource.nvidia.com/reason':'it does not answer'," STANDING_REPORT("3"),
                NULL);
        cluster_claim(cluster, "team-b", "train-1.channel", CLUSTER_BENCH, "a1");
        pod_is_created(NULL);
        WHY("computedomain/bench", "domain-standing", COMMAND_FINE);
        WHY("train-0", "standing", COMMAND_PROBLEM);
}

/* ---- claims that the controller creates by name ---- */

#define AUTO "auto-train-0a1b2c3d" /* the ComputeDomain of the pod, and its claim */
#define AUTO_ENTRY "{'name':'auto-domain','resourceClaimName':'" AUTO "'}"

static void put_controller_with(const char *env, int ready) {
        cluster_put(cluster, &tool_kinds_deployments,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller','labels':{'app.kubernetes.io/version':'0.1.0'}},"
                    "'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'compute-domain','image':"
                    "'registry.example/compute-domains:v0.1.0',"
                    "'command':['compute-domain-controller'],'env':[%s]}]}}},'status':{'readyReplicas':%d}}",
                    env, ready);
}

/* A pod with the label, as the policy of the chart has changed it. */
static void put_labelled_pod(const char *claims, const char *more, const char *status) {
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'train-0','labels':{'" CD_LABEL_AUTO
                    "':'enabled'}},'spec':{'containers':[{'name':'main','resources':{'claims':[{'name':'auto-"
                    "domain'}]}}],'resourceClaims':[%s]%s},'status':{%s}}",
                    claims, more, status);
}

static void labelled_pod_waits(void) {
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 2);
        put_labelled_pod(AUTO_ENTRY, "",
                         "'phase':'Pending'" CLUSTER_UNSCHEDULED("waiting for resource claim " AUTO));
}

static void put_auto_domain(const char *deleted, const char *claim, const char *conditions) {
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-b','name':'" AUTO
                    "','uid':'a0000000-0000-4000-8000-000000000001'%s},'spec':{'numNodes':0,'channel':{'%s':{"
                    "'name':'" AUTO "'}}},'status':{'conditions':[%s]}}",
                    deleted, claim, conditions);
}

static void a_label_without_the_feature_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_controller_with("", 2);
        WHY("train-0", "auto-off", COMMAND_PROBLEM);
        put_labelled_pod("", "", "'phase':'Pending'");
        WHY("train-0", "auto-off-no-claim", COMMAND_PROBLEM);
}

static void a_labelled_pod_without_a_claim_was_created_before_the_policy(void **state) {
        (void)state;
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 2);
        put_labelled_pod("", ",'nodeName':'a0'", "'phase':'Running'" RUNS);
        WHY("train-0", "auto-not-added", COMMAND_PROBLEM);
}

/* The policy adds the label to such a pod. */
static void an_annotation_of_grove_without_the_feature_is_named(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'train-0','annotations':{'" GROVE_ANNOTATION
                    "':'g'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':'Pending'}}");
        WHY("train-0", "auto-off-grove", COMMAND_PROBLEM);
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','labels':{'app.kubernetes.io/managed-by'"
                ":'grove-operator'},'annotations':{'" GROVE_ANNOTATION
                "':'g'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':'Pending'}}");
        WHY("train-0", "auto-of-grove", COMMAND_PROBLEM);
}

static void a_computedomain_with_the_name_of_another_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain("", "resourceClaimTemplate", "");
        WHY("train-0", "auto-taken", COMMAND_PROBLEM);
}

static void a_computedomain_that_cannot_be_created_is_explained_by_the_event(void **state) {
        (void)state;
        labelled_pod_waits();
        cluster_event(cluster, "Pod", "team-b", "train-0", REASON_AUTO_DOMAIN_NOT_CREATED,
                      "the ComputeDomain \\u0027" AUTO
                      "\\u0027, whose claim this Pod uses, cannot be created: "
                      "exceeded quota");
        WHY("train-0", "auto-not-created", COMMAND_PROBLEM);
        cluster_fail(cluster, &kube_compute_domains, ERR_RETRY, "etcdserver: request timed out");
        WHY("train-0", "auto-not-created-unread", COMMAND_PROBLEM);
}

static void the_computedomain_of_an_earlier_workload_is_named(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain(",'deletionTimestamp':'2026-11-27T11:57:00Z'", "resourceClaim", "");
        WHY("train-0", "auto-ending", COMMAND_PROBLEM);
        cluster_claim(cluster, "team-b", AUTO, "a0000000-0000-4000-8000-000000000001", "a0");
        put_labelled_pod(AUTO_ENTRY, ",'nodeName':'a0'", "'phase':'Pending'");
        WHY("train-0", "auto-ending-placed", COMMAND_PROBLEM);
}

/* It was deleted after the pod was created: the end of the workload, not of an earlier one. */
static void a_computedomain_that_ends_with_its_pods_is_not_that_of_an_earlier_workload(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain(",'deletionTimestamp':'2026-11-27T11:59:00Z'", "resourceClaim", "");
        cluster_claim(cluster, "team-b", AUTO, "a0000000-0000-4000-8000-000000000001", NULL);
        WHY("train-0", "auto-deleting", COMMAND_PROBLEM);
}

static void without_a_controller_no_computedomain_is_created(void **state) {
        (void)state;
        labelled_pod_waits();
        WHY("train-0", "auto-not-yet", COMMAND_PROBLEM);
        put_controller_with("{'name':'AUTO_DOMAINS','value':'true'}", 0);
        WHY("train-0", "auto-no-controller", COMMAND_PROBLEM);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "auto-confined", COMMAND_DENIED);
}

static void a_shared_claim_that_is_missing_is_explained_by_the_condition(void **state) {
        (void)state;
        labelled_pod_waits();
        put_auto_domain("", "resourceClaim", "");
        WHY("train-0", "auto-claim-not-yet", COMMAND_PROBLEM);
        put_auto_domain("", "resourceClaim",
                        "{'type':'SharedClaimAvailable','status':'False','reason':'SharedClaimsNotSupported',"
                        "'message':'the API server drops allowMultipleAllocations'}");
        WHY("train-0", "auto-claim-unsupported", COMMAND_PROBLEM);
        WHY("computedomain/" AUTO, "domain-claim-unsupported", COMMAND_PROBLEM);
}

static void a_named_claim_that_does_not_exist_is_reported(void **state) {
        (void)state;
        put_labelled_pod("{'name':'channel','resourceClaimName':'shared'}", "", "'phase':'Pending'");
        WHY("train-0", "claim-not-found", COMMAND_PROBLEM);
}

/* ---- missing rights ---- */

static void without_cluster_rights_possible_causes_are_listed(void **state) {
        (void)state;
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-pending", COMMAND_DENIED);
}

#define REPORT(reason, message)                                                                              \
        "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'NoNodes','message':'-'},"  \
        "{'type':'ChannelAvailable','status':'False','reason':'" reason "','message':'" message "'}]"

static void the_controller_reports_what_a_tenant_may_not_read(void **state) {
        (void)state;
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       REPORT("NoFreeChannel", "All channels are in use: 6 of 6"));
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-in-use", COMMAND_PROBLEM);
        WHY("computedomain/bench", "confined-domain-in-use", COMMAND_PROBLEM);
}

static void a_withheld_channel_is_explained_by_the_report_of_the_controller(void **state) {
        (void)state;
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       REPORT("NoChannelOffered",
                              "No node offers a channel (FabricError): 6 of 6 nodes withhold it"));
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-withheld", COMMAND_PROBLEM);
}

static void a_pod_behind_a_start_gate_is_explained_by_its_event_and_by_the_condition(void **state) {
        (void)state;
        static const char message[] =
                "3 of 4 nodes are connected. 1 more must join: their pods do not exist, or "
                "have no node";
        _cleanup_(freep) char *status = xasprintf("'status':'Ready','conditions':[{'type':'StartGateOpen','"
                                                  "status':'False','reason':'StartGateClosed',"
                                                  "'message':'%s'}]",
                                                  message);
        _cleanup_(freep) char *event = xasprintf("a0: the pod waits for the start gate of ComputeDomain "
                                                 "\\u0027team-b/bench\\u0027: %s",
                                                 message);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, status);
        pod_is_created(event);
        WHY("train-0", "start-gate", COMMAND_PROBLEM);
        WHY("computedomain/bench", "domain-start-gate", COMMAND_PROBLEM);
}

/* A full partition delays only pods that must run in it. */
static void a_full_partition_is_a_cause_only_for_pods_with_the_affinity(void **state) {
        (void)state;
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       REPORT("PartitionFull",
                              "No channel is free on rack-a, where pods of this ComputeDomain "
                              "run: 4 of 4 are in use, and 2 are free elsewhere"));
        cluster_claim(cluster, "team-b", "train-1.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-1",
                                                        .claim = "train-1.channel",
                                                        .node = "a0",
                                                        .status = RUNS });
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-pending", COMMAND_DENIED);
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), AFFINITY);
        WHY("train-0", "confined-partition-full", COMMAND_PROBLEM);
}

static void the_event_of_the_pod_needs_no_cluster_rights(void **state) {
        (void)state;
        pod_is_created("Failed to prepare dynamic resources: a0: IMEX daemon is BACKOFF: another nvidia-imex "
                       "on this node owns the driver\\u0027s only IMEX session");
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-host-imex", COMMAND_PROBLEM);
}

static void a_misspelt_template_needs_no_cluster_rights(void **state) {
        (void)state;
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0", .template = "bentch-channel" });
        cluster_confine(cluster, "team-b");
        WHY("train-0", "template", COMMAND_PROBLEM);
}

/* A list that failed is no proof that channels are free or used. */
static void a_list_that_fails_proves_nothing(void **state) {
        (void)state;
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        cluster_fail(cluster, &kube_resource_slices, ERR_RETRY, "etcdserver: request timed out");
        WHY("train-0", "slices-fail", COMMAND_FAILED);
}

/* ---- other objects ---- */

static void a_job_is_represented_by_the_pod_that_waits(void **state) {
        (void)state;
        runs_on("train-1", "a1", NULL);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0", .template = "bentch-channel" });
        WHY("job/train", "job", COMMAND_PROBLEM);
}

/* failure: a Job keeps a failed pod and its replacement waits -> `why` explains the replacement */
static void the_replacement_of_a_failed_pod_represents_the_job(void **state) {
        (void)state;
        pod_has_failed("train-1", "a1");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-2", .template = "bentch-channel" });
        WHY("job/train", "job-replacement", COMMAND_PROBLEM);
        runs_on("train-2", "a2", NULL);
        WHY("job/train", "job-replacement-runs", COMMAND_FINE);
        cluster_remove(cluster, &kube_pods, "team-b", "train-2");
        WHY("job/train", "job-failed", COMMAND_PROBLEM);
}

static void a_pod_without_a_node_represents_the_job_before_one_that_starts(void **state) {
        (void)state;
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-1", .node = "a1" });
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-2", .template = "bentch-channel" });
        WHY("job/train", "job-without-node", COMMAND_PROBLEM);
}

static void a_node_that_withholds_is_explained(void **state) {
        (void)state;
        cluster_withhold(cluster, "a2");
        cluster_event(cluster, "Node", NULL, "a2", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (DriverNotFound): no NVIDIA driver "
                      "under /");
        WHY("node/a2", "node-withholds", COMMAND_PROBLEM);
}

static void put_plugin_with(const char *selector) {
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':[{"
                    "'name':'compute-domains','command':['compute-domain-kubelet-plugin'],'env':[{'name':"
                    "'POD_NODE_SELECTOR','value':'%s'}]}]}}},'status':{'desiredNumberScheduled':5,'"
                    "currentNumberScheduled':5,'numberReady':5}}",
                    selector);
}

/* failure: the plugin's node selector excludes a GPU node -> `why` names the selector */
static void a_node_that_the_plugin_excludes_is_explained(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a2");
        cluster_withhold(cluster, "a2");
        put_plugin_with("{\\\"nodeSelector\\\":{\\\"pool\\\":\\\"gb200\\\"},\\\"nodeSelectorTerms\\\":[]}");
        WHY("node/a2", "node-excluded", COMMAND_PROBLEM);
        put_plugin_with("{\\\"nodeSelector\\\":{},\\\"nodeSelectorTerms\\\":[]}");
        WHY("node/a2", "node-without-plugin", COMMAND_PROBLEM);
        put_plugin_with("");
        WHY("node/a2", "node-without-plugin", COMMAND_PROBLEM);
}

/* It offers its channel, and pods that use it would wait. */
static void imex_of_the_host_is_named_for_a_node_that_offers_its_channel(void **state) {
        (void)state;
        cluster_event(cluster, "Node", NULL, "a2", "HostIMEXConflict", "nvidia-imex also runs on the host");
        WHY("node/a2", "node-host-imex", COMMAND_PROBLEM);
}

/* The Event expires after an hour. */
static void the_report_of_the_plugin_replaces_an_expired_event(void **state) {
        (void)state;
        cluster_withhold(cluster, "a2");
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin-a2','annotations':{'" IMEX_ANNOTATION_WITHHELD
                    "':'FabricError: 2 of 4 GPUs are not registered'}},'spec':{'nodeName':'a2','containers':"
                    "[{'name':'compute-domains','command':['compute-domain-kubelet-plugin']}]},'status':{'"
                    "phase':'Running',"
                    "'conditions':[{'type':'Ready','status':'True'}]}}");
        WHY("node/a2", "node-report", COMMAND_PROBLEM);
}

static void a_healthy_node_is_fine(void **state) {
        (void)state;
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a1");
        WHY("node/a1", "node-fine", COMMAND_FINE);
}

static void a_computedomain_that_is_not_ready_is_explained_by_its_conditions(void **state) {
        (void)state;
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','nodesReady':1,'nodesWanted':2,'nodes':[" MEMBER(
                               "a0", CLUSTER_A,
                               "0") "],'conditions':[{'type':'Ready','status':'False','reason':"
                                    "'NodeFailing','message':'a1: IMEX daemon is BACKOFF: another "
                                    "nvidia-imex on this node owns the driver\\u0027s only IMEX session'},"
                                    "{'type':'PeersConnected','status':'False','reason':'PeersMissing','"
                                    "message':'a0 misses 1 peer'}]");
        WHY("computedomain/bench", "domain", COMMAND_PROBLEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(all_channels_in_use_are_counted_by_computedomain),
                T(withheld_channels_are_explained_by_the_event_of_the_node),
                T(a_refused_plugin_pod_is_the_cause_if_no_node_offers_a_channel),
                T(a_misspelt_claim_template_is_compared_with_those_that_exist),
                T(a_full_partition_of_the_other_pods_is_named_with_the_free_one),
                T(gpus_that_are_offered_twice_are_recognized_by_the_message),
                T(free_channels_and_taken_gpus_are_distinguished),
                T(a_taint_is_no_lack_of_gpus),
                T(a_pod_behind_a_start_gate_is_explained_by_its_event_and_by_the_condition),
                T(imex_of_the_host_is_named_as_the_cause),
                T(a_quota_that_forbids_the_daemon_is_named),
                T(the_pod_that_still_holds_the_channel_is_named),
                T(nodes_that_imex_waits_for_are_named_with_the_network_policy),
                T(a_pod_that_runs_gets_the_line_of_nccl_to_look_for),
                T(a_pod_whose_peers_are_missing_is_reported),
                T(peers_that_may_have_connected_since_are_no_cause),
                T(a_container_that_does_not_name_the_claim_is_reported),
                T(pods_in_two_partitions_are_reported),
                T(a_failed_pod_in_another_partition_is_no_second_partition),
                T(a_pod_without_a_channel_gets_the_words_of_the_scheduler),
                T(a_pod_that_runs_without_a_channel_is_reported),
                T(a_daemon_that_crashes_is_named_with_its_log),
                T(a_driver_that_is_not_registered_is_searched_on_the_node),
                T(a_claim_that_was_unprepared_too_early_is_named),
                T(a_claim_that_the_kubelet_has_forgotten_is_named),
                T(a_lost_claim_of_another_driver_is_no_cause_of_this_driver),
                T(a_claim_that_is_being_unprepared_is_named),
                T(a_kubelet_that_may_not_read_the_claim_yet_retries),
                T(an_earlier_refusal_is_no_cause_while_an_image_is_pulled),
                T(an_earlier_refusal_is_no_cause_while_an_init_container_runs),
                T(a_volume_that_cannot_be_mounted_is_no_cause_of_the_driver),
                T(the_rules_of_the_controller_are_the_last_source),
                T(a_daemon_of_the_standing_domain_is_found),
                T(a_label_without_the_feature_is_named),
                T(a_labelled_pod_without_a_claim_was_created_before_the_policy),
                T(an_annotation_of_grove_without_the_feature_is_named),
                T(a_computedomain_with_the_name_of_another_is_named),
                T(a_computedomain_that_cannot_be_created_is_explained_by_the_event),
                T(the_computedomain_of_an_earlier_workload_is_named),
                T(a_computedomain_that_ends_with_its_pods_is_not_that_of_an_earlier_workload),
                T(without_a_controller_no_computedomain_is_created),
                T(a_shared_claim_that_is_missing_is_explained_by_the_condition),
                T(a_named_claim_that_does_not_exist_is_reported),
                T(without_cluster_rights_possible_causes_are_listed),
                T(the_controller_reports_what_a_tenant_may_not_read),
                T(a_withheld_channel_is_explained_by_the_report_of_the_controller),
                T(a_full_partition_is_a_cause_only_for_pods_with_the_affinity),
                T(the_event_of_the_pod_needs_no_cluster_rights),
                T(a_misspelt_template_needs_no_cluster_rights),
                T(a_list_that_fails_proves_nothing),
                T(a_job_is_represented_by_the_pod_that_waits),
                T(the_replacement_of_a_failed_pod_represents_the_job),
                T(a_pod_without_a_node_represents_the_job_before_one_that_starts),
                T(a_node_that_withholds_is_explained),
                T(a_node_that_the_plugin_excludes_is_explained),
                T(imex_of_the_host_is_named_for_a_node_that_offers_its_channel),
                T(the_report_of_the_plugin_replaces_an_expired_event),
                T(a_healthy_node_is_fine),
                T(a_computedomain_that_is_not_ready_is_explained_by_its_conditions),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
