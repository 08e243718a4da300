/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor`: a healthy cluster has no finding, each fault of cli/doctor.def is found, and what cannot be read
 * is no finding. The texts are in test/unit/golden. */
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
#include "cli/bundle.h"
#include "cli/command_table.h"
#include "cli/doctor.h"
#include "unit/golden.h"
#include "world/cluster.h"

static const char *const schemas[] = {
#include "schemas.inc"
};

static struct cluster *cluster;

/* ---- a healthy cluster ---- */

static void put_crd(size_t i, const char *name) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s.resource.nvidia.com\"},\"spec\":{\"versions\":[{\"name\":"
                "\"v1beta1\",\"served\":true,\"schema\":{\"openAPIV3Schema\":%s}}]},\"status\":{"
                "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}",
                name, schemas[i]);
        cluster_put_json(cluster, &kube_crds, json);
}

static void put_policy(const char *name) {
        cluster_put(cluster, &doctor_kinds_admission, "{'metadata':{'name':'cd-%s'},'spec':{}}", name);
        cluster_put(cluster, &doctor_kinds_bindings,
                    "{'metadata':{'name':'cd-%s'},'spec':{'policyName':'cd-%s'}}", name, name);
}

static void put_namespace(const char *level) {
        cluster_put(cluster, &kube_namespaces,
                    "{'metadata':{'name':'" CLUSTER_NS
                    "','labels':{'pod-security.kubernetes.io/enforce':'%s'}}}",
                    level);
}

static void put_lease(const char *renewed) {
        cluster_put(cluster, &kube_leases,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-controller'},'spec':{'holderIdentity':'controller-0','"
                    "leaseDurationSeconds':15,'renewTime':'%s'}}",
                    renewed);
}

/* The plugin's Pod on a node. `status` is the content of the status. */
static void put_plugin(const char *node, const char *image, const char *status) {
        cluster_put(cluster, &kube_pods,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin-%s','labels':{}},'spec':{'nodeName':'%s','"
                    "containers':[{'name':'compute-domains','image':'%s','command':['"
                    "compute-domain-kubelet-plugin']},{'name':'gpus','image':'%s','command':['"
                    "gpu-kubelet-plugin']}]},'status':{%s}}",
                    node, node, image, image, status);
}

#define IMAGE "registry.example/compute-domains:v0.1.0"
#define RUNS                                                                                                 \
        "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],'containerStatuses':[{'name':'"   \
        "compute-domains','state':{'running':{'startedAt':'2026-11-27T08:00:00Z'}}},{'name':'gpus','state'"  \
        ":{'running':{'startedAt':'2026-11-27T08:00:00Z'}}}]"

static void put_daemon_set(const char *image, int desired, int current) {
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-kubelet-plugin'},'spec':{'template':{'spec':{'containers':[{'"
                    "name':'compute-domains','image':'%s','command':['compute-domain-kubelet-plugin']}]}}},'"
                    "status':{'desiredNumberScheduled':%d,'currentNumberScheduled':%d,'numberReady':%d}}",
                    image, desired, current, current);
}

static void put_class(const char *name, const char *spec) {
        cluster_put(cluster, &tool_kinds_device_classes, "{'metadata':{'name':'%s'},'spec':{%s}}", name,
                    spec);
}

static void begin_healthy(void) {
        static const char *const policies[] = {
                "fabrics",        "controller-nodes", "controller-daemonsets", "controller-claimtemplates",
                "resourceslices", "events",           "daemon-claims",         "daemon-pods",
                "go-daemon-pods"
        };
        static const char *const nodes[] = { "a0", "a1", "a2", "a3", "b0", "b1" };
        cluster = cluster_new();
        options = (struct options){ .output = "table" };
        doctor_options = (struct doctor_options){ 0 };
        put_crd(0, "computedomains");
        put_crd(1, "computedomaincliques");
        put_crd(2, "computedomainfabrics");
        for (size_t i = 0; i < ARRAY_LEN(policies); i++)
                put_policy(policies[i]);
        put_namespace("privileged");
        put_lease("2026-11-27T11:59:58.000000Z");
        put_class(CD_CLASS_CHANNEL, "");
        put_class(CD_CLASS_DAEMON, "");
        put_daemon_set(IMAGE, 6, 6);
        for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                put_plugin(nodes[i], IMAGE, RUNS);
        /* The policy of the chart. */
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'compute-domains-daemon'},'spec':{'podSelector':{'matchLabels':{"
                    "'" CD_LABEL_COMPONENT "':'" CD_DAEMON_OBJECT "'}},'policyTypes':['Ingress'],'ingress':[{"
                    "'from':[{}],'ports':[{'protocol':'TCP','port':50005},{'protocol':'TCP','port':28000,"
                    "'endPort':32095}]}]}}");
}

static void end_cluster(void) {
        cluster_free(cluster);
        cluster = NULL;
}

/* A cluster without any driver. */
static void begin_empty(void) {
        begin_healthy();
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
        cluster_remove_all(cluster, &kube_pods);
        cluster_remove_all(cluster, &kube_namespaces);
        cluster_remove_all(cluster, &tool_kinds_device_classes);
        cluster_remove_all(cluster, &kube_crds);
}

#define GO_NS "dra-driver-nvidia-gpu"

static void put_go_driver(void) {
        cluster_put(cluster, &kube_daemonsets,
                    "{'metadata':{'namespace':'" GO_NS
                    "','name':'dra-driver-nvidia-gpu-kubelet-plugin','labels':{'app.kubernetes.io/instance':"
                    "'dra'}},'spec':{'template':{'spec':{'containers':[{'name':'compute-domains','image':'"
                    "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0@sha256:00','command':['"
                    "compute-domain-kubelet-plugin']}]}}},'status':{}}");
        cluster_put(
                cluster, &tool_kinds_deployments,
                "{'metadata':{'namespace':'" GO_NS
                "','name':'dra-driver-nvidia-gpu-controller'},'spec':{'replicas':1,'template':{'spec':{'"
                "containers':[{'name':'compute-domain','image':'mirror.example:5000/"
                "dra-driver-nvidia-gpu:v0.5.0','command':['compute-domain-controller']}]}}},'status':{}}");
}

/* The Go driver, and a ComputeDomain that it has formed. */
static void begin_go(void) {
        begin_empty();
        put_go_driver();
        put_crd(0, "computedomains");
        put_crd(1, "computedomaincliques");
        put_class(CD_CLASS_CHANNEL, "");
        cluster_domain(cluster, "team-a", "llm", "aa000000-0000-4000-8000-000000000001",
                       "'status':'Ready','nodes':[{'name':'a0','cliqueID':'" CLUSTER_A
                       "','index':0,'status':'Ready'}]");
        cluster_claim(cluster, "team-a", "llm-0.channel", "aa000000-0000-4000-8000-000000000001", "a0");
        cluster_put(cluster, &doctor_kinds_cliques,
                    "{'metadata':{'namespace':'" GO_NS
                    "','name':'aa000000-0000-4000-8000-000000000001." CLUSTER_A "','labels':{'" CD_LABEL
                    "':'aa000000-0000-4000-8000-000000000001'}}}");
}

/* ---- the faults ---- */

static void put_node(const char *name, const char *labels, const char *info, const char *more) {
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'%s','labels':{%s}},'spec':{},'status':{'conditions':[{'type':'Ready',"
                "'status':'True'}],'nodeInfo':{%s}%s}}",
                name, labels, info, more);
}
#define GPU_LABEL "'" GPU_PRESENT_LABEL "':'true'"
#define INFO(kubelet, runtime, kernel)                                                                       \
        "'kubeletVersion':'" kubelet "','containerRuntimeVersion':'" runtime "','kernelVersion':'" kernel "'"
#define FINE INFO("v1.36.3", "containerd://2.1.4", "6.8.0-45-generic")

static void old_kubernetes(void) {
        cluster_version(cluster, "v1.31.9-gke.100");
        put_node("a0", GPU_LABEL, INFO("v1.31.2", "containerd://2.1.4", "6.8.0"), "");
}
static void no_dra(void) {
        cluster_fail(cluster, &tool_kinds_device_classes, ERR_NOT_FOUND, "the server could not find it");
}
static void no_policies(void) {
        cluster_fail(cluster, &doctor_kinds_admission, ERR_NOT_FOUND, "the server could not find it");
}
static void old_kernel(void) {
        put_node("a0", GPU_LABEL, INFO("v1.36.3", "containerd://2.1.4", "5.4.0-200-generic"), "");
}
static void old_runtime(void) {
        put_node("a0", GPU_LABEL, INFO("v1.36.3", "containerd://1.6.32", "6.8.0"), "");
        put_node("b0", GPU_LABEL, INFO("v1.36.3", "docker://24.0.7", "6.8.0"), "");
}
static void unlabelled(void) {
        put_node("c01", "'cloud.google.com/gke-accelerator':'nvidia-gb200'", FINE, "");
        put_node("c02", "", FINE, ",'allocatable':{'nvidia.com/gpu':'4'}");
        put_node("cpu", "", FINE, ",'allocatable':{'nvidia.com/gpu':'0'}");
}
static void baseline(void) {
        put_namespace("baseline");
}
static void small_quota(void) {
        cluster_put(cluster, &tool_kinds_quotas,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'small'},'spec':{},'status':{'hard':{'pods':'10'},'used':{'pods':'4'}}}");
        /* It counts other pods. */
        cluster_put(
                cluster, &tool_kinds_quotas,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'best-effort'},'spec':{'scopes':['BestEffort']},'status':{'hard':{'pods':'0'}}}");
}
static void gpus_twice(void) {
        put_class("gpu.nvidia.com", "'extendedResourceName':'nvidia.com/gpu'");
        put_node("a0", GPU_LABEL, FINE, ",'allocatable':{'nvidia.com/gpu':'4'}");
}
static void no_driver(void) {
        cluster_remove_all(cluster, &tool_kinds_deployments);
        cluster_remove_all(cluster, &kube_daemonsets);
}
static void put_controller(int replicas, int ready, const char *image) {
        cluster_put(
                cluster, &tool_kinds_deployments,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-controller'},'spec':{'replicas':%d,'template':{'spec':{'"
                "containers':[{'name':'compute-domain','image':'%s','command':['compute-domain-controller"
                "'],'env':[{'name':'IMEX_MODE','value':'driverManaged'}]}]}}},'status':{'readyReplicas':%d"
                "}}",
                replicas, image, ready);
}
static void controller_down(void) {
        put_controller(2, 0, IMAGE);
}
static void no_leader(void) {
        put_lease("2026-11-27T11:50:00.000000Z");
}
static void crd_missing(void) {
        cluster_remove(cluster, &kube_crds, NULL, "computedomainfabrics.resource.nvidia.com");
}
static void crd_differs(void) {
        put_crd(0, "computedomainfabrics");
}
static void class_missing(void) {
        cluster_remove(cluster, &tool_kinds_device_classes, NULL, CD_CLASS_DAEMON);
}
static void policy_missing(void) {
        cluster_remove(cluster, &doctor_kinds_admission, NULL, "cd-daemon-pods");
        cluster_remove(cluster, &doctor_kinds_bindings, NULL, "cd-fabrics");
}
static void versions_differ(void) {
        put_controller(2, 2, "registry.example/compute-domains:v0.2.0");
        put_plugin("b1", "registry.example/compute-domains:v0.0.9", RUNS);
}
static void denying_policy(void) {
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'default-deny'},'spec':{'podSelector':{},'policyTypes':['Ingress','Egress']}}");
        cluster_put(cluster, &tool_kinds_policies,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'dns'},'spec':{'podSelector':{},'policyTypes':['Egress'],'egress':[{'ports':[{"
                    "'protocol':'UDP','port':53},{'protocol':'TCP','port':53}]}]}}");
}
static void node_down(void) {
        cluster_put(
                cluster, &kube_nodes,
                "{'metadata':{'name':'a0','labels':{" GPU_LABEL
                "}},'spec':{},'status':{'conditions':[{'type':'Ready','status':'Unknown'}],'nodeInfo':{" FINE
                "}}}");
}
static void plugin_missing(void) {
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domains-kubelet-plugin-a1");
        put_plugin("a2", IMAGE,
                   "'phase':'Pending','conditions':[{'type':'Ready','status':'False'}],'containerStatuses':[{"
                   "'name':'compute-domains','state':{'waiting':{'reason':'ImagePullBackOff','message':'Back-"
                   "off pulling image'}}}]");
}
static void plugins_refused(void) {
        cluster_remove_all(cluster, &kube_pods);
        cluster_remove_all(cluster, &kube_resource_slices);
        put_daemon_set(IMAGE, 6, 0);
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, "compute-domains-kubelet-plugin", "FailedCreate",
                      "Error creating: pods \\\"compute-domains-kubelet-plugin-x\\\" is forbidden: violates "
                      "PodSecurity \\\"baseline:latest\\\": privileged");
}
static void withheld(const char *node, const char *reason, const char *why) {
        _cleanup_(freep) char *text =
                xasprintf("no IMEX channel or daemon is offered on this node (%s): %s", reason, why);
        cluster_withhold(cluster, node);
        cluster_event(cluster, "Node", NULL, node, "ComputeDomainDevicesWithheld", text);
}
static void withholds(void) {
        cluster_withhold(cluster, "a0");
}
static void driver_not_found(void) {
        withheld("a0", "DriverNotFound", "no libnvidia-ml.so.1 under /run/nvidia/driver");
}
static void no_channels(void) {
        withheld("a0", "NoIMEXChannels", "/proc/devices lacks nvidia-caps-imex-channels");
}
static void nvml_fails(void) {
        withheld("a0", "DriverNotReady", "NVML: Driver/library version mismatch");
}
static void fabric_error(void) {
        for (const char *p = "a0a1a2a3b0b1"; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 };
                withheld(node, "FabricError", "2 of 4 GPUs are not registered");
        }
}
static void node_event(const char *node, const char *reason, const char *message) {
        cluster_event(cluster, "Node", NULL, node, reason, message);
}
static void uvm(void) {
        node_event("a0", "UVMNotLoaded", "the kernel module nvidia_uvm is not loaded");
        node_event("b1", "UVMNotLoaded", "the kernel module nvidia_uvm is not loaded");
}
static void hook_not_executable(void) {
        node_event("a0", "HookNotExecutable", "/var/lib/kubelet/plugins is mounted noexec");
}
static void hook_fails(void) {
        node_event("a0", "HookFailsSelfTest", "move_mount: Invalid argument");
}
static void inventory_stale(void) {
        node_event("a0", "GPUInventoryStale", "NVML does not answer");
}
static void gpu_left_out(void) {
        node_event("a0", "GPULeftOut", "GPU 3: NVML error 15");
}
static void toolkit(void) {
        node_event("a0", "ToolkitGivesGPUs", "the default runtime is nvidia");
}
static void other_event(void) {
        node_event("a0", "DevicePluginActive", "a device plugin offers the GPUs");
}
static void host_imex(void) {
        node_event("a0", "HostIMEXConflict", "nvidia-imex also runs on the host");
}
static void daemon_not_created(void) {
        cluster_remove(cluster, &kube_pods, CLUSTER_NS, "compute-domain-daemon-a0");
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, "compute-domain-daemon", "FailedCreate",
                      "Error creating: insufficient quota to match these scopes: [{PriorityClass In "
                      "[system-node-critical]}]");
}
static void daemon_not_running(void) {
        cluster_daemon(
                cluster, "a0", "",
                "'phase':'Running','containerStatuses':[{'name':'compute-domain-daemon','state':{'waiting"
                "':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{'reason':'Error','message':"
                "'COMPUTE_DOMAIN_CLAIM_UID is not set: the container runtime has not applied the CDI "
                "file'}}}]");
}
static void daemons_crash(void) {
        cluster_put(
                cluster, &kube_daemonsets,
                "{'metadata':{'namespace':'" CLUSTER_NS "','name':'" CD_DAEMON_OBJECT
                "'},'spec':{'template':{'spec':{'containers':[{'name':'" CD_DAEMON_OBJECT
                "','command':['" CD_DAEMON_OBJECT
                "']}]}}},'status':{'desiredNumberScheduled':6,'currentNumberScheduled':6,'numberReady':5}}");
        cluster_event(cluster, "DaemonSet", CLUSTER_NS, CD_DAEMON_OBJECT, "DaemonsCrash",
                      "daemons with the newest Pod template crash on a0");
}
static void put_condition(const char *type, const char *reason, const char *message) {
        cluster_put(cluster, &kube_fabrics,
                    "{'metadata':{'name':'" CLUSTER_A
                    "'},'rack':'rack-a','tableOf':'x','domains':[],'channels'"
                    ":[],'conditions':[{'type':'%s','status':'True','reason':'%s','message':'%s','"
                    "lastTransitionTime':'2026-11-27T11:00:00Z'}]}",
                    type, reason, message);
}
static void channels_held(void) {
        put_condition("ChannelsHeld", "NodesHoldChannels", "a0 has not renewed its Lease");
}
static void other_condition(void) {
        put_condition("ChannelsExhausted", "AllChannelsAssigned", "2047 of 2047 channels");
}
static void decision_wrong(void) {
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH,
                       "'status':'NotReady','conditions':[{'type':'Ready','status':'False','reason':'"
                       "DecisionWrong','message':'a0 would have two indices','lastTransitionTime':'"
                       "2026-11-27T11:59:59Z'}]");
}
static void domain_condition(void) {
        cluster_domain(
                cluster, "team-b", "bench", CLUSTER_BENCH,
                "'status':'NotReady','conditions':[{'type':'Ready','status':'False','reason':'NodeLost',"
                "'message':'a0 does not answer','lastTransitionTime':'2026-11-27T11:00:00Z'}]");
}
static void go_missing(void) {
        cluster_remove_all(cluster, &kube_daemonsets);
}
static void go_gpu_class(void) {
        put_class("gpu.nvidia.com", "");
}
static void go_domain(void) {
        cluster_domain(cluster, "team-b", "bench", CLUSTER_BENCH, "'status':'NotReady'");
}
static void go_cliques(void) {
        cluster_remove_all(cluster, &doctor_kinds_cliques);
}
static void go_claim(void) {
        cluster_claim(cluster, "team-a", "llm-1.channel", "aa000000-0000-4000-8000-000000000001", NULL);
}
static void go_crd(void) {
        cluster_put(cluster, &kube_crds,
                    "{'metadata':{'name':'computedomains.resource.nvidia.com','ownerReferences':[{'kind':'"
                    "ClusterPolicy','name':'cluster-policy'}]},'spec':{}}");
}
static void node_unknown(void) {
        cluster_remove(cluster, &kube_nodes, NULL, "a0");
}
static void node_plugin(void) {
        put_plugin(
                "a0", IMAGE,
                "'phase':'Pending','containerStatuses':[{'name':'compute-domains','state':{'waiting':{'reason"
                "':'ErrImagePull','message':'not found'}}}]");
}
static void node_init(void) {
        put_plugin(
                "a0", IMAGE,
                "'phase':'Pending','initContainerStatuses':[{'name':'init-container','state':{'running':{'"
                "startedAt':'2026-11-27T11:00:00Z'}}}],'containerStatuses':[{'name':'compute-domains','state'"
                ":{'waiting':{'reason':'PodInitializing'}}}]");
}
static void node_check(void) {
        setenv("FAKE_EXEC", "problem", 1);
}

static const struct fault_case {
        enum doctor_fault fault;
        unsigned mode;
        void (*provoke)(void);
} cases[] = {
        { FAULT_KUBERNETES_OLD, DOCTOR_PRE, old_kubernetes },
        { FAULT_DRA_NOT_SERVED, DOCTOR_PRE, no_dra },
        { FAULT_POLICIES_NOT_SERVED, DOCTOR_PRE, no_policies },
        { FAULT_KERNEL_OLD, DOCTOR_PRE, old_kernel },
        { FAULT_RUNTIME_OLD, DOCTOR_PRE, old_runtime },
        { FAULT_NOT_LABELLED, DOCTOR_PRE, unlabelled },
        { FAULT_POD_SECURITY, DOCTOR_PRE, baseline },
        { FAULT_QUOTA, DOCTOR_PRE, small_quota },
        { FAULT_GPUS_TWICE, DOCTOR_PRE, gpus_twice },
        { FAULT_GO_DRIVER, DOCTOR_PRE, put_go_driver },
        { FAULT_GO_DRIVER, DOCTOR_RUNNING, put_go_driver },
        { FAULT_NO_DRIVER, DOCTOR_RUNNING, no_driver },
        { FAULT_CONTROLLER_DOWN, DOCTOR_RUNNING, controller_down },
        { FAULT_NO_LEADER, DOCTOR_RUNNING, no_leader },
        { FAULT_CRD_MISSING, DOCTOR_RUNNING, crd_missing },
        { FAULT_CRD_DIFFERS, DOCTOR_RUNNING, crd_differs },
        { FAULT_CLASS_MISSING, DOCTOR_RUNNING, class_missing },
        { FAULT_POLICY_MISSING, DOCTOR_RUNNING, policy_missing },
        { FAULT_VERSIONS_DIFFER, DOCTOR_RUNNING, versions_differ },
        { FAULT_NETWORK_POLICY, DOCTOR_RUNNING, denying_policy },
        { FAULT_NODE_DOWN, DOCTOR_RUNNING, node_down },
        { FAULT_PLUGIN_MISSING, DOCTOR_RUNNING, plugin_missing },
        { FAULT_PLUGIN_MISSING, DOCTOR_RUNNING, plugins_refused },
        { FAULT_WITHHOLDS, DOCTOR_RUNNING, withholds },
        { FAULT_DRIVER_NOT_FOUND, DOCTOR_RUNNING, driver_not_found },
        { FAULT_NO_CHANNELS, DOCTOR_RUNNING, no_channels },
        { FAULT_NVML_FAILS, DOCTOR_RUNNING, nvml_fails },
        { FAULT_FABRIC_ERROR, DOCTOR_RUNNING, fabric_error },
        { FAULT_UVM, DOCTOR_RUNNING, uvm },
        { FAULT_HOOK_NOT_EXECUTABLE, DOCTOR_RUNNING, hook_not_executable },
        { FAULT_HOOK_FAILS, DOCTOR_RUNNING, hook_fails },
        { FAULT_INVENTORY_STALE, DOCTOR_RUNNING, inventory_stale },
        { FAULT_GPU_LEFT_OUT, DOCTOR_RUNNING, gpu_left_out },
        { FAULT_TOOLKIT, DOCTOR_RUNNING, toolkit },
        { FAULT_NODE_EVENT, DOCTOR_RUNNING, other_event },
        { FAULT_HOST_IMEX, DOCTOR_RUNNING, host_imex },
        { FAULT_DAEMON_NOT_CREATED, DOCTOR_RUNNING, daemon_not_created },
        { FAULT_DAEMON_NOT_RUNNING, DOCTOR_RUNNING, daemon_not_running },
        { FAULT_DAEMONS_CRASH, DOCTOR_RUNNING, daemons_crash },
        { FAULT_CHANNELS_HELD, DOCTOR_RUNNING, channels_held },
        { FAULT_FABRIC_CONDITION, DOCTOR_RUNNING, other_condition },
        { FAULT_DECISION_WRONG, DOCTOR_RUNNING, decision_wrong },
        { FAULT_DOMAIN_CONDITION, DOCTOR_RUNNING, domain_condition },
        { FAULT_GO_MISSING, DOCTOR_GO, go_missing },
        { FAULT_GO_GPU_CLASS, DOCTOR_GO, go_gpu_class },
        { FAULT_GO_DOMAINS, DOCTOR_GO, go_domain },
        { FAULT_GO_CLIQUES, DOCTOR_GO, go_cliques },
        { FAULT_GO_CLAIMS, DOCTOR_GO, go_claim },
        { FAULT_GO_CRDS, DOCTOR_GO, go_crd },
        { FAULT_NODE_UNKNOWN, DOCTOR_NODE, node_unknown },
        { FAULT_NODE_PLUGIN, DOCTOR_NODE, node_plugin },
        { FAULT_NODE_PLUGIN, DOCTOR_NODE, node_init },
        { FAULT_NODE_CHECK, DOCTOR_NODE, node_check },
};

/* ---- running it ---- */

struct doctor_test {
        struct view v;
        struct doctor d;
        struct term t;
};

static void begin_mode(unsigned mode) {
        if (mode == DOCTOR_PRE)
                begin_empty();
        else if (mode == DOCTOR_GO)
                begin_go();
        else
                begin_healthy();
        setenv("FAKE_EXEC", "fine", 1);
}

static void examine(struct doctor_test *x, struct source *s, unsigned mode) {
        static const char *const args[] = { "--context", "prod" };
        const struct kubectl k = { FAKE_EXEC, args, ARRAY_LEN(args) };
        view_init(&x->v, s);
        x->d = (struct doctor){ .v = &x->v, .a = x->v.a, .mode = mode, .ns = CLUSTER_NS };
        x->t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX) };
        doctor_run_checks(&x->d);
        if (mode == DOCTOR_NODE)
                doctor_check_node(&x->d, "a0", &k);
        doctor_print(&x->d, &x->t);
}

static void done(struct doctor_test *x) {
        buf_done(&x->t.out);
        view_done(&x->v);
}

static size_t count(const struct doctor *d, enum doctor_state state) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                n += d->results[i].state == state;
        return n;
}

static bool has_fault(const struct doctor *d, enum doctor_fault fault) {
        for (size_t i = 0; i < d->n; i++)
                if (d->results[i].state == DOCTOR_PROBLEM && d->results[i].fault == fault)
                        return true;
        return false;
}

/* ---- tests ---- */

static void a_healthy_cluster_has_no_finding(void **state) {
        static const struct {
                unsigned mode;
                const char *golden;
        } modes[] = { { DOCTOR_RUNNING, "cli-doctor-fine.txt" },
                      { DOCTOR_PRE, "cli-doctor-pre.txt" },
                      { DOCTOR_GO, "cli-doctor-go.txt" },
                      { DOCTOR_NODE, "cli-doctor-node.txt" } };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                struct doctor_test x;
                begin_mode(modes[i].mode);
                examine(&x, cluster_source(cluster), modes[i].mode);
                golden_compare(modes[i].golden, buf_str(&x.t.out));
                assert_int_equal(doctor_exit(&x.d), COMMAND_FINE);
                done(&x);
                end_cluster();
        }
}

/* Each case prints only the lines with problems. */
static void each_fault_is_found_with_a_remedy(void **state) {
        struct buf all = BUF_INIT(1 << 20);
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct doctor_test x;
                begin_mode(cases[i].mode);
                cases[i].provoke();
                examine(&x, cluster_source(cluster), cases[i].mode);
                size_t n = 0;
                for (size_t k = 0; k < x.d.n; k++) {
                        const struct doctor_result *r = &x.d.results[k];
                        if (r->state == DOCTOR_PROBLEM) {
                                assert_string_not_equal(r->fix, "");
                                if (r->reason && !r->reason->is_message)
                                        assert_non_null(reason_find_anchor(r->reason->anchor));
                                x.d.results[n++] = *r;
                        }
                }
                x.d.n = n;
                if (!has_fault(&x.d, cases[i].fault))
                        fail_msg("%s was not found", doctor_faults[cases[i].fault].name);
                assert_int_equal(doctor_exit(&x.d), COMMAND_PROBLEM);
                assert_true(doctor_faults[cases[i].fault].modes & cases[i].mode);
                buf_clear(&x.t.out);
                doctor_print(&x.d, &x.t);
                buf_addf(&all, "## %s\n%s\n", doctor_faults[cases[i].fault].name, buf_str(&x.t.out));
                done(&x);
                end_cluster();
        }
        golden_compare("cli-doctor-faults.txt", buf_str(&all));
        buf_done(&all);
}

static void every_fault_of_the_list_has_a_case(void **state) {
        (void)state;
        for (size_t f = 0; f < DOCTOR_FAULTS; f++) {
                bool found = false;
                for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                        found = found || cases[i].fault == (enum doctor_fault)f;
                if (!found)
                        fail_msg("%s has no case", doctor_faults[f].name);
                assert_int_equal(doctor_fault_find(doctor_faults[f].name), f);
        }
        assert_true(DOCTOR_FAULTS >= 20);
}

/* Nothing is concluded from the absence of an object in a list that is not complete. */
static void what_cannot_be_read_is_skipped_and_no_finding(void **state) {
        static const struct kube_resource *const kinds[] = {
                &kube_pods,
                &kube_events,
                &kube_resource_claims,
                &kube_compute_domains,
                &kube_fabrics,
                &kube_nodes,
                &kube_resource_slices,
                &kube_daemonsets,
                &tool_kinds_deployments,
                &tool_kinds_device_classes,
                &tool_kinds_quotas,
                &tool_kinds_policies,
                &kube_namespaces,
                &kube_crds,
                &doctor_kinds_admission,
                &doctor_kinds_bindings,
                &kube_leases,
                &doctor_kinds_cliques,
        };
        static const unsigned modes[] = { DOCTOR_RUNNING, DOCTOR_PRE, DOCTOR_GO, DOCTOR_NODE };
        static const enum err_kind errors[] = { ERR_DENIED, ERR_RETRY };
        (void)state;
        for (size_t m = 0; m < ARRAY_LEN(modes); m++)
                for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                        for (size_t e = 0; e < ARRAY_LEN(errors); e++) {
                                struct doctor_test x;
                                begin_mode(modes[m]);
                                cluster_fail(cluster, kinds[k], errors[e], "the list failed");
                                examine(&x, cluster_source(cluster), modes[m]);
                                if (count(&x.d, DOCTOR_PROBLEM))
                                        fail_msg("without %s: %s", kinds[k]->plural, buf_str(&x.t.out));
                                int code = doctor_exit(&x.d);
                                assert_true(
                                        code == COMMAND_FINE ||
                                        code == (errors[e] == ERR_DENIED ? COMMAND_DENIED : COMMAND_FAILED));
                                done(&x);
                                end_cluster();
                        }
}

static void a_tenant_learns_which_permissions_are_missing(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        cluster_confine(cluster, CLUSTER_NS);
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        golden_compare("cli-doctor-confined.txt", buf_str(&x.t.out));
        assert_int_equal(doctor_exit(&x.d), COMMAND_DENIED);
        done(&x);
        end_cluster();
}

static void an_unusable_answer_of_a_node_is_skipped(void **state) {
        static const struct {
                const char *answer, *words;
                int code;
        } answers[] = {
                { "forbidden", "needs permission to create pods/exec", COMMAND_DENIED },
                { "gone", "unable to upgrade connection", COMMAND_FAILED },
                { "large", "its output is too large", COMMAND_FAILED },
                { "text", "not the output of check-node", COMMAND_FAILED },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
                struct doctor_test x;
                begin_healthy();
                setenv("FAKE_EXEC", answers[i].answer, 1);
                examine(&x, cluster_source(cluster), DOCTOR_NODE);
                if (!strstr(buf_str(&x.t.out), answers[i].words))
                        fail_msg("%s: %s", answers[i].answer, buf_str(&x.t.out));
                assert_int_equal(doctor_exit(&x.d), answers[i].code);
                done(&x);
                end_cluster();
        }
}

/* A program in a container may end with 127, which a shell uses for a missing program. */
static void a_missing_program_in_a_container_is_not_a_missing_kubectl(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        setenv("FAKE_EXEC", "missing", 1);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        assert_non_null(strstr(buf_str(&x.t.out), "kubectl exec: command terminated with exit code 127"));
        done(&x);
        end_cluster();
}

static void a_node_cannot_write_control_characters_or_long_names(void **state) {
        struct buf json = BUF_INIT(64 << 10);
        struct doctor_test x;
        (void)state;
        begin_healthy();
        setenv("FAKE_EXEC", "hostile", 1);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        doctor_json(&x.d, &json);
        assert_null(strstr(buf_str(&json), "\xe2\x80\xae"));
        for (size_t i = 0; i < x.d.n; i++)
                assert_true(strlen(x.d.results[i].check) < 100);
        buf_done(&json);
        done(&x);
        end_cluster();
}

/* Without the DaemonSets, the namespace of the plugins is a guess. */
static void a_plugin_in_an_unknown_namespace_is_not_missing(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        cluster_fail(cluster, &kube_daemonsets, ERR_DENIED, "no");
        cluster_fail(cluster, &tool_kinds_deployments, ERR_DENIED, "no");
        cluster_remove_all(cluster, &kube_pods);
        examine(&x, cluster_source(cluster), DOCTOR_NODE);
        assert_int_equal(count(&x.d, DOCTOR_PROBLEM), 0);
        assert_int_equal(doctor_exit(&x.d), COMMAND_DENIED);
        done(&x);
        end_cluster();
}

/* A value of the chart selects these nodes. */
static void nodes_with_a_plugin_need_no_label_of_a_gpu_node(void **state) {
        static const char *const nodes[] = { "a0", "a1", "a2", "a3", "b0", "b1" };
        (void)state;
        for (int readable = 0; readable < 2; readable++) {
                struct doctor_test x;
                begin_healthy();
                for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                        put_node(nodes[i], "'nvidia.com/gpu.product':'GB200'", FINE, "");
                if (!readable)
                        cluster_fail(cluster, &kube_pods, ERR_DENIED, "no");
                examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
                assert_int_equal(has_fault(&x.d, FAULT_NOT_LABELLED), false);
                assert_true((strstr(buf_str(&x.t.out), "node-labels         6 GPU nodes") != NULL) ==
                            readable);
                done(&x);
                end_cluster();
        }
}

/* Users copy the commands, and a bundle may be from anyone. */
static void a_name_cannot_add_to_a_command(void **state) {
        struct doctor_test x;
        (void)state;
        begin_empty();
        cluster_put(cluster, &tool_kinds_quotas,
                    "{'metadata':{'namespace':'" CLUSTER_NS
                    "','name':'x;reboot'},'spec':{},'status':{'hard':{'pods':'3'},'used':{'pods':"
                    "'9223372036854775807'}}}");
        examine(&x, cluster_source(cluster), DOCTOR_PRE);
        assert_true(has_fault(&x.d, FAULT_QUOTA));
        assert_non_null(strstr(buf_str(&x.t.out), " patch resourcequota 'x;reboot' --patch "));
        done(&x);
        end_cluster();
}

/* Events that no longer describe the node. */
static void events_of_the_past_are_no_finding(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        node_event("a0", "DevicePluginActive", "a device plugin offers the GPUs");
        node_event("a0", "DevicePluginInactive", "none does any more");
        node_event("a1", "UVMNotLoaded", "the kernel module nvidia_uvm is not loaded");
        cluster_put(
                cluster, &kube_pods,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'compute-domains-kubelet-plugin-a1','creationTimestamp':'2026-11-27T12:00:00Z'},'"
                "spec':{'nodeName':'a1','containers':[{'name':'compute-domains','image':'" IMAGE
                "','command':['compute-domain-kubelet-plugin']}]},'status':{" RUNS "}}");
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        assert_int_equal(count(&x.d, DOCTOR_PROBLEM), 0);
        done(&x);
        end_cluster();
}

/* A policy that allows the ports is sufficient, whatever else selects the daemons. */
static void a_policy_that_allows_imex_is_no_finding(void **state) {
        struct doctor_test x;
        (void)state;
        begin_healthy();
        denying_policy();
        cluster_put(
                cluster, &tool_kinds_policies,
                "{'metadata':{'namespace':'" CLUSTER_NS
                "','name':'imex'},'spec':{'podSelector':{'matchExpressions':[{'key':'app','operator':'Exists'"
                "}]},'policyTypes':['Egress'],'egress':[{'ports':[{'port':28000,'endPort':33000}]}]}}");
        examine(&x, cluster_source(cluster), DOCTOR_RUNNING);
        assert_int_equal(count(&x.d, DOCTOR_PROBLEM), 0);
        done(&x);
        end_cluster();
}

/* ---- the command ---- */

static int run_doctor(struct source *s, struct cli *c, const char *golden) {
        *c = (struct cli){ .a = arena_new(1024), .source = s, .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c->v, s);
        int r = command_doctor.run(c);
        if (golden)
                golden_compare(golden, buf_str(&c->t.out));
        view_done(&c->v);
        buf_done(&c->t.out);
        arena_free(c->a);
        return r;
}

static void a_bundle_gives_the_same_answer(void **state) {
        struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct source *read;
        struct doctor_test before, after;
        struct err e;
        (void)state;
        begin_healthy();
        fabric_error();
        struct bundle_writer *w = bundle_writer_new(cluster_source(cluster));
        view_init(&before.v, bundle_writer_source(w));
        bundle_read_all(&before.v, "team-b");
        view_done(&before.v);
        bundle_writer_render(w, &tar);
        bundle_writer_free(w);
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &read, &e), 0);
        examine(&before, cluster_source(cluster), DOCTOR_RUNNING);
        examine(&after, read, DOCTOR_RUNNING);
        assert_string_equal(buf_str(&after.t.out), buf_str(&before.t.out));
        done(&before);
        done(&after);
        read->free(read);
        buf_done(&tar);
        end_cluster();
}

static void the_json_names_fault_and_fix(void **state) {
        struct cli c;
        (void)state;
        begin_empty();
        put_go_driver();
        doctor_options.pre = true;
        options.output = "json";
        assert_int_equal(run_doctor(cluster_source(cluster), &c, "cli-doctor-json.txt"), COMMAND_PROBLEM);
        end_cluster();
        options.output = "table";
}

static void wrong_options_are_refused(void **state) {
        struct cli c;
        (void)state;
        begin_healthy();
        doctor_options = (struct doctor_options){ .pre = true, .from_go = true };
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        doctor_options = (struct doctor_options){ .node = "--all" };
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        doctor_options = (struct doctor_options){ .node = "a0" };
        options.from = "x.tar";
        assert_int_equal(run_doctor(cluster_source(cluster), &c, NULL), COMMAND_FAILED);
        options.from = NULL;
        doctor_options = (struct doctor_options){ 0 };
        end_cluster();
}

static void versions_are_read_from_the_texts_of_programs(void **state) {
        static const struct {
                const char *text;
                int64_t major, minor; /* -1: no version */
        } texts[] = { { "v1.36.3", 1, 36 },
                      { "1.7.27~ds1-1", 1, 7 },
                      { "6.8.0-45-generic", 6, 8 },
                      { "v1.30+", 1, 30 },
                      { "", -1, 0 },
                      { "v1", -1, 0 },
                      { "1.x", -1, 0 },
                      { "-1.2", -1, 0 },
                      { "99999999999.1", -1, 0 },
                      { "2.0.0-beta", 2, 0 } };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct doctor_version x;
                bool is = doctor_version_read(texts[i].text, &x);
                assert_int_equal(is, texts[i].major >= 0);
                if (is) {
                        assert_int_equal(x.major, texts[i].major);
                        assert_int_equal(x.minor, texts[i].minor);
                }
        }
        assert_false(doctor_version_read(NULL, &(struct doctor_version){ 0 }));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_healthy_cluster_has_no_finding),
                cmocka_unit_test(each_fault_is_found_with_a_remedy),
                cmocka_unit_test(every_fault_of_the_list_has_a_case),
                cmocka_unit_test(what_cannot_be_read_is_skipped_and_no_finding),
                cmocka_unit_test(a_tenant_learns_which_permissions_are_missing),
                cmocka_unit_test(an_unusable_answer_of_a_node_is_skipped),
                cmocka_unit_test(a_missing_program_in_a_container_is_not_a_missing_kubectl),
                cmocka_unit_test(a_node_cannot_write_control_characters_or_long_names),
                cmocka_unit_test(a_plugin_in_an_unknown_namespace_is_not_missing),
                cmocka_unit_test(nodes_with_a_plugin_need_no_label_of_a_gpu_node),
                cmocka_unit_test(a_name_cannot_add_to_a_command),
                cmocka_unit_test(events_of_the_past_are_no_finding),
                cmocka_unit_test(a_policy_that_allows_imex_is_no_finding),
                cmocka_unit_test(a_bundle_gives_the_same_answer),
                cmocka_unit_test(the_json_names_fault_and_fix),
                cmocka_unit_test(wrong_options_are_refused),
                cmocka_unit_test(versions_are_read_from_the_texts_of_programs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
