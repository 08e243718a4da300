/* SPDX-License-Identifier: Apache-2.0 */
/* The causes that `why` names for shared claims, claims that several pods name, racks, and the conditions of
 * ComputeDomains in modes without their own IMEX domain. The answers are JSON, without line breaks. */
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
#include "model/rack.h"
#include "world/cluster.h"

#define SHARED "5a000000-0000-4000-8000-000000000001" /* the UID of the ComputeDomain "train" */
#define OTHER "0d000000-0000-4000-8000-000000000001"
#define NOT_THERE "0/7 nodes are available: 7 resourceclaim not available on the node."
#define RUNS ",'containerStatuses':[{'name':'main','state':{'running':{'startedAt':'2026-11-27T11:58:00Z'}}}]"

static struct cluster *cluster;

static int set_up(void **state) {
        (void)state;
        cluster = cluster_new();
        options = (struct options){ .output = "json" };
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        cluster_free(cluster);
        return 0;
}

/* Runs `why`. The answer has this certain cause, or with reason NULL none, and contains `text`. */
static void why(const char *arg, int code, const char *reason, const char *text) {
        struct cli c = { .a = arena_new(1024),
                         .args = &arg,
                         .n_args = 1,
                         .source = cluster_source(cluster),
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        _cleanup_(freep) char *cause =
                reason ? xasprintf("\"causes\":[{\"reason\":\"%s\"", reason) : xstrdup("\"causes\":[]");
        view_init(&c.v, c.source);
        int r = command_why.run(&c);
        const char *answer = buf_str(&c.t.out);
        if (r != code || !strstr(answer, cause) || !strstr(answer, text))
                fail_msg("exit code %d instead of %d, or no '%s' or no '%s' in: %s", r, code, cause, text,
                         answer);
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
}

/* ---- objects ---- */

static void put_controller(const char *mode, const char *isolation, int ready) {
        cluster_put(cluster, &tool_kinds_deployments,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller','labels':{'app.kubernetes.io/version':'0.1.0'}},"
                    "'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'compute-domain','image':"
                    "'registry.example/compute-domains:v0.1.0','command':['compute-domain-controller'],"
                    "'env':[{'name':'IMEX_MODE','value':'%s'},{'name':'IMEX_ISOLATION','value':'%s'}]}]}}},"
                    "'status':{'readyReplicas':%d}}",
                    mode, isolation, ready);
}

/* A Node that offers the shared device. */
static void offer_shared(const char *node) {
        cluster_put(cluster, &kube_nodes,
                    "{'metadata':{'name':'%s','labels':{'" GPU_PRESENT_LABEL "':'true','" GPU_CLIQUE_LABEL
                    "':'%s','" CD_LABEL_DAEMON "':'true','" CD_LABEL_SHARED
                    "':'true'}},'spec':{},'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
                    node, *node == 'a' ? CLUSTER_A : CLUSTER_B);
}

/* The ComputeDomain "train" with the shared claim "train". */
static void put_domain(const char *meta, const char *conditions) {
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-b','name':'train','uid':'" SHARED
                    "'%s},'spec':{'numNodes':0,'channel':{'resourceClaim':{'name':'train'},"
                    "'sharedResourceClaimTemplate':{'name':'train-shared'}}},'status':{'status':'Ready',"
                    "'conditions':[{'type':'Ready','status':'True','reason':'Admitted'}%s]}}",
                    meta, conditions);
}

#define CONDITION(type, status, reason, message)                                                             \
        ",{'type':'" type "','status':'" status "','reason':'" reason "','message':'" message "'}"
#define UNAVAILABLE(reason, message) CONDITION("SharedClaimAvailable", "False", reason, message)

/* A claim with a channel of team-b. */
static void put_claim(const char *name, const char *class, const char *owner, const char *status) {
        cluster_put(
                cluster, &kube_resource_claims,
                "{'metadata':{'namespace':'team-b','name':'%s','ownerReferences':[%s]},'spec':{'devices':{"
                "'requests':[{'name':'channel','exactly':{'deviceClassName':'%s'}}],'config':[{'requests':"
                "['channel'],'opaque':{'driver':'" CD_DRIVER "','parameters':{'apiVersion':'" CD_API_VERSION
                "','kind':'ComputeDomainChannelConfig','domainID':'" SHARED
                "','isolation':'Channel','allocationMode':'Single'}}}]}},'status':{%s}}",
                name, owner, class, status);
}

#define OWNER(uid) "{'apiVersion':'" CD_API_VERSION "','kind':'" CD_KIND "','name':'train','uid':'" uid "'}"
#define ALLOCATED(pool, device)                                                                              \
        "'allocation':{'devices':{'results':[{'request':'channel','driver':'" CD_DRIVER "','pool':'" pool    \
        "','device':'" device "'}],'config':[]}}"
#define SHARED_DEVICE ALLOCATED(CD_POOL_SHARED, CD_DEVICE_SHARED)

static void put_shared_claim(const char *status) {
        put_claim("train", CD_CLASS_SHARED, OWNER(SHARED), status);
}

/* The pod "train-0", with an entry in spec.resourceClaims. */
static void put_pod(const char *entry, const char *node, const char *status) {
        _cleanup_(freep) char *where = node ? xasprintf(",'nodeName':'%s'", node) : xstrdup("");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','labels':{'job-name':'train'}},'spec':{"
                "'containers':[{'name':'main','resources':{'claims':[{'name':'channel'}]}}],"
                "'resourceClaims':[{'name':'channel',%s}]%s},'status':{%s}}",
                entry, where, status);
}

#define NAMES(claim) "'resourceClaimName':'" claim "'"
#define PENDING(message) "'phase':'Pending'" CLUSTER_UNSCHEDULED(message)

static void shared_pod_waits(const char *conditions) {
        cluster_assign_channels(cluster);
        put_domain("", conditions);
        put_shared_claim(SHARED_DEVICE);
        put_pod(NAMES("train"), NULL, PENDING(NOT_THERE));
}

/* ---- a shared claim that no node of the pod can use ---- */

/* failure: IMEX is down on all nodes, and the scheduler finds the shared claim on no node -> `why` names IMEX
 */
static void nodes_without_the_shared_device_are_named_with_their_reason(void **state) {
        (void)state;
        shared_pod_waits("");
        why("train-0", COMMAND_PROBLEM, "NoChannelOffered", "has the label " CD_LABEL_SHARED);
        for (const char *p = "a0a1a2a3b0b1"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                cluster_withhold(cluster, node);
                cluster_event(cluster, "Node", NULL, node, "ComputeDomainDevicesWithheld",
                              "no IMEX channel or daemon is offered on this node (IMEXNotUp): it is down");
        }
        why("train-0", COMMAND_PROBLEM, "IMEXNotUp", "0 of 6 nodes offer it to shared claims");
}

static void the_condition_of_a_shared_claim_explains_a_pod_without_a_node(void **state) {
        (void)state;
        shared_pod_waits(UNAVAILABLE("NoChannelOffered", "No node offers a channel"));
        why("train-0", COMMAND_PROBLEM, "NoChannelOffered", "ComputeDomain train: No node offers a channel");
        cluster_confine(cluster, "team-b");
        why("train-0", COMMAND_PROBLEM, "NoChannelOffered", "ComputeDomain train: No node offers a channel");
}

static void a_node_with_the_shared_device_may_lack_gpus(void **state) {
        (void)state;
        shared_pod_waits("");
        offer_shared("a0");
        offer_shared("a1");
        put_pod(NAMES("train"), NULL,
                PENDING("0/7 nodes are available: 2 Insufficient nvidia.com/gpu, 5 resourceclaim not "
                        "available on the node."));
        why("train-0", COMMAND_PROBLEM, "GPUsNotFree", "2 of 6 nodes offer the channel");
        put_pod(NAMES("train"), NULL,
                PENDING("0/7 nodes are available: 2 Insufficient cpu, 5 resourceclaim "
                        "not available on the node."));
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", "2 of 6 nodes offer the channel");
}

static void without_cluster_rights_nodes_without_the_shared_device_are_possible(void **state) {
        (void)state;
        shared_pod_waits("");
        cluster_confine(cluster, "team-b");
        why("train-0", COMMAND_DENIED, "NoChannelOffered", "\"possible\":true");
}

/* A shared claim uses no channel device. */
static void used_channel_devices_do_not_delay_a_shared_claim(void **state) {
        (void)state;
        shared_pod_waits("");
        for (const char *p = "a0a1a2a3b0b1"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                offer_shared(node);
                cluster_claim(cluster, "team-a", node, OTHER, node);
        }
        put_shared_claim("");
        put_pod(NAMES("train"), NULL, PENDING("0/7 nodes are available: 7 cannot allocate all claims."));
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", "6 of 6 nodes offer the channel");
}

static void a_full_claim_does_not_delay_pods_that_have_reserved_it(void **state) {
        (void)state;
        shared_pod_waits(UNAVAILABLE("ResourceClaimFull", "256 pods use ResourceClaim team-b/train"));
        why("train-0", COMMAND_PROBLEM, "ResourceClaimFull", "256 pods use");
        put_shared_claim(SHARED_DEVICE
                         ",'reservedFor':[{'resource':'pods','name':'train-0','uid':'train-0'}]");
        offer_shared("a0");
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", "1 of 6 nodes offer the channel");
        put_shared_claim(SHARED_DEVICE ",'reservedFor':[{'apiGroup':'scheduling.k8s.io','resource':"
                                       "'podgroups','name':'g','uid':'g'}]");
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", "1 of 6 nodes offer the channel");
}

/* The condition is about another claim. */
static void a_group_with_a_claim_for_one_node_does_not_delay_the_shared_claim(void **state) {
        (void)state;
        shared_pod_waits(UNAVAILABLE("PodGroupOnOneNode", "The Pods of PodGroup g share ResourceClaim x"));
        why("train-0", COMMAND_PROBLEM, "NoChannelOffered", "has the label " CD_LABEL_SHARED);
}

/* ---- a claim for one node ---- */

static void a_claim_on_another_node_is_explained_by_its_origin(void **state) {
        (void)state;
        put_domain("", "");
        put_claim("mine", CD_CLASS_CHANNEL, "", ALLOCATED("a0", "channel-0"));
        put_pod(NAMES("mine"), NULL, PENDING(NOT_THERE));
        why("train-0", COMMAND_PROBLEM, "SharedOnOneNode", "the claim mine belongs to another node");
        put_claim("mine", CD_CLASS_CHANNEL, "", "");
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", NOT_THERE);
        put_claim("mine", CD_CLASS_CHANNEL,
                  "{'apiVersion':'v1','kind':'Pod','name':'train-0','uid':'train-0'}",
                  ALLOCATED("a0", "channel-0"));
        put_pod("'resourceClaimTemplateName':'x'", NULL,
                PENDING(NOT_THERE) ",'resourceClaimStatuses':[{'name':'channel','resourceClaimName':'mine'}"
                                   "]");
        why("train-0", COMMAND_PROBLEM, "SchedulingFailed", "the claim mine belongs to a0");
}

static void a_group_that_shares_a_claim_for_one_node_is_named(void **state) {
        (void)state;
        static const char group[] =
                "{'apiVersion':'scheduling.k8s.io/v1alpha2','kind':'PodGroup','name':'gang',"
                "'uid':'gang'}";
        put_domain("", "");
        put_claim("mine", CD_CLASS_CHANNEL, group, ALLOCATED("a0", "channel-0"));
        put_pod("'resourceClaimTemplateName':'x'", NULL,
                PENDING(NOT_THERE) ",'resourceClaimStatuses':[{'name':'channel','resourceClaimName':'mine'}"
                                   "]");
        why("train-0", COMMAND_PROBLEM, "PodGroupOnOneNode",
            "the pods of PodGroup gang share the claim mine");
        put_domain("", UNAVAILABLE("PodGroupOnOneNode", "recreate the PodGroup with train-shared"));
        why("train-0", COMMAND_PROBLEM, "PodGroupOnOneNode", "recreate the PodGroup with train-shared");
}

/* ---- names ---- */

/* failure: a pod names the shared claim template of a refused ComputeDomain -> `why` names the refusal */
static void a_shared_claim_template_leads_to_its_computedomain(void **state) {
        (void)state;
        cluster_put(
                cluster, &kube_compute_domains,
                "{'metadata':{'namespace':'team-b','name':'train','uid':'" SHARED
                "'},'spec':{'numNodes':0,'channel':{'sharedResourceClaimTemplate':{'name':'train-shared'}}"
                "},'status':{'status':'NotReady','conditions':[{'type':'Ready','status':'False','reason':"
                "'InvalidSpec','message':'shared claims need imex.isolation=channel'}]}}");
        put_pod("'resourceClaimTemplateName':'train-shared'", NULL, "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "InvalidSpec", "shared claims need imex.isolation=channel");
}

static void a_foreign_claim_with_the_name_of_the_shared_claim_is_named(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        put_domain("", UNAVAILABLE("ResourceClaimNameTaken", "ResourceClaim team-b/train already exists"));
        put_claim("train", CD_CLASS_CHANNEL, OWNER(OTHER), ALLOCATED("a0", "channel-0"));
        put_pod(NAMES("train"), NULL, PENDING(NOT_THERE));
        why("train-0", COMMAND_PROBLEM, "ResourceClaimNameTaken", "did not create the claim train");
        cluster_put(
                cluster, &kube_resource_claims,
                "{'metadata':{'namespace':'team-b','name':'train'},'spec':{'devices':{'requests':[{'name':"
                "'gpu','exactly':{'deviceClassName':'gpu.nvidia.com'}}]}},'status':{}}");
        put_pod(NAMES("train"), "a0", "'phase':'Running'" RUNS);
        why("train-0", COMMAND_PROBLEM, "ResourceClaimNameTaken", "did not create the claim train");
        cluster_put(cluster, &kube_resource_claims,
                    "{'metadata':{'namespace':'team-b','name':'train','deletionTimestamp':"
                    "'2026-11-27T11:59:50Z'},'spec':{'devices':{}},'status':{}}");
        put_pod(NAMES("train"), NULL, "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "ResourceClaimTerminating",
            "which ComputeDomain train needs, is being deleted");
}

static void a_computedomain_that_is_being_deleted_creates_no_claim(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        put_domain(",'deletionTimestamp':'2026-11-27T11:59:50Z'", "");
        put_pod(NAMES("train"), NULL, "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "domain-deleting", "ComputeDomain train is being deleted");
        put_pod("'resourceClaimTemplateName':'train-shared'", NULL, "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "domain-deleting", "ComputeDomain train is being deleted");
}

/* failure: the claim template of a rack does not exist in the namespace -> `why` names what prevents it */
static void a_missing_claim_template_of_a_rack_is_explained(void **state) {
        (void)state;
        put_pod("'resourceClaimTemplateName':'" RACK_TEMPLATE_PREFIX "r7'", NULL, "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "ClaimTemplateNotFound", "imex-channel-r7");
        cluster_put(cluster, &kube_namespaces, "{'metadata':{'name':'team-b','labels':{}}}");
        why("train-0", COMMAND_PROBLEM, "ClaimTemplateNotFound",
            "kubectl label namespace team-b " CD_LABEL_RACK_DOMAINS "=enabled");
        cluster_put(cluster, &kube_namespaces,
                    "{'metadata':{'name':'team-b','labels':{'" CD_LABEL_RACK_DOMAINS "':'true'}}}");
        why("train-0", COMMAND_PROBLEM, "RackDomainsLabelInvalid", "of namespace team-b has the value");
        cluster_event(cluster, "Node", NULL, "n1", REASON_TOO_MANY_RACKS_OF_NODE,
                      "rack r7 gets no ComputeDomain");
        why("train-0", COMMAND_PROBLEM, "TooManyRacksOfNode", "rack r7 gets no ComputeDomain");
        cluster_put(cluster, &kube_namespaces, "{'metadata':{'name':'team-b','labels':{}}}");
        cluster_event(cluster, "Namespace", NULL, "team-b", REASON_TOO_MANY_RACK_DOMAINS,
                      "no ComputeDomain is created here for rack r7");
        why("train-0", COMMAND_PROBLEM, "TooManyRackDomains", "for rack r7");
        cluster_domain(cluster, "team-b", "r7", OTHER, "");
        why("train-0", COMMAND_PROBLEM, "RackNameTaken", "the ComputeDomain r7");
}

static void node_brought(const char *rack) {
        _cleanup_(freep) char *message = xasprintf(
                "rack %s gets no ComputeDomain, because this node has already brought 8 new racks", rack);
        cluster_event(cluster, "Node", NULL, "n1", REASON_TOO_MANY_RACKS_OF_NODE, message);
}

static void pod_names_template(const char *rack) {
        _cleanup_(freep) char *entry =
                xasprintf("'resourceClaimTemplateName':'" RACK_TEMPLATE_PREFIX "%s'", rack);
        put_pod(entry, NULL, "'phase':'Pending'");
}

/* failure: a rack without a label gets no ComputeDomain -> `why` finds the Event, which has its clique ID */
static void an_event_with_the_id_of_a_rack_explains_its_claim_template(void **state) {
        (void)state;
        cluster_put(cluster, &kube_namespaces,
                    "{'metadata':{'name':'team-b','labels':{'" CD_LABEL_RACK_DOMAINS "':'enabled'}}}");
        node_brought(CLUSTER_A);
        pod_names_template("rack-2df84740-1");
        why("train-0", COMMAND_PROBLEM, "TooManyRacksOfNode", "rack " CLUSTER_A);
        pod_names_template("rack-2df84740-d3cb-b5ce-4e7e-98352b5a71b5-1");
        why("train-0", COMMAND_PROBLEM, "TooManyRacksOfNode", "rack " CLUSTER_A);
        cluster_event(cluster, "Namespace", NULL, "team-b", REASON_TOO_MANY_RACK_DOMAINS,
                      "no ComputeDomain is created here for rack " CLUSTER_B
                      ", because 1000 ComputeDomains of racks already exist");
        pod_names_template("rack-2df84740-2");
        why("train-0", COMMAND_PROBLEM, "TooManyRackDomains", "rack " CLUSTER_B);
}

/* failure: the claim templates of two racks have similar names -> `why` does not confuse the racks */
static void a_rack_is_not_taken_for_another_with_a_similar_name(void **state) {
        (void)state;
        cluster_put(cluster, &kube_namespaces,
                    "{'metadata':{'name':'team-b','labels':{'" CD_LABEL_RACK_DOMAINS "':'enabled'}}}");
        cluster_put(cluster, &kube_resource_claim_templates,
                    "{'metadata':{'namespace':'team-b','name':'" RACK_TEMPLATE_PREFIX "rack-12'},'spec':{}}");
        node_brought("rack-11");
        pod_names_template("rack-1");
        why("train-0", COMMAND_PROBLEM, "ClaimTemplateNotFound",
            "\"no claim template \\\"imex-channel-rack-1\\\" in namespace team-b\"");
        pod_names_template("rack-11");
        why("train-0", COMMAND_PROBLEM, "TooManyRacksOfNode", "rack rack-11 gets no ComputeDomain");
}

/* ---- pods with a node ---- */

/* The pod runs on a0 with the claim c. */
static void put_running_pod(void) {
        cluster_claim(cluster, "team-b", "c", CLUSTER_BENCH, "a0");
        put_pod(NAMES("c"), "a0", "'phase':'Running'" RUNS);
}

#define NO_NODE                                                                                              \
        "'phase':'Pending','containerStatuses':[{'name':'main','state':{'waiting':{'reason':"                \
        "'CrashLoopBackOff','message':'back-off 10s'}},'lastState':{'terminated':{'reason':'StartError',"    \
        "'message':'error mounting /dev/nvidia-caps-imex-channels/channel0: no such file or directory'}}}]"

static void a_missing_device_node_of_the_host_is_named(void **state) {
        (void)state;
        put_controller("hostManaged", "domain", 2);
        cluster_claim(cluster, "team-b", "c", CLUSTER_BENCH, "a0");
        put_pod(NAMES("c"), "a0", NO_NODE);
        why("train-0", COMMAND_PROBLEM, "IMEXChannelNodeMissing", "NVreg_CreateImexChannel0");
        put_controller("driverManaged", "domain", 2);
        why("train-0", COMMAND_PROBLEM, "IMEXChannelNodeMissing", "cannot make a channel's device node");
}

/* A container has its own device node, unless the pod has hostUsers: false, and then it does not start. */
static void a_pod_that_runs_needs_no_device_node_of_the_host(void **state) {
        (void)state;
        put_running_pod();
        cluster_event(cluster, "Pod", "team-b", "train-0", REASON_IMEX_CHANNEL_NODE_MISSING,
                      "node a0 has no /dev/nvidia-caps-imex-channels/channel0");
        why("train-0", COMMAND_FINE, NULL, "The pod can use NVLink between nodes");
}

#define NOT_PROBED                                                                                           \
        CONDITION("HostIMEXHealthy", "Unknown", "NotProbed", "Not every kubelet plugin has reported")
#define ADMITTED "'status':'Ready','conditions':[{'type':'Ready','status':'True','reason':'Admitted'}"

static void an_unknown_state_of_imex_is_no_cause_for_a_pod_that_runs(void **state) {
        (void)state;
        put_controller("hostManaged", "domain", 2);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, ADMITTED NOT_PROBED "]");
        put_running_pod();
        why("train-0", COMMAND_FINE, NULL, "HostIMEXHealthy is Unknown");
        why("computedomain/bench", COMMAND_PROBLEM, "NotProbed", "Not every kubelet plugin has reported");
}

/* failure: imex.hostProbeInterval=0, so no plugin reports IMEX -> `why` does not report this as a problem */
static void a_host_that_is_never_probed_is_no_problem(void **state) {
        (void)state;
        put_controller("hostManaged", "domain", 2);
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':[{"
                    "'name':'compute-domains','command':['compute-domain-kubelet-plugin'],'env':[{'name':"
                    "'IMEX_HOST_PROBE_INTERVAL','value':'0'}]}]}}},'status':{'desiredNumberScheduled':6,"
                    "'currentNumberScheduled':6,'numberReady':6}}");
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, ADMITTED NOT_PROBED "]");
        why("computedomain/bench", COMMAND_FINE, NULL, "NotProbed");
}

static void a_channel_that_is_missing_in_another_rack_delays_no_pod_here(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       ADMITTED CONDITION("ChannelAssigned", "False", "Waiting",
                                          "none on rack-b yet: it is full; channel 5 on rack-a") "]");
        cluster_claim(cluster, "team-b", "c", CLUSTER_BENCH, "b0");
        put_pod(NAMES("c"), "b0", "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "Waiting", "it is full");
        cluster_claim(cluster, "team-b", "c", CLUSTER_BENCH, "a0");
        put_pod(NAMES("c"), "a0", "'phase':'Pending'");
        why("train-0", COMMAND_PROBLEM, "NodesNotReady", "has not joined yet");
}

static void an_earlier_failure_of_imex_is_shown_for_a_pod_that_runs(void **state) {
        (void)state;
        put_running_pod();
        cluster_event(cluster, "ResourceClaim", "team-b", "c", REASON_IMEX_DAEMON_NOT_READY,
                      "it was BACKOFF");
        why("train-0", COMMAND_FINE, NULL, "while the claim was in use: it was BACKOFF");
}

static void an_evicted_pod_shows_the_reason_of_its_eviction(void **state) {
        (void)state;
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'team-b','name':'train-0','deletionTimestamp':'2026-11-27T12:00:"
                "10Z'},'spec':{'nodeName':'a0','containers':[]},'status':{'phase':'Running'}}");
        cluster_event(cluster, "Pod", "team-b", "train-0", REASON_EVICTED_FOR_IMEX, "a0 reports DOWN");
        why("train-0", COMMAND_FINE, NULL, "The controller has evicted the pod: a0 reports DOWN");
}

/* ---- nodes with host-managed IMEX ---- */

static void host_reports(const char *annotations) {
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-kubelet-plugin-a2','annotations':{%s}},'spec':{'nodeName':'a2',"
                "'containers':[{'name':'compute-domains','command':['compute-domain-kubelet-plugin']}]},"
                "'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}",
                annotations);
}

#define HOST(state, reason)                                                                                  \
        "'" IMEX_ANNOTATION_HOST_STATE "':'" state "','" IMEX_ANNOTATION_HOST_REASON "':'" reason "'"

/* failure: IMEX of a host has been down for longer than Events are kept -> `why node/NAME` still names it */
static void the_state_of_the_hosts_imex_needs_no_event(void **state) {
        (void)state;
        put_controller("hostManaged", "domain", 2);
        host_reports(HOST("DOWN", "no answer"));
        why("node/a2", COMMAND_PROBLEM, "HostIMEXDown", "on the host a2 is DOWN: no answer");
        host_reports(HOST("DEGRADED", "a3 is missing"));
        why("node/a2", COMMAND_PROBLEM, "HostIMEXDegraded", "a3 is missing");
        host_reports("'" IMEX_ANNOTATION_HOST_REASON "':'no config.cfg beside the socket'");
        why("node/a2", COMMAND_PROBLEM, "HostIMEXUnknown", "is unknown: no config.cfg beside the socket");
}

static void an_earlier_event_about_the_hosts_imex_is_no_cause(void **state) {
        (void)state;
        put_controller("hostManaged", "domain", 2);
        cluster_event(cluster, "Node", NULL, "a2", REASON_HOST_IMEX_DOWN, "it was down");
        why("node/a2", COMMAND_PROBLEM, "HostIMEXDown", "it was down");
        cluster_event(cluster, "Node", NULL, "a2", REASON_HOST_IMEX_DEGRADED, "a3 is missing");
        why("node/a2", COMMAND_FINE, NULL, "Ready");
        cluster_event(cluster, "Node", NULL, "a2", REASON_HOST_IMEX_DOWN, "it was down again");
        host_reports("'" IMEX_ANNOTATION_HOST_STATE "':'UP'");
        why("node/a2", COMMAND_FINE, NULL, "UP");
}

/* ---- ComputeDomains ---- */

#define CLOSED CONDITION("StartGateOpen", "False", "StartGateClosed", "0 of 4 nodes are connected")
#define IMEX(reason) CONDITION("IMEXHealthy", "Unknown", reason, "-")

static void a_closed_gate_without_pods_is_no_problem(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, ADMITTED IMEX("NoNodes") CLOSED "]");
        why("computedomain/bench", COMMAND_FINE, NULL, "StartGateClosed");
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, ADMITTED IMEX("NotProbed") CLOSED "]");
        why("computedomain/bench", COMMAND_PROBLEM, "NotProbed", "\"reason\":\"StartGateClosed\"");
}

/* The allocation of the shared claim names no node. */
static void the_nodes_of_a_shared_claim_are_those_that_report_its_channel(void **state) {
        (void)state;
        cluster_assign_channels(cluster);
        put_domain("", "");
        put_shared_claim("'allocation':{'devices':{'results':[{'request':'channel','driver':'" CD_DRIVER
                         "','pool':'" CD_POOL_SHARED "','device':'" CD_DEVICE_SHARED
                         "'}],'config':[{'source':'FromClaim','requests':['channel'],'opaque':{'driver':"
                         "'" CD_DRIVER "','parameters':{'apiVersion':'" CD_API_VERSION
                         "','kind':'ComputeDomainChannelConfig','domainID':'" SHARED
                         "','isolation':'Channel','allocationMode':'Single'}}}]}},'reservedFor':[{'resource':"
                         "'pods','name':'train-0','uid':'train-0'}]");
        why("computedomain/train", COMMAND_FINE, NULL, "\"text\":\"Admitted\"}]");
        host_reports("'" IMEX_ANNOTATION_HOST_CHANNELS "':'{\\u0022" CLUSTER_A
                     "\\u0022:{\\u0022uid\\u0022:\\u0022\\u0022,\\u0022channelCount\\u0022:2048,"
                     "\\u0022asks\\u0022:[\\u0022" SHARED "\\u0022]}}'");
        why("computedomain/train", COMMAND_FINE, NULL,
            "a2, rack-a: daemon Pod compute-domain-daemon-a2 has not joined yet");
}

/* failure: no controller runs and a ComputeDomain stays Terminating -> `why` names the controller */
static void a_deletion_without_a_controller_is_explained(void **state) {
        (void)state;
        put_domain(",'deletionTimestamp':'2026-11-27T11:59:30Z'", "");
        why("computedomain/train", COMMAND_FINE, NULL, "being deleted");
        put_domain(",'deletionTimestamp':'2026-11-27T11:58:00Z'", "");
        why("computedomain/train", COMMAND_PROBLEM, "NoController", "no controller has ended");
        put_controller("driverManaged", "channel", 0);
        why("computedomain/train", COMMAND_PROBLEM, "NoController", "no controller of the driver is ready");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(nodes_without_the_shared_device_are_named_with_their_reason),
                T(the_condition_of_a_shared_claim_explains_a_pod_without_a_node),
                T(a_node_with_the_shared_device_may_lack_gpus),
                T(without_cluster_rights_nodes_without_the_shared_device_are_possible),
                T(used_channel_devices_do_not_delay_a_shared_claim),
                T(a_full_claim_does_not_delay_pods_that_have_reserved_it),
                T(a_group_with_a_claim_for_one_node_does_not_delay_the_shared_claim),
                T(a_claim_on_another_node_is_explained_by_its_origin),
                T(a_group_that_shares_a_claim_for_one_node_is_named),
                T(a_shared_claim_template_leads_to_its_computedomain),
                T(a_foreign_claim_with_the_name_of_the_shared_claim_is_named),
                T(a_computedomain_that_is_being_deleted_creates_no_claim),
                T(a_missing_claim_template_of_a_rack_is_explained),
                T(an_event_with_the_id_of_a_rack_explains_its_claim_template),
                T(a_rack_is_not_taken_for_another_with_a_similar_name),
                T(a_missing_device_node_of_the_host_is_named),
                T(a_pod_that_runs_needs_no_device_node_of_the_host),
                T(an_unknown_state_of_imex_is_no_cause_for_a_pod_that_runs),
                T(a_host_that_is_never_probed_is_no_problem),
                T(a_channel_that_is_missing_in_another_rack_delays_no_pod_here),
                T(an_earlier_failure_of_imex_is_shown_for_a_pod_that_runs),
                T(an_evicted_pod_shows_the_reason_of_its_eviction),
                T(the_state_of_the_hosts_imex_needs_no_event),
                T(an_earlier_event_about_the_hosts_imex_is_no_cause),
                T(a_closed_gate_without_pods_is_no_problem),
                T(the_nodes_of_a_shared_claim_are_those_that_report_its_channel),
                T(a_deletion_without_a_controller_is_explained),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
