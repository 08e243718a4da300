/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of GPUs and MIG devices, with the node half. */
#include "world/gpu_claims.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "driver_tree.h"
#include "gpu_plugin/gpu_plan.h"
#include "tree.h"

static void a_gpu_is_prepared_recorded_and_unprepared(void **state) {
        struct dra_op op;
        struct stat st;
        (void)state;
        needs_nodes();
        prepare_claim(&op, "one");
        until(&op, PREPARED);
        assert_string_equal(op.devices, "gpu/n0/gpu-0=k8s.gpu.nvidia.com/claim=" ONE "-gpu-0");
        _cleanup_(freep) char *path = file_of(ONE);
        _cleanup_(freep) char *cdi = read_file(path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600); /* its comment names the claim */
        assert_true(str_starts(cdi, "# claim user/one devices "
                                    "[{\"name\":\"gpu-0\",\"type\":\"gpu\",\"info\":{\"uuid\":\"GPU-0\"}}]"
                                    " boot " NODE_BOOT "\n{"));
        assert_non_null(strstr(cdi, "/run/nvidia/driver/dev/nvidia0"));
        assert_non_null(strstr(cdi, "update-ldcache"));
        _cleanup_(freep) char *text = read_checkpoint();
        assert_non_null(strstr(
                text,
                "[{\"devices\":[{\"gpu\":{\"info\":{\"uuid\":\"GPU-0\"},\"device\":{\"Requests\":[\"gpu\"],"
                "\"PoolName\":\"n0\",\"DeviceName\":\"gpu-0\",\"CDIDeviceIDs\":[\"k8s.gpu.nvidia.com/"
                "claim=" ONE "-gpu-0\"]}},\"mig\":null}],\"configState\":{\"mpsControlDaemonID\":\"\"}}]"));
        unprepared_claim("one");
        assert_false(is_there(ONE));
        assert_null(node.claims->journal.table.claims);
}

static void a_claim_may_have_gpus_and_mig_devices(void **state) {
        (void)state;
        needs_nodes();
        w.results = RESULT("a", "gpu-0") "," RESULT("b/big", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("one");
        _cleanup_(freep) char *path = file_of(ONE);
        _cleanup_(freep) char *cdi = read_file(path);
        assert_non_null(strstr(cdi, "/dev/nvidia-caps/nvidia-cap67"));
        const struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
        assert_int_equal(entry->n_devices, 2);
        assert_string_equal(entry->devices[1].type, "mig");
        assert_string_equal(entry->devices[1].requests[0], "b/big");
        assert_string_equal(entry->devices[1].info,
                            "{\"parentMinor\":1,\"giId\":7,\"ciId\":0,\"migUUID\":\"MIG-0\","
                            "\"parentUUID\":\"GPU-1\"}");
        unprepared_claim("one");
}

static void many_devices_of_a_claim_need_one_check_of_the_node(void **state) {
        (void)state;
        needs_nodes();
        prepared_claim("one");
        unprepared_claim("one");
        unsigned looks = w.looks;
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1") "," RESULT("c", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("two");
        assert_int_equal(w.looks, 2 * looks);
        unprepared_claim("two");
}

static void prepare_waits_for_a_gpu_that_another_claim_has(void **state) {
        struct dra_op two;
        (void)state;
        needs_nodes();
        prepared_claim("one");
        prepare_claim(&two, "two");
        assert_non_null(strstr(waiting()->msg,
                               "requested device gpu-0 is already allocated to different claim " ONE
                               " ('one')"));
        unprepared_claim("one");
        until(&two, PREPARED);
        unprepared_claim("two");
}

/* Prepares both claims; the second waits for the first. */
static void second_waits_for_first(const char *first, const char *second) {
        struct dra_op two;
        w.results = first;
        prepared_claim("one");
        w.results = second;
        prepare_claim(&two, "two");
        assert_non_null(strstr(waiting()->msg, "is already allocated to different claim " ONE " ('one')"));
        unprepared_claim("one");
        until(&two, PREPARED);
        unprepared_claim("two");
}

/* failure: the MIG mode changes while a claim has the GPU -> a claim of the new devices waits */
static void prepare_waits_for_a_claim_of_the_gpu_in_the_other_mig_mode(void **state) {
        (void)state;
        needs_nodes();
        second_waits_for_first(RESULT("gpu", "gpu-1-mig-1g24gb-19-0"), RESULT("gpu", "gpu-1"));
        second_waits_for_first(RESULT("gpu", "gpu-1"), RESULT("gpu", "gpu-1-mig-1g24gb-19-0"));
        /* Other GPUs are not concerned. */
        w.results = RESULT("gpu", "gpu-0");
        prepared_claim("one");
        w.results = RESULT("gpu", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("two");
        unprepared_claim("one");
        unprepared_claim("two");
}

/* failure: MIG devices are created again under a claim -> a claim of the device with the same numbers waits */
static void prepare_waits_for_a_claim_of_the_mig_device_that_was_replaced(void **state) {
        struct gpu_device before = gpus[2];
        struct dra_op two;
        (void)state;
        needs_nodes();
        w.results = RESULT("gpu", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("one");
        gpus[2].name = "gpu-1-mig-1g48gb-15-0";
        gpus[2].uuid = "MIG-1";
        w.results = RESULT("gpu", "gpu-1-mig-1g48gb-15-0");
        prepare_claim(&two, "two");
        assert_non_null(strstr(waiting()->msg, "already allocated to different claim " ONE));
        unprepared_claim("one");
        until(&two, PREPARED);
        unprepared_claim("two");
        gpus[2] = before;
}

/* failure: GPUs have other minor numbers after a reload of the driver -> no GPU is given to two claims */
static void prepare_waits_for_a_claim_of_the_gpu_under_another_name(void **state) {
        struct dra_op two;
        (void)state;
        needs_nodes();
        prepared_claim("one");
        gpus[0].uuid = "GPU-1";
        gpus[1].uuid = "GPU-0";
        w.results = RESULT("gpu", "gpu-1");
        prepare_claim(&two, "two");
        assert_non_null(strstr(waiting()->msg, "already allocated to different claim " ONE));
        unprepared_claim("one");
        until(&two, PREPARED);
        unprepared_claim("two");
        gpus[1].uuid = "GPU-1";
}

static void admin_access_does_not_block_other_claims(void **state) {
        (void)state;
        needs_nodes();
        w.results = "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\","
                    "\"adminAccess\":true}";
        prepared_claim("one");
        w.results = RESULT("gpu", "gpu-0");
        prepared_claim("two");
        unprepared_claim("one");
        assert_true(is_there(TWO));
        unprepared_claim("two");
}

/* failure: NVML does not answer -> prepared claims are answered and unprepared */
static void prepared_claims_are_answered_without_nvml(void **state) {
        (void)state;
        needs_nodes();
        prepared_claim("one");
        claims_free(node.claims);
        start();
        prepared_claim("one");
        assert_int_equal(api.requests, 1);
        unprepared_claim("one"); /* Unprepare succeeds, too */
        assert_false(is_there(ONE));
}

/* failure: NVML does not answer during Prepare -> Prepare waits for it */
static void prepare_waits_until_the_gpus_are_known(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        gpu_driver_set_devices(w.gpu, NULL, "NVML does not answer");
        prepare_claim(&op, "one");
        assert_string_equal(waiting()->msg, "n0: NVML does not answer");
        assert_true(w.wanted);
        w.holds = false; /* the answer is outdated already */
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        assert_int_equal(waiting()->waits_for, WAITS_FOR_DRIVER);
        w.holds = true;
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        until(&op, PREPARED);
        unprepared_claim("one");
}

/* failure: a claim names a GPU that the node lacks -> the error names the GPUs of the node */
static void a_missing_gpu_is_refused_with_the_gpus_of_the_node(void **state) {
        (void)state;
        static struct gpu_left_out lost = { "GPU 3", "it fell off the bus" };
        w.devices.left_out = &lost;
        w.devices.n_left_out = 1;
        w.results = RESULT("gpu", "gpu-9");
        refused("one", "allocatable not found for device \"gpu-9\": node 'n0' has gpu-0, gpu-1, "
                       "gpu-1-mig-1g24gb-19-0; GPU 3: it "
                       "fell off the bus");
        w.results =
                "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n1\",\"device\":\"gpu-0\"}";
        refused("one", "device 'gpu-0' was allocated on node 'n1', but this is node 'n0'");
}

/* failure: a GPU of a node with many MIG devices has failed -> the error has the reason, not all names */
static void the_reason_of_a_missing_gpu_is_not_lost_among_many_names(void **state) {
        static struct gpu_left_out lost = { "GPU 3", "it fell off the bus" };
        static struct gpu_device many[40];
        struct gpu_devices all = w.devices;
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                many[i] = gpus[2];
        w.devices.items = many;
        w.devices.n = ARRAY_LEN(many);
        w.devices.left_out = &lost;
        w.devices.n_left_out = 1;
        w.results = RESULT("gpu", "gpu-3");
        refused("one", "device \"gpu-3\": node 'n0' has 40 others; GPU 3: it fell off the bus");
        w.devices = all;
}

/* failure: a GPU is in MIG mode -> a claim of the whole GPU is refused, and the error names the mode */
static void a_gpu_in_mig_mode_is_refused_as_a_whole(void **state) {
        static struct gpu_left_out unused = { "gpu-0", "it is in MIG mode and has no MIG devices", true };
        (void)state;
        w.devices.items = gpus + 2; /* only the MIG device of gpu-1 */
        w.devices.n = 1;
        w.devices.left_out = &unused;
        w.devices.n_left_out = 1;
        refused("one", "device \"gpu-0\": it is in MIG mode and has no MIG devices; node 'n0' has "
                       "gpu-1-mig-1g24gb-19-0; delete the pod");
        w.results = RESULT("gpu", "gpu-1");
        refused("one", "device \"gpu-1\": it is in MIG mode; node 'n0' has gpu-1-mig-1g24gb-19-0; delete");
}

static void prepare_waits_while_nvml_is_queried_about_its_gpu(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        w.unverified = true;
        prepare_claim(&op, "one");
        assert_string_equal(waiting()->msg, "n0: NVML is being queried about device gpu-0");
        assert_true(w.wanted);
        w.unverified = false;
        gpu_driver_verified(w.gpu);
        until(&op, PREPARED);
        /* Containers that restart do not wait. */
        w.unverified = true;
        _cleanup_(freep) char *path = file_of(ONE);
        assert_int_equal(unlink(path), 0);
        prepared_claim("one");
        unprepared_claim("one");
}

/* failure: NVML is slow, and a claim has several GPUs -> all of them are requested at once */
static void prepare_requests_all_its_gpus_at_once(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1") "," RESULT("c", "gpu-1-mig-1g24gb-19-0");
        w.unverified = true;
        prepare_claim(&op, "one");
        assert_string_equal(waiting()->msg, "n0: NVML is being queried about device gpu-0");
        assert_int_equal(w.verify_wanted, 1U << 0 | 1U << 1 | 1U << 2);
        w.unverified = false;
        gpu_driver_verified(w.gpu);
        until(&op, PREPARED);
        unprepared_claim("one");
}

#define GPU_CONFIG(rest)                                                                                     \
        "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","        \
        "\"parameters\":{\"apiVersion\":"                                                                    \
        "\"resource.nvidia.com/v1beta1\",\"kind\":" rest "}}}"

/* "gpu/whole": the kubelet knows only the request, so dra_op_prepared() cuts off the rest. */
/* failure: a claim uses firstAvailable -> the chosen alternative has its own configuration */
static void an_alternative_has_its_own_configuration_and_keeps_its_name(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        w.results = RESULT("gpu/whole", "gpu-0");
        w.config = "{\"source\":\"FromClaim\",\"requests\":[\"gpu/part\"],\"opaque\":{\"driver\":"
                   "\"gpu.nvidia.com\",\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\","
                   "\"kind\":\"MigDeviceConfig\"}}}";
        prepare_claim(&op, "one");
        until(&op, PREPARED);
        assert_string_equal(op.devices, "gpu/whole/n0/gpu-0=k8s.gpu.nvidia.com/claim=" ONE "-gpu-0");
        /* The next process gives the same answer from the record. */
        claims_free(node.claims);
        start();
        prepare_claim(&op, "one");
        until(&op, PREPARED);
        assert_string_equal(op.devices, "gpu/whole/n0/gpu-0=k8s.gpu.nvidia.com/claim=" ONE "-gpu-0");
        unprepared_claim("one");
}

static void an_invalid_configuration_is_refused_with_the_error_of_the_go_driver(void **state) {
        (void)state;
        w.config = GPU_CONFIG("\"GpuConfig\",\"sharing\":{\"strategy\":\"TimeSlicing\"}");
        refused("one", "\"TimeSlicing\" is selected as the GPU sharing strategy, but the "
                       "\"TimeSlicingSettings\" feature gate is "
                       "not enabled");
        w.config = GPU_CONFIG("\"MigDeviceConfig\"");
        refused("one", "cannot apply MigDeviceConfig to device \"gpu-0\" of type \"gpu\" (request: gpu)");
        w.config = GPU_CONFIG("\"GpuConfig\",\"bogus\":1");
        refused("one", "strict decoding error: unknown field \"bogus\"");
}

/* failure: a GPU has no device node or the driver no libraries -> Prepare fails and names what is missing */
static void a_missing_device_node_or_library_is_named(void **state) {
        (void)state;
        tree_put(node.dir, "devices", "Character devices:\n236 nvidia-caps\n");
        gpus[0].minor = 9;
        refused("one", "no device node '/dev/nvidia9'");
        gpus[0].minor = 0;
        w.devices.driver_version = "1.2";
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        refused("two",
                "neither libcuda.so.1.2 nor libnvidia-ml.so.1.2 is in driver root '/run/nvidia/driver'");
        assert_false(is_there(ONE));
}

static void remove_file(const char *path) {
        _cleanup_(freep) char *file = file_join(node.dir, path);
        assert_int_equal(unlink(file), 0);
}

static bool cdi_file_names(const char *uid, const char *what) {
        _cleanup_(freep) char *path = file_of(uid);
        _cleanup_(freep) char *cdi = read_file(path);
        return strstr(cdi, what) != NULL;
}

/* The runtime rejects a container whose CDI file names a missing file. */
/* failure: files of the driver are added or removed -> the next claim has the current files */
static void added_and_removed_driver_files_are_noticed_with_the_next_claim(void **state) {
        (void)state;
        needs_nodes();
        w.ipc_sockets = true;
        claims_free(node.claims);
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        prepared_claim("one");
        assert_true(cdi_file_names(ONE, "/run/nvidia-persistenced/socket"));
        assert_true(cdi_file_names(ONE, "/usr/lib64/libnvidia-egl-gbm.so.1.1.2"));
        assert_false(cdi_file_names(ONE, "/usr/bin/nvidia-imex\""));
        unprepared_claim("one");
        remove_file("run/nvidia-persistenced/socket");
        remove_file("usr/lib64/libnvidia-egl-gbm.so.1.1.2");
        driver_tree_library(node.dir, "usr/lib64/libnvidia-egl-gbm.so.1.1.3", "libnvidia-egl-gbm.so.1");
        tree_put(node.dir, "usr/bin/nvidia-imex", "");
        prepared_claim("two");
        assert_false(cdi_file_names(TWO, "/run/nvidia-persistenced/socket"));
        assert_false(cdi_file_names(TWO, "libnvidia-egl-gbm.so.1.1.2"));
        assert_true(cdi_file_names(TWO, "/usr/lib64/libnvidia-egl-gbm.so.1.1.3"));
        assert_true(cdi_file_names(TWO, "/usr/bin/nvidia-imex\""));
        unprepared_claim("two");
        tree_put(node.dir, "run/nvidia-persistenced/socket", "");
        prepared_claim("one");
        assert_true(cdi_file_names(ONE, "/run/nvidia-persistenced/socket"));
        unprepared_claim("one");
}

static void sockets_of_the_host_are_given_only_on_request(void **state) {
        (void)state;
        needs_nodes();
        tree_put(node.dir, "run/nvidia-fabricmanager/socket", "");
        prepared_claim("one");
        assert_false(cdi_file_names(ONE, "/socket"));
        unprepared_claim("one");
        w.ipc_sockets = true;
        claims_free(node.claims);
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        prepared_claim("one");
        assert_true(cdi_file_names(ONE, "/run/nvidia-persistenced/socket"));
        assert_false(cdi_file_names(ONE, "nvidia-fabricmanager"));
        unprepared_claim("one");
}

/* failure: the module nvidia_uvm is not loaded -> claims are refused, and an Event of the Node reports it */
static void without_the_uvm_module_claims_are_refused_and_the_node_has_an_event(void **state) {
        (void)state;
        tree_put(node.dir, "devices", "Character devices:\n195 nvidia\n236 nvidia-caps\n");
        tree_put(node.dir, "sys/module/nvidia/version", "");
        refused("one", "the kernel module nvidia_uvm is not loaded");
        assert_non_null(strstr(api.events, "UVMNotLoaded: "));
        assert_non_null(strstr(api.events, "modprobe nvidia_uvm"));
        assert_false(is_there(ONE));
        tree_put(node.dir, "devices", "Character devices:\n195 nvidia\n236 nvidia-caps\n509 nvidia-uvm\n");
        prepared_claim("two");
        assert_true(cdi_file_names(TWO, "\"path\":\"/dev/nvidia-uvm\""));
        assert_true(cdi_file_names(TWO, "\"major\":509"));
        unprepared_claim("two");
}

/* A lost CDI file of a prepared claim is recreated, unless another GPU has the name now. */
/* failure: the CDI file of a claim is lost -> it is recreated, unless another GPU has the name */
static void a_lost_cdi_file_is_recreated_for_the_same_gpu_only(void **state) {
        (void)state;
        needs_nodes();
        prepared_claim("one");
        _cleanup_(freep) char *path = file_of(ONE);
        assert_int_equal(unlink(path), 0);
        prepared_claim("one");
        assert_true(is_there(ONE));
        assert_int_equal(unlink(path), 0);
        gpus[0].uuid = "GPU-new";
        refused("one", "'gpu-0' was prepared for this claim as GPU-0, but that name is GPU-new now");
}

/* failure: the checkpoint is lost -> GPU claims are rebuilt from their CDI files */
static void an_entry_that_was_lost_is_rebuilt_from_the_file(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("one");
        claims_free(node.claims);
        lose_checkpoint();
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        const struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
        assert_non_null(entry);
        assert_string_equal(entry->name, "one");
        assert_int_equal(entry->n_devices, 2);
        assert_string_equal(entry->devices[0].info, "{\"uuid\":\"GPU-0\"}");
        assert_string_equal(entry->devices[1].type, "mig");
        w.results = RESULT("gpu", "gpu-0");
        prepare_claim(&op, "two"); /* another claim must not get the pod's GPU */
        assert_non_null(strstr(waiting()->msg, "already allocated to different claim " ONE));
        unprepared_claim("one");
        until(&op, PREPARED);
}

#define ADMIN_RESULT(device)                                                                                 \
        "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device            \
        "\",\"adminAccess\":true}"

/* failure: the checkpoint is lost while a claim has admin access -> the claim still takes no GPU */
static void a_rebuilt_entry_keeps_its_admin_access(void **state) {
        struct dra_op op;
        (void)state;
        needs_nodes();
        w.results = ADMIN_RESULT("gpu-0") "," ADMIN_RESULT("gpu-1") "," RESULT("own", "gpu-1");
        prepared_claim("one");
        claims_free(node.claims);
        lose_checkpoint();
        for (int i = 0; i < 2; i++) { /* rebuilt, and read from the rebuilt checkpoint */
                start();
                gpu_driver_set_devices(w.gpu, &w.devices, "");
                w.results = RESULT("gpu", "gpu-0");
                prepared_claim("two");
                unprepared_claim("two");
                if (i == 0)
                        claims_free(node.claims);
        }
        w.results = RESULT("gpu", "gpu-1");
        prepare_claim(&op, "two");
        assert_non_null(strstr(waiting()->msg, "already allocated to different claim " ONE));
        unprepared_claim("one");
        until(&op, PREPARED);
}

/* failure: the checkpoint is lost after an upgrade -> claims are rebuilt from the Go driver's CDI files */
static void names_are_read_from_a_cdi_file_of_the_go_driver(void **state) {
        (void)state;
        struct arena *a = arena_new(1024);
        struct node_device *devices;
        static const char yaml[] =
                "---\ncdiVersion: 0.5.0\ndevices:\n    - name: " ONE "-gpu-0\n    - name: " ONE
                "-gpu-1-mig-1g24gb-19-0\n    - name: " TWO "-gpu-7\n    - name: " ONE "-../x\n";
        assert_int_equal(gpu_plan_rebuild(yaml, ONE, a, &devices), 2);
        assert_string_equal(devices[0].name, "gpu-0");
        assert_string_equal(devices[0].info, "{\"uuid\":\"\"}");
        assert_string_equal(devices[1].name, "gpu-1-mig-1g24gb-19-0");
        assert_string_equal(devices[1].type, "mig");
        arena_free(a);
}

/* The Go driver forgets the name when a claim is prepared. */
static void a_claim_of_the_go_driver_gets_its_name_at_the_next_prepare(void **state) {
        (void)state;
        needs_nodes();
        prepared_claim("one");
        struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
        entry->name = entry->ns = NULL;
        prepared_claim("one");
        assert_int_equal(api.requests, 1);
        _cleanup_(freep) char *text = read_checkpoint();
        assert_non_null(strstr(text, "\"name\":\"one\",\"namespace\":\"user\""));
        unprepared_claim("one");
}

/* failure: a node reboots with GPU claims -> they are discarded, and the same pods are prepared again */
static void after_a_reboot_entries_are_discarded_and_the_same_pods_prepared_again(void **state) {
        (void)state;
        needs_nodes();
        prepared_claim("one");
        claims_free(node.claims);
        node.boot = "22222222-2222-4222-8222-222222222222";
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
        assert_null(node.claims->journal.table.claims);
        assert_false(is_there(ONE));
        prepared_claim("two"); /* the GPU is free */
        unprepared_claim("two");
        prepared_claim("one");
        unprepared_claim("one");
}

static void a_feature_gate_without_effect_is_refused_by_name(void **state) {
        (void)state;
        struct err e;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), 0);
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = w.gates.on[GATE_NVML_DEVICE_HEALTH_CHECK] = true;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), 0);
        w.gates.on[GATE_MPS_SUPPORT] = true;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), -1);
        assert_non_null(strstr(e.msg, "feature gate MPSSupport is on"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_gpu_is_prepared_recorded_and_unprepared),
                T(a_claim_may_have_gpus_and_mig_devices),
                T(many_devices_of_a_claim_need_one_check_of_the_node),
                T(prepare_waits_for_a_gpu_that_another_claim_has),
                T(prepare_waits_for_a_claim_of_the_gpu_in_the_other_mig_mode),
                T(prepare_waits_for_a_claim_of_the_mig_device_that_was_replaced),
                T(prepare_waits_for_a_claim_of_the_gpu_under_another_name),
                T(admin_access_does_not_block_other_claims),
                T(prepared_claims_are_answered_without_nvml),
                T(prepare_waits_until_the_gpus_are_known),
                T(a_missing_gpu_is_refused_with_the_gpus_of_the_node),
                T(the_reason_of_a_missing_gpu_is_not_lost_among_many_names),
                T(a_gpu_in_mig_mode_is_refused_as_a_whole),
                T(prepare_waits_while_nvml_is_queried_about_its_gpu),
                T(prepare_requests_all_its_gpus_at_once),
                T(an_alternative_has_its_own_configuration_and_keeps_its_name),
                T(an_invalid_configuration_is_refused_with_the_error_of_the_go_driver),
                T(a_missing_device_node_or_library_is_named),
                T(added_and_removed_driver_files_are_noticed_with_the_next_claim),
                T(sockets_of_the_host_are_given_only_on_request),
                T(without_the_uvm_module_claims_are_refused_and_the_node_has_an_event),
                T(a_lost_cdi_file_is_recreated_for_the_same_gpu_only),
                T(an_entry_that_was_lost_is_rebuilt_from_the_file),
                T(a_rebuilt_entry_keeps_its_admin_access),
                T(names_are_read_from_a_cdi_file_of_the_go_driver),
                T(a_claim_of_the_go_driver_gets_its_name_at_the_next_prepare),
                T(after_a_reboot_entries_are_discarded_and_the_same_pods_prepared_again),
                T(a_feature_gate_without_effect_is_refused_by_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
