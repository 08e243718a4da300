/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor`: a healthy cluster has no finding, and each fault of cli/doctor.def is found. The texts are in
 * test/unit/golden. What `doctor` may not read, and how it is called, is in test_doctor_input.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/resources.h"
#include "base/mem.h"
#include "unit/cli/doctor_world.h"
#include "unit/golden.h"

/* ---- the faults ---- */

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
static void domain_without_conditions(void) {
        cluster_put(cluster, &kube_compute_domains,
                    "{'metadata':{'namespace':'team-b','name':'bench','uid':'" CLUSTER_BENCH
                    "','creationTimestamp':'2026-11-27T11:50:00Z'},'spec':{'numNodes':0},'status':{'status':"
                    "'NotReady'}}");
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
static void plugin_waits(void) {
        node_event("a0", "PluginWaitsForPods", "this Node no longer matches the node selector");
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
        { FAULT_NODE_EVENT, DOCTOR_RUNNING, plugin_waits },
        { FAULT_HOST_IMEX, DOCTOR_RUNNING, host_imex },
        { FAULT_DAEMON_NOT_CREATED, DOCTOR_RUNNING, daemon_not_created },
        { FAULT_DAEMON_NOT_RUNNING, DOCTOR_RUNNING, daemon_not_running },
        { FAULT_DAEMONS_CRASH, DOCTOR_RUNNING, daemons_crash },
        { FAULT_CHANNELS_HELD, DOCTOR_RUNNING, channels_held },
        { FAULT_FABRIC_CONDITION, DOCTOR_RUNNING, other_condition },
        { FAULT_DECISION_WRONG, DOCTOR_RUNNING, decision_wrong },
        { FAULT_DOMAIN_CONDITION, DOCTOR_RUNNING, domain_condition },
        { FAULT_DOMAIN_CONDITION, DOCTOR_RUNNING, domain_without_conditions },
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
                examined(&x);
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
                examined(&x);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_healthy_cluster_has_no_finding),
                cmocka_unit_test(each_fault_is_found_with_a_remedy),
                cmocka_unit_test(every_fault_of_the_list_has_a_case),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
