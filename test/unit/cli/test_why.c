/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why` about pods that have a node: why their containers do not run, and whether they can use
 * NVLink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/tool_kinds.h"
#include "unit/cli/why_world.h"

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

static void a_quota_that_forbids_the_daemon_is_named(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domain-daemon-a0");
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, CD_DAEMON_OBJECT, "FailedCreate",
                      "Error creating: pods \\\"compute-domain-daemon-x\\\" is forbidden: insufficient quota "
                      "to match these scopes: [{PriorityClass In [system-node-critical]}]");
        pod_is_created("Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        WHY("train-0", "daemon-refused", COMMAND_PROBLEM);
}

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

static void a_pod_that_runs_is_not_fine_if_a_list_failed(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        cluster_fail(cluster, &kube_compute_domains, ERR_RETRY, "etcdserver: request timed out");
        WHY("train-0", "runs-unread", COMMAND_FAILED);
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

/* failure: nvidia-imex of a node fails -> `why` names the condition Ready, and not the missing peers */
static void a_node_that_fails_is_the_cause_and_not_its_peers(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','nodesReady':1,'nodesWanted':2,'nodes':[" MEMBER(
                               "a0", CLUSTER_A,
                               "0") "," MEMBER("a1", CLUSTER_A,
                                               "1") "],'conditions':[{'type':'Ready','status':'False','"
                                                    "reason':'NodeFailing','message':'a0: IMEX daemon is "
                                                    "BACKOFF: nvidia-imex ends again and again'},"
                                                    "{'type':'PeersConnected','status':'False','reason':'"
                                                    "PeersMissing','message':'a0: not known'}]");
        WHY("train-0", "node-failing", COMMAND_PROBLEM);
}

/* failure: the kubelet of a node does not report -> `why` about a pod in phase Running names the node */
static void a_pod_that_runs_on_a_node_that_is_down_is_not_fine(void **state) {
        (void)state;
        runs_on("train-0", "a0", NULL);
        cluster_put(cluster, &kube_nodes,
                    "{'metadata':{'name':'a0','labels':{'" GPU_PRESENT_LABEL "':'true','" GPU_CLIQUE_LABEL
                    "':'" CLUSTER_A "'}},'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}");
        WHY("train-0", "running-node-down", COMMAND_PROBLEM);
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

#define OTHER "aa000000-0000-4000-8000-000000000001"

/* A JobSet with a ComputeDomain for each Job, and an MPIJob whose launcher has no channel. */
static void pods_of_a_workload_without_the_same_computedomain_may_be_elsewhere(void **state) {
        (void)state;
        static const char labels[] =
                "'jobset.sigs.k8s.io/jobset-uid':'u','training.kubeflow.org/job-name':'m'";
        cluster_domain(cluster, "team-b", "other", OTHER, "'status':'Ready'");
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_claim(cluster, "team-b", "train-1.channel", OTHER, "b0");
        const struct cluster_pod pods[] = {
                { .name = "train-0", .claim = "train-0.channel", .node = "a0" },
                { .name = "train-1", .template = "other-channel", .claim = "train-1.channel", .node = "b0" },
        };
        for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
                struct cluster_pod p = pods[i];
                p.labels = labels;
                p.phase = "Running";
                p.status = RUNS;
                cluster_put_pod(cluster, &p);
        }
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'launcher','labels':{%s}},'spec':{'nodeName':"
                    "'b1','containers':[{'name':'main'}]},'status':{'phase':'Running'" RUNS "}}",
                    labels);
        WHY("train-0", "several-domains", COMMAND_FINE);
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

/* ---- sidecars: init containers that run beside the containers ---- */

/* The phase of the pod is Running, because another container runs. */
static void a_container_with_the_claim_that_crashes_is_the_cause(void **state) {
        (void)state;
        static const char two[] =
                "{'name':'main','resources':{'claims':[{'name':'channel'}]}},{'name':'log'}",
                          log[] = "{'name':'log','state':{'running':{'startedAt':'2026-11-27T11:58:00Z'}}}";
        _cleanup_(freep) char *crashes = xasprintf(
                ",'containerStatuses':[%s,{'name':'main','restartCount':4,'state':{'waiting':{'reason':'"
                "CrashLoopBackOff','message':'back-off 40s'}},'lastState':{'terminated':{'reason':"
                "'StartError','message':'the hook failed'}}}]",
                log);
        _cleanup_(freep) char *ended = xasprintf(
                ",'containerStatuses':[%s,{'name':'main','state':{'terminated':{'reason':'Error'}}}]", log);
        _cleanup_(freep) char *starts = xasprintf(",'containerStatuses':[%s,{'name':'main','state':{'waiting'"
                                                  ":{'reason':'ContainerCreating'}}}]",
                                                  log);
        runs_on("train-0", "a0", two);
        struct cluster_pod p = { .name = "train-0",
                                 .claim = "train-0.channel",
                                 .node = "a0",
                                 .phase = "Running",
                                 .containers = two };
        p.status = crashes;
        cluster_put_pod(cluster, &p);
        WHY("train-0", "container-crashes", COMMAND_PROBLEM);
        p.status = ended;
        cluster_put_pod(cluster, &p);
        WHY("train-0", "container-ended", COMMAND_PROBLEM);
        p.status = starts;
        cluster_put_pod(cluster, &p);
        WHY("train-0", "container-starts", COMMAND_FINE);
}

#define WAITS "{'waiting':{'reason':'PodInitializing'}}"
#define RUNNING "{'running':{'startedAt':'2026-11-27T11:58:30Z'}}"

/* The init container `fetch` and the sidecar `proxy`, with these states. */
static void pod_with_sidecar(const char *fetch, const char *proxy) {
        _cleanup_(freep) char *status = xasprintf(
                ",'initContainerStatuses':[{'name':'proxy','state':%s},{'name':'fetch','state':%s}],"
                "'containerStatuses':[{'name':'main','state':" WAITS "}]",
                proxy, fetch);
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster, &(struct cluster_pod){
                                         .name = "train-0",
                                         .claim = "train-0.channel",
                                         .node = "a0",
                                         .more = ",'initContainers':[{'name':'proxy','restartPolicy':'Always'"
                                                 "},{'name':'fetch'}]",
                                         .status = status });
}

/* failure: a sidecar runs while another container starts -> `why` names what the pod waits for */
static void a_sidecar_is_no_init_container_that_the_pod_waits_for(void **state) {
        (void)state;
        pod_with_sidecar(RUNNING, RUNNING);
        WHY("train-0", "init-runs", COMMAND_FINE);
        pod_with_sidecar("{'terminated':{'reason':'Completed'}}", RUNNING);
        cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources",
                      "Failed to prepare dynamic resources: a0: no IMEX daemon runs on this node yet");
        WHY("train-0", "sidecar-runs", COMMAND_FINE);
        cluster_event(cluster, "Pod", "team-b", "train-0", "Pulling", "Pulling image example.com/train");
        WHY("train-0", "sidecar-pulling", COMMAND_FINE);
}

static void a_sidecar_that_crashes_is_the_cause(void **state) {
        (void)state;
        pod_with_sidecar(WAITS, "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 40s'}}");
        WHY("train-0", "sidecar-crashes", COMMAND_PROBLEM);
}

static void runs_with(const char *init_containers) {
        _cleanup_(freep) char *more = xasprintf(",'initContainers':[%s]", init_containers);
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0",
                                                        .claim = "train-0.channel",
                                                        .node = "a0",
                                                        .phase = "Running",
                                                        .status = RUNS,
                                                        .more = more,
                                                        .containers = "{'name':'main'}" });
}

/* An init container that has ended has no channel any more. */
static void a_sidecar_can_have_the_channel_of_the_pod(void **state) {
        (void)state;
        runs_with("{'name':'proxy','restartPolicy':'Always','resources':{'claims':[{'name':'channel'}]}}");
        WHY("train-0", "sidecar-has-channel", COMMAND_FINE);
        runs_with("{'name':'proxy','resources':{'claims':[{'name':'channel'}]}}");
        WHY("train-0", "no-claim-in-container", COMMAND_PROBLEM);
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

static void the_event_of_the_pod_needs_no_cluster_rights(void **state) {
        (void)state;
        pod_is_created("Failed to prepare dynamic resources: a0: IMEX daemon is BACKOFF: another nvidia-imex "
                       "on this node owns the driver\\u0027s only IMEX session");
        cluster_confine(cluster, "team-b");
        WHY("train-0", "confined-host-imex", COMMAND_PROBLEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, why_set_up, why_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(imex_of_the_host_is_named_as_the_cause),
                T(a_quota_that_forbids_the_daemon_is_named),
                T(the_pod_that_still_holds_the_channel_is_named),
                T(nodes_that_imex_waits_for_are_named_with_the_network_policy),
                T(a_pod_that_runs_gets_the_line_of_nccl_to_look_for),
                T(a_pod_whose_peers_are_missing_is_reported),
                T(a_node_that_fails_is_the_cause_and_not_its_peers),
                T(a_pod_that_runs_on_a_node_that_is_down_is_not_fine),
                T(a_pod_that_runs_is_not_fine_if_a_list_failed),
                T(peers_that_may_have_connected_since_are_no_cause),
                T(a_container_that_does_not_name_the_claim_is_reported),
                T(pods_in_two_partitions_are_reported),
                T(a_failed_pod_in_another_partition_is_no_second_partition),
                T(pods_of_a_workload_without_the_same_computedomain_may_be_elsewhere),
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
                T(a_sidecar_is_no_init_container_that_the_pod_waits_for),
                T(a_sidecar_that_crashes_is_the_cause),
                T(a_container_with_the_claim_that_crashes_is_the_cause),
                T(a_sidecar_can_have_the_channel_of_the_pod),
                T(a_volume_that_cannot_be_mounted_is_no_cause_of_the_driver),
                T(the_rules_of_the_controller_are_the_last_source),
                T(a_daemon_of_the_standing_domain_is_found),
                T(a_pod_behind_a_start_gate_is_explained_by_its_event_and_by_the_condition),
                T(the_event_of_the_pod_needs_no_cluster_rights),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
