/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why` about pods without a node, also for users without permissions in the cluster. */
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

static void all_channels_in_use_are_counted_by_computedomain(void **state) {
        (void)state;
        cluster_domain(cluster, "team-a", "llm-70b", "aa000000-0000-4000-8000-000000000001", "");
        use_all("team-a", "aa000000-0000-4000-8000-000000000001", "a0a1a2a3");
        use_all("team-c", "cc000000-0000-4000-8000-000000000001", "b0b1");
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), NULL);
        WHY("train-0", "no-free-channel", COMMAND_PROBLEM);
}

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

static void a_misspelt_claim_template_is_compared_with_those_that_exist(void **state) {
        (void)state;
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0", .template = "bentch-channel" });
        WHY("train-0", "template", COMMAND_PROBLEM);
}

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

static void placed_on(const char *name, const char *node, const char *job) {
        _cleanup_(freep) char *claim = xasprintf("%s.channel", name);
        _cleanup_(freep) char *labels = xasprintf("'jobset.sigs.k8s.io/jobset-uid':'u','job-name':'%s'", job);
        cluster_claim(cluster, "team-b", claim, CLUSTER_BENCH, node);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = name,
                                                        .claim = claim,
                                                        .node = node,
                                                        .labels = labels,
                                                        .phase = "Running",
                                                        .status = RUNS });
}

/* The affinity of the pod selects the pods of its Job. */
static void pods_that_the_affinity_does_not_select_choose_no_partition(void **state) {
        (void)state;
        use_all("team-a", "aa000000-0000-4000-8000-000000000001", "a1a2a3");
        placed_on("first-0", "a0", "first");
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        struct cluster_pod p = {
                .name = "train-0",
                .claim = "train-0.channel",
                .labels = "'jobset.sigs.k8s.io/jobset-uid':'u','job-name':'train'",
                .status = CLUSTER_UNSCHEDULED("0/7 nodes are available: 4 cannot allocate all claims."),
                .more = AFFINITY,
        };
        cluster_put_pod(cluster, &p);
        WHY("train-0", "other-job", COMMAND_PROBLEM);
        /* With matchLabelKeys, the API server writes an expression. */
        p.more = AFFINITY_TO("'matchExpressions':[{'key':'job-name','operator':'In','values':['train']}]");
        cluster_put_pod(cluster, &p);
        WHY("train-0", "other-job", COMMAND_PROBLEM);
        /* An absent selector selects no pod. */
        p.more = AFFINITY_TERM("");
        cluster_put_pod(cluster, &p);
        WHY("train-0", "other-job", COMMAND_PROBLEM);
        /* It may join either of them. */
        p.more = AFFINITY_TO("'matchLabels':{'jobset.sigs.k8s.io/jobset-uid':'u'}");
        cluster_put_pod(cluster, &p);
        placed_on("first-1", "b0", "first");
        WHY("train-0", "two-racks", COMMAND_PROBLEM);
}

static void gpus_that_are_offered_twice_are_recognized_by_the_message(void **state) {
        (void)state;
        pod_waits(CLUSTER_UNSCHEDULED("nil or empty request mappings, no update of pod team-b/train-0 "
                                      "ExtendedResourceClaimStatus"),
                  NULL);
        WHY("train-0", "gpus-twice", COMMAND_PROBLEM);
}

/* The same for a pod that also requests GPUs. */
static void pod_with_gpus_waits(const char *status) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster,
                        &(struct cluster_pod){
                                .name = "train-0",
                                .claim = "train-0.channel",
                                .containers = "{'name':'main','resources':{'limits':{'nvidia.com/gpu':'4'},"
                                              "'claims':[{'name':'channel'}]}}",
                                .status = status });
}

static void free_channels_and_taken_gpus_are_distinguished(void **state) {
        (void)state;
        pod_with_gpus_waits(CLUSTER_UNSCHEDULED(CANNOT));
        WHY("train-0", "gpus", COMMAND_PROBLEM);
}

static void a_taint_is_no_lack_of_gpus(void **state) {
        (void)state;
        pod_with_gpus_waits(CLUSTER_UNSCHEDULED("0/7 nodes are available: 1 cannot allocate all claims, 6 "
                                                "node(s) had untolerated taint {x: y}."));
        WHY("train-0", "taint", COMMAND_PROBLEM);
}

static void a_pod_without_a_channel_gets_the_words_of_the_scheduler(void **state) {
        (void)state;
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'web'},'spec':{'containers':[{'name':'main'}]},"
                    "'status':{'phase':'Pending'" CLUSTER_UNSCHEDULED(
                            "0/7 nodes are available: 7 resourceclaim not available on the node.") "}}");
        WHY("web", "no-channel-pending", COMMAND_PROBLEM);
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

/* The driver runs, and its CustomResourceDefinition was deleted. */
static void a_missing_definition_is_no_missing_driver(void **state) {
        (void)state;
        cluster_remove_all(cluster, &kube_resource_claim_templates);
        cluster_fail(cluster, &kube_compute_domains, ERR_NOT_FOUND, "no such kind");
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0" });
        WHY("train-0", "definition-missing", COMMAND_PROBLEM);
        cluster_confine(cluster, "team-b");
        WHY("train-0", "definition-missing-confined", COMMAND_PROBLEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, why_set_up, why_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(all_channels_in_use_are_counted_by_computedomain),
                T(withheld_channels_are_explained_by_the_event_of_the_node),
                T(a_refused_plugin_pod_is_the_cause_if_no_node_offers_a_channel),
                T(a_misspelt_claim_template_is_compared_with_those_that_exist),
                T(a_full_partition_of_the_other_pods_is_named_with_the_free_one),
                T(pods_that_the_affinity_does_not_select_choose_no_partition),
                T(gpus_that_are_offered_twice_are_recognized_by_the_message),
                T(free_channels_and_taken_gpus_are_distinguished),
                T(a_taint_is_no_lack_of_gpus),
                T(a_pod_without_a_channel_gets_the_words_of_the_scheduler),
                T(without_cluster_rights_possible_causes_are_listed),
                T(the_controller_reports_what_a_tenant_may_not_read),
                T(a_withheld_channel_is_explained_by_the_report_of_the_controller),
                T(a_full_partition_is_a_cause_only_for_pods_with_the_affinity),
                T(a_misspelt_template_needs_no_cluster_rights),
                T(a_list_that_fails_proves_nothing),
                T(a_missing_definition_is_no_missing_driver),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
