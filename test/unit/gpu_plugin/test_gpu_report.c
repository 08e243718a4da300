/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines, metrics and Events about a node's GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "gpu_plugin/gpu_offer.h"
#include "gpu_plugin/gpu_record.h"
#include "gpu_plugin/gpu_report.h"

/* Replaces the recorder's function. */
static char events[8][512];
static size_t n_events;

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        char text[400];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        assert_string_equal(about->kind, "Node");
        assert_string_equal(about->name, "n0");
        snprintf(events[n_events++], sizeof events[0], "%s %s: %s", type == EVENT_WARNING ? "W" : "N", reason,
                 text);
}

static struct gpu_metrics metrics;
static struct gpu_report report;
static struct gpus_state state;
static struct gpu_devices devices;
static struct gpu_device items[2];
static struct gpu_left_out left_out[1];

static int setup(void **unused) {
        gpu_metrics_init(&metrics, "n0");
        report = (struct gpu_report){ .metrics = &metrics, .node = "n0" };
        items[0] = (struct gpu_device){ .kind = GPU_FULL, .name = "gpu-0", .offered = { .name = "gpu-0" } };
        items[1] = (struct gpu_device){ .kind = GPU_MIG,
                                        .name = "gpu-1-mig-1g5gb-19-0",
                                        .offered = { .name = "gpu-1-mig-1g5gb-19-0" } };
        devices = (struct gpu_devices){
                .driver_version = "580.95.05", .items = items, .n = 2, .left_out = left_out
        };
        state = (struct gpus_state){ .known = true, .reason = "" };
        n_events = 0;
        return 0;
}

static int teardown(void **unused) {
        node_metrics_done(&metrics.node);
        return 0;
}

static void expect_events(size_t expected) {
        n_events = 0;
        gpu_report_update(&report, &state, &devices);
        assert_int_equal(n_events, expected);
}

static void has_metric(const char *line) {
        struct buf b = BUF_INIT(1 << 20);
        metrics_render(metrics.node.registry, &b);
        if (!strstr(buf_str(&b), line))
                fail_msg("no line '%s' in\n%s", line, buf_str(&b));
        buf_done(&b);
}

/* failure: a node offers no GPU -> one Event and a metric report the reason */
static void the_reason_for_no_devices_is_reported_once(void **unused) {
        expect_events(0);
        has_metric("nvidia_dra_gpu_devices_offered{device_type=\"gpu\"} 1\n");
        has_metric("nvidia_dra_gpu_devices_offered{device_type=\"mig\"} 1\n");
        has_metric("nvidia_dra_gpu_devices_withheld{reason=\"DriverNotQueried\"} 0\n");
        devices.n = 0;
        state.reason = "DriverNotFound";
        snprintf(state.message, sizeof state.message, "no library");
        expect_events(1);
        assert_string_equal(events[0],
                            "W GPUDevicesWithheld: no GPU is offered on this node (DriverNotFound): "
                            "no library");
        expect_events(0);
        has_metric("nvidia_dra_gpu_devices_withheld{reason=\"DriverNotFound\"} 1\n");
        devices.n = 2;
        state.reason = "";
        expect_events(1);
        assert_string_equal(events[0], "N GPUDevicesOffered: the GPUs of this node are offered again");
        expect_events(0);
}

/* failure: the CDI hook fails -> the metrics show that no GPU is offered, and why */
static void devices_are_not_offered_while_the_hook_fails(void **unused) {
        expect_events(0);
        report.hook = "HookFailsSelfTest";
        expect_events(0); /* the plugin reports it itself */
        has_metric("nvidia_dra_gpu_devices_offered{device_type=\"gpu\"} 0\n");
        has_metric("nvidia_dra_gpu_devices_offered{device_type=\"mig\"} 0\n");
        has_metric("nvidia_dra_gpu_devices_withheld{reason=\"HookFailsSelfTest\"} 1\n");
        report.hook = NULL;
        expect_events(1);
        assert_string_equal(events[0], "N GPUDevicesOffered: the GPUs of this node are offered again");
        has_metric("nvidia_dra_gpu_devices_offered{device_type=\"gpu\"} 1\n");
        has_metric("nvidia_dra_gpu_devices_withheld{reason=\"HookFailsSelfTest\"} 0\n");
}

/* failure: NVML fails three times in a row -> one Event reports that the inventory is stale */
static void a_stale_inventory_is_reported_once(void **unused) {
        state.failures = GPUS_STALE - 1;
        snprintf(state.error, sizeof state.error, "NVML did not answer in time");
        expect_events(0);
        state.failures++;
        expect_events(1);
        assert_non_null(strstr(events[0], "W GPUInventoryStale: NVML has failed 3 times in a row"));
        assert_non_null(strstr(events[0], "NVML did not answer in time"));
        state.failures++;
        expect_events(0);
        has_metric("nvidia_dra_gpu_inventory_stale 1\n");
        state.failures = 0;
        expect_events(0);
        has_metric("nvidia_dra_gpu_inventory_stale 0\n");
}

/* failure: persistence mode is off -> one Event reports it */
static void disabled_persistence_mode_is_reported_once(void **unused) {
        has_metric("nvidia_dra_gpu_persistence_mode_off 0\n");
        devices.n_persistence_off = 2;
        expect_events(1);
        assert_non_null(strstr(events[0], "W PersistenceModeOff: persistence mode is off on 2 GPUs"));
        has_metric("nvidia_dra_gpu_persistence_mode_off 2\n");
        expect_events(0);
        devices.n_persistence_off = 0;
        expect_events(0);
        has_metric("nvidia_dra_gpu_persistence_mode_off 0\n");
}

/* failure: a GPU is left out -> one Event names it with the reason */
static void left_out_devices_are_named_once(void **unused) {
        left_out[0] = (struct gpu_left_out){ "GPU 3", "nvmlDeviceGetUUID: NVML error 15" };
        devices.n_left_out = 1;
        expect_events(1);
        assert_string_equal(events[0],
                            "W GPULeftOut: GPU 3 is not offered on this node: nvmlDeviceGetUUID: NVML "
                            "error 15");
        expect_events(0);
        struct err e;
        err_set(&e, ERR_INVALID, 422, "spec.devices[1]: Too long");
        n_events = 0;
        gpu_report_refused(&report, "gpu-1", &e);
        assert_string_equal(events[0],
                            "W GPULeftOut: gpu-1 is not offered on this node: spec.devices[1]: Too "
                            "long");
}

static void failures_of_nvml_are_counted(void **unused) {
        has_metric("nvidia_dra_gpu_nvml_failures_total{kind=\"hung\"} 0\n");
        gpu_metrics_failed(&metrics, "hung");
        has_metric("nvidia_dra_gpu_nvml_failures_total{kind=\"hung\"} 1\n");
        has_metric("nvidia_dra_gpu_nvml_failures_total{kind=\"crashed\"} 0\n");
}

/* failure: a GPU reports an XID -> an Event reports it with the remedy */
static void an_xid_is_reported_with_the_remedy(void **unused) {
        items[0].uuid = "GPU-0";
        n_events = 0;
        gpu_report_xid(&report, &items[0], 31, true); /* of a program: only logged */
        assert_int_equal(n_events, 0);
        gpu_report_xid(&report, &items[0], 79, false);
        assert_int_equal(n_events, 1);
        assert_non_null(strstr(events[0], "W GPUReportsXid: gpu-0 (GPU-0) reports XID 79, so no new pod gets "
                                          "it (taint gpu.nvidia.com/xid)"));
}

/* failure: GPUs cannot be watched -> one Event reports it */
static void unwatched_gpus_are_reported_once(void **unused) {
        struct err e;
        err_set(&e, ERR_RETRY, 13, "this library has no functions for events");
        n_events = 0;
        gpu_report_watch(&report, &e);
        gpu_report_watch(&report, &e);
        assert_int_equal(n_events, 1);
        assert_non_null(strstr(events[0], "W GPUUnmonitored: "));
        assert_non_null(strstr(events[0], "this library has no functions for events"));
        gpu_report_watch(&report, NULL);
        gpu_report_watch(&report, &e);
        assert_int_equal(n_events, 2);
}

/* failure: a GPU is lost -> an Event and a metric report it */
static void lost_gpus_are_counted_and_reported(void **unused) {
        const struct xids none = { 0 };
        struct health *h = health_new(&none);
        struct nvml_watched_gpu gpu = { "GPU-0", 15, "nvmlDeviceGetUUID" };
        items[0].uuid = "GPU-0";
        devices.n = 1;
        n_events = 0;
        gpu_report_health(&report, h, &devices);
        has_metric("nvidia_dra_gpu_devices_tainted{taint=\"gpu-lost\",effect=\"NoSchedule\"} 0\n");
        health_watched(h, &(struct nvml_watched){ &gpu, 1 });
        gpu_report_health(&report, h, &devices);
        gpu_report_health(&report, h, &devices);
        assert_int_equal(n_events, 1);
        assert_non_null(
                strstr(events[0], "W GPULost: 1 device of this node belongs to a GPU that has fallen"));
        has_metric("nvidia_dra_gpu_devices_tainted{taint=\"gpu-lost\",effect=\"NoSchedule\"} 1\n");
        struct slice_content c = gpu_offer_content(&devices, h);
        assert_int_equal(c.devices[0].n_taints, 1);
        assert_int_equal(c.part_max, 64);
        arena_free(c.arena);
        health_free(h);
}

/* failure: the API server does not serve device taints -> one Event reports it */
static void a_server_without_device_taints_is_reported_once(void **unused) {
        n_events = 0;
        gpu_report_untainted(&report, SLICE_TAINTS_EFFECTIVE);
        assert_int_equal(n_events, 0);
        gpu_report_untainted(&report, SLICE_TAINTS_NONE);
        gpu_report_untainted(&report, SLICE_TAINTS_NONE);
        assert_int_equal(n_events, 1);
        assert_non_null(strstr(events[0], "W DeviceTaintsNotServed: "));
        assert_non_null(strstr(events[0], "DRADeviceTaints"));
}

static void slice_content_is_a_copy_of_the_devices(void **unused) {
        const struct offered_attribute attribute = { .name = "type", .text = "gpu" };
        items[0].offered.attributes = &attribute;
        items[0].offered.n_attributes = 1;
        struct slice_content c = gpu_offer_content(&devices, NULL);
        assert_string_equal(c.driver, "gpu.nvidia.com");
        assert_int_equal(c.n_devices, 2);
        assert_ptr_not_equal(c.devices[0].attributes[0].text, attribute.text);
        assert_string_equal(c.devices[0].attributes[0].text, "gpu");
        arena_free(c.arena);
        devices.n = 0;
        c = gpu_offer_content(&devices, NULL);
        assert_int_equal(c.n_devices, 0);
        arena_free(c.arena);
}

/* As the Go driver leaves them, except the last one, which this driver has prepared: its entry has a name. */
/* failure: the Go driver has prepared MPS, VFIO or dynamic MIG -> an Event reports it with the remedy */
static void claims_with_mps_or_vfio_of_the_go_driver_are_reported(void **unused) {
        static const struct node_device mps[] = {
                { .name = "gpu-0",
                  .type = GPU_TYPE_FULL,
                  .group_info = "{\"mpsControlDaemonID\":\"u1-0a1b2\",\"mpsApplied\":true}" },
                { .name = "gpu-1",
                  .type = GPU_TYPE_FULL,
                  .group_info = "{\"mpsControlDaemonID\":\"u1-0a1b2\",\"mpsApplied\":true}" }
        };
        static const struct node_device vfio = { .name = "gpu-vfio-2",
                                                 .type = "vfio",
                                                 .info = "{\"uuid\":\"GPU-2\",\"pciBusID\":\"0000:41:00.0\"}",
                                                 .group_info = "{}" };
        static const struct node_device mig = { .name = "gpu-3-mig-1g10gb-19-0",
                                                .type = GPU_TYPE_MIG,
                                                .info = "{\"parentMinor\":3,\"giId\":7,\"ciId\":0,"
                                                        "\"migUUID\":\"MIG-3\",\"parentUUID\":\"GPU-3\"}",
                                                .group_info = "{}" };
        const struct {
                const char *uid, *name;
                const struct node_device *devices;
                size_t n;
        } claims[] = {
                { "u1", "", mps, 2 }, { "u2", "", &vfio, 1 }, { "u3", "", &mig, 1 }, { "u4", "c", &mig, 1 }
        };
        struct checkpoint table = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_RELEASED };
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
                struct checkpoint_claim *c =
                        checkpoint_put(&table, claims[i].uid, "ns", claims[i].name, STR("{}"));
                checkpoint_set_devices(c, claims[i].devices, claims[i].n);
                c->state = CHECKPOINT_COMPLETED;
        }
        gpu_report_foreign(&report, &table);
        assert_int_equal(n_events, 3);
        assert_true(str_starts(events[0], "W PreparedByGoDriver: gpu-0 of claim u1: "));
        assert_non_null(strstr(events[0], "kubectl delete deployment mps-control-daemon-u1-0a1b2"));
        assert_true(str_starts(events[1], "W PreparedByGoDriver: gpu-vfio-2 of claim u2: "));
        assert_non_null(strstr(events[1], "echo 0000:41:00.0 > /sys/bus/pci/drivers_probe"));
        assert_true(str_starts(events[2], "N PreparedByGoDriver: gpu-3-mig-1g10gb-19-0 of claim u3: "));
        assert_non_null(strstr(events[2], "nvidia-smi mig -dgi -i GPU-3 -gi 7"));
        has_metric("nvidia_dra_gpu_foreign_devices{kind=\"mps\"} 1");
        has_metric("nvidia_dra_gpu_foreign_devices{kind=\"mig\"} 1");
        /* Claims end one after the other. This is not reported. */
        checkpoint_drop(&table, checkpoint_find(&table, "u1"));
        gpu_report_foreign(&report, &table);
        assert_int_equal(n_events, 3);
        has_metric("nvidia_dra_gpu_foreign_devices{kind=\"mps\"} 0");
        checkpoint_done(&table);
}

static void a_toolkit_that_gives_gpus_without_a_claim_is_reported(void **unused) {
        gpu_report_toolkit(&report, TOOLKIT_GPUS_BY_CLAIM, "");
        gpu_report_toolkit(&report, TOOLKIT_GPUS_UNKNOWN, "'/etc/containerd/config.toml': line 1");
        assert_int_equal(n_events, 0);
        has_metric("nvidia_dra_gpu_toolkit_gives_gpus 0\n");
        gpu_report_toolkit(&report, TOOLKIT_GPUS_TO_ALL, "/etc/containerd/config.toml makes");
        assert_int_equal(n_events, 1);
        assert_true(str_starts(events[0], "W ToolkitGivesGPUs: "));
        assert_non_null(strstr(events[0], "/etc/containerd/config.toml makes"));
        has_metric("nvidia_dra_gpu_toolkit_gives_gpus 1\n");
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(the_reason_for_no_devices_is_reported_once),
                T(devices_are_not_offered_while_the_hook_fails),
                T(a_stale_inventory_is_reported_once),
                T(left_out_devices_are_named_once),
                T(failures_of_nvml_are_counted),
                T(slice_content_is_a_copy_of_the_devices),
                T(an_xid_is_reported_with_the_remedy),
                T(unwatched_gpus_are_reported_once),
                T(lost_gpus_are_counted_and_reported),
                T(a_server_without_device_taints_is_reported_once),
                T(claims_with_mps_or_vfio_of_the_go_driver_are_reported),
                T(disabled_persistence_mode_is_reported_once),
                T(a_toolkit_that_gives_gpus_without_a_claim_is_reported),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
