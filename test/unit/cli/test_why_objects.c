/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `why` about jobs, nodes and ComputeDomains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cli/doctor_kinds.h"
#include "cli/tool_kinds.h"
#include "unit/cli/why_world.h"

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

/* A pod of a Job with this index, or without one (NULL), which was created and has ended at these times. */
static void pod_has_ended(const char *name, const char *phase, const char *index, const char *times) {
        _cleanup_(freep) char *label =
                index ? xasprintf(",'batch.kubernetes.io/job-completion-index':'%s'", index) : xstrdup("");
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'%s','labels':{'job-name':'train'%s},"
                    "'creationTimestamp':'2026-11-27T11:%.5sZ'},'spec':{'nodeName':'a0','containers':[{'name'"
                    ":'main'}]},'status':{'phase':'%s','conditions':[{'type':'Ready','status':'False','"
                    "lastTransitionTime':'2026-11-27T11:%sZ'}]}}",
                    name, label, times, phase, times + 6);
}

/* failure: a finished Job keeps the pod of a failed attempt -> `why` reports no problem */
static void a_failed_pod_whose_replacement_has_succeeded_does_not_represent_the_job(void **state) {
        (void)state;
        pod_has_ended("train-a", "Failed", NULL, "10:00 20:00");
        pod_has_ended("train-b", "Succeeded", NULL, "20:01 30:00");
        WHY("job/train", "job-finished", COMMAND_FINE);
        /* It ran beside the failed pod. */
        pod_has_ended("train-b", "Succeeded", NULL, "10:00 30:00");
        WHY("job/train", "job-half-failed", COMMAND_PROBLEM);
        pod_has_ended("train-a", "Failed", "0", "10:00 20:00");
        pod_has_ended("train-b", "Succeeded", "0", "20:01 30:00");
        WHY("job/train", "job-finished", COMMAND_FINE);
        pod_has_ended("train-b", "Succeeded", "1", "20:01 30:00");
        WHY("job/train", "job-half-failed", COMMAND_PROBLEM);
}

static void a_pod_without_a_node_represents_the_job_before_one_that_starts(void **state) {
        (void)state;
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-1", .node = "a1" });
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-2", .template = "bentch-channel" });
        WHY("job/train", "job-without-node", COMMAND_PROBLEM);
}

static void job_event(int second, const char *type, const char *reason) {
        cluster_put(
                cluster, &kube_events,
                "{'metadata':{'namespace':'team-b','name':'e%d'},'involvedObject':{'kind':'Job','namespace':"
                "'team-b','name':'done'},'type':'%s','reason':'%s','message':'m','lastTimestamp':"
                "'2090-01-01T00:00:%02dZ'}",
                second, type, reason, second);
}

/* Only a Warning, or that the Job is suspended, explains why a Job has no pods, and only the last Event
 * counts. */
static void a_job_that_was_deleted_after_its_end_does_not_lack_pods(void **state) {
        (void)state;
        job_event(1, "Warning", "FailedCreate");
        WHY("job/done", "job-without-pods", COMMAND_PROBLEM);
        job_event(2, "Normal", "Suspended");
        WHY("job/done", "job-suspended", COMMAND_PROBLEM);
        job_event(3, "Normal", "Completed");
        WHY("job/done", "job-deleted", COMMAND_FAILED);
}

/* Runs `why`. Its message on stderr contains the text. */
static void error_has(const char *arg, int code, const char *text) {
        struct cli c = { .a = arena_new(1024),
                         .args = &arg,
                         .n_args = 1,
                         .source = cluster_source(cluster),
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        char message[1024] = "";
        FILE *f = tmpfile();
        assert_non_null(f);
        int before = dup(STDERR_FILENO);
        assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
        view_init(&c.v, c.source);
        int r = command_why.run(&c);
        assert_true(dup2(before, STDERR_FILENO) >= 0);
        close(before);
        rewind(f);
        message[fread(message, 1, sizeof message - 1, f)] = '\0';
        fclose(f);
        if (r != code || !strstr(message, text))
                fail_msg("exit code %d, or no '%s' in: %s", r, text, message);
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
}

/* failure: a suspended Job has no pods and no Events -> `why` does not claim that it does not exist */
static void a_job_without_pods_and_events_may_exist(void **state) {
        (void)state;
        static const char may[] = " exists in namespace team-b, and no Event shows why: it may be suspended, "
                                  "wait in a queue, have ended, or not exist\n";
        _cleanup_(freep) char *job = xasprintf("no pod of job/train%s", may),
                              *lws = xasprintf("no pod of lws/train%s", may);
        error_has("job/train", COMMAND_FAILED, job);
        error_has("lws/train", COMMAND_FAILED, lws);
        error_has("pod/train", COMMAND_FAILED, "pod/train does not exist in namespace team-b\n");
        cluster_fail(cluster, &kube_events, ERR_DENIED, "events is forbidden");
        error_has("job/train", COMMAND_DENIED,
                  "you may not list events in namespace team-b: events is forbidden");
        error_has("pod/train", COMMAND_FAILED, "pod/train does not exist in namespace team-b\n");
}

/* failure: the Events of a Job cannot be read -> `why` reports the error */
static void a_job_without_pods_whose_events_fail_is_not_explained(void **state) {
        (void)state;
        cluster_fail(cluster, &kube_events, ERR_RETRY, "timed out");
        error_has("job/train", COMMAND_FAILED, "job/train: timed out\n");
        cluster_confine(cluster, "team-z");
        error_has("job/train", COMMAND_DENIED,
                  "you may not list pods in namespace team-b: pods is forbidden");
}

static void a_node_that_withholds_is_explained(void **state) {
        (void)state;
        cluster_withhold(cluster, "a2");
        cluster_event(cluster, "Node", NULL, "a2", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (DriverNotFound): no NVIDIA driver "
                      "under /");
        WHY("node/a2", "node-withholds", COMMAND_PROBLEM);
}

/* Only admins may create Events in the namespace of the Events of Nodes. */
static void an_event_of_a_tenant_about_a_node_does_not_count(void **state) {
        (void)state;
        cluster_withhold(cluster, "a2");
        cluster_event(cluster, "Node", NULL, "a2", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (DriverNotFound): no NVIDIA driver "
                      "under /");
        cluster_put(cluster, &kube_nodes,
                    "{'metadata':{'name':'a2','labels':{'" GPU_PRESENT_LABEL "':'true','" GPU_CLIQUE_LABEL
                    "':'" CLUSTER_A "','kubernetes.io/hostname':'a2'}},'spec':{},'status':{'conditions':[{"
                    "'type':'Ready','status':'True'}]}}");
        cluster_event(cluster, "Node", "team-b", "a2", "ComputeDomainDevicesWithheld",
                      "no IMEX channel or daemon is offered on this node (FabricError): forged");
        pod_waits(CLUSTER_UNSCHEDULED(CANNOT), ",'nodeSelector':{'kubernetes.io/hostname':'a2'}");
        WHY("train-0", "forged-event", COMMAND_PROBLEM);
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

/* failure: a node with pods in use leaves the plugin's selector -> `why` names what the plugin waits for */
static void a_node_whose_plugin_waits_for_pods_is_explained(void **state) {
        (void)state;
        cluster_withhold(cluster, "a2");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-kubelet-plugin-a2','deletionTimestamp':'2026-11-27T12:50:00Z'},"
                "'spec':{'nodeName':'a2','containers':[{'name':'compute-domains','command':["
                "'compute-domain-kubelet-plugin']}]},'status':{'phase':'Running','conditions':[{'type':"
                "'Ready','status':'True'}]}}");
        WHY("node/a2", "node-plugin-ends", COMMAND_PROBLEM);
        cluster_event(cluster, "Node", NULL, "a2", REASON_PLUGIN_WAITS_FOR_PODS,
                      "this Node no longer matches the node selector of the kubelet plugin of " CD_DRIVER);
        WHY("node/a2", "node-plugin-waits", COMMAND_PROBLEM);
        cluster_event(cluster, "Node", NULL, "a2", REASON_COMPUTE_DOMAIN_DEVICES_OFFERED, "offered");
        WHY("node/a2", "node-plugin-ends", COMMAND_PROBLEM);
}

/* All Pods of DaemonSets tolerate the taint of a cordoned node. */
static void a_taint_that_daemonsets_tolerate_is_no_hint(void **state) {
        (void)state;
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a2");
        cluster_withhold(cluster, "a2");
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'a2','labels':{'" GPU_PRESENT_LABEL
                "':'true'}},'spec':{'taints':[{'key':'node.kubernetes.io/unschedulable','effect':"
                "'NoSchedule'},{'key':'team','value':'x','effect':'NoSchedule'}]},'status':{'conditions':["
                "{'type':'Ready','status':'True'}]}}");
        WHY("node/a2", "node-tainted", COMMAND_PROBLEM);
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

/* Conditions of the Go driver do not exist, and its schema drops those of this driver. */
static void a_computedomain_without_conditions_is_not_fine(void **state) {
        (void)state;
        static const char old[] =
                "{'metadata':{'name':'computedomains.resource.nvidia.com'},'spec':{'versions':[{'name':"
                "'v1beta1','served':true,'schema':{'openAPIV3Schema':{'properties':{'spec':{}}}}}]}}";
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, "'status':'NotReady'");
        WHY("computedomain/bench", "domain-unexplained", COMMAND_PROBLEM);
        cluster_put(cluster, &kube_crds, old);
        WHY("computedomain/bench", "domain-old-schema", COMMAND_PROBLEM);
        cluster_confine(cluster, "team-b");
        WHY("computedomain/bench", "domain-confined", COMMAND_DENIED);
        cluster_confine(cluster, NULL);
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        cluster_remove_all(cluster, &doctor_kinds_admission);
        cluster_put(cluster, &tool_kinds_deployments,
                    "{'metadata':{'namespace':'dra','name':'go-controller'},'spec':{'template':{'spec':{"
                    "'containers':[{'name':'compute-domain','image':'registry.example/dra-driver-nvidia-gpu:"
                    "v0.5.0','command':['compute-domain-controller']}]}}}}");
        WHY("computedomain/bench", "domain-go", COMMAND_PROBLEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, why_set_up, why_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_job_is_represented_by_the_pod_that_waits),
                T(the_replacement_of_a_failed_pod_represents_the_job),
                T(a_failed_pod_whose_replacement_has_succeeded_does_not_represent_the_job),
                T(a_pod_without_a_node_represents_the_job_before_one_that_starts),
                T(a_job_that_was_deleted_after_its_end_does_not_lack_pods),
                T(a_job_without_pods_and_events_may_exist),
                T(a_job_without_pods_whose_events_fail_is_not_explained),
                T(a_node_that_withholds_is_explained),
                T(an_event_of_a_tenant_about_a_node_does_not_count),
                T(a_node_that_the_plugin_excludes_is_explained),
                T(a_node_whose_plugin_waits_for_pods_is_explained),
                T(a_taint_that_daemonsets_tolerate_is_no_hint),
                T(imex_of_the_host_is_named_for_a_node_that_offers_its_channel),
                T(the_report_of_the_plugin_replaces_an_expired_event),
                T(a_healthy_node_is_fine),
                T(a_computedomain_that_is_not_ready_is_explained_by_its_conditions),
                T(a_computedomain_without_conditions_is_not_fine),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
