/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_metrics.h"

#include "api/names.h"
#include "api/reasons.h"
#include "base/mem.h"
#include "gpu_plugin/device.h"

void gpu_metrics_init(struct gpu_metrics *m, const char *node) {
        /* The Go driver has a series for each type, on every node. */
        static const char *const types[] = { GPU_TYPE_FULL, GPU_TYPE_MIG, "vfio", "unknown", NULL };
        static const char *const by_type[] = { "device_type", NULL }, *const by_reason[] = { "reason", NULL },
                                 *const by_kind[] = { "kind", NULL },
                                 *const by_taint[] = { "taint", "effect", NULL };
        struct metrics *r = metrics_new();
        *m = (struct gpu_metrics){
                .registry = r,
                .options = { .node = node,
                             .driver = GPU_DRIVER,
                             .types = types,
                             .inside = "nvidia_dra_gpu_prepare_attempt_seconds",
                             .pending = "nvidia_dra_gpu_claims_pending",
                             .total = "nvidia_dra_gpu_claim_seconds",
                             .failures = "nvidia_dra_gpu_claim_failures_total" },
                .offered =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_offered",
                                   "GPUs and MIG devices that this node offers to the scheduler.", by_type),
                .withheld = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_withheld",
                                       "1 for the reason why this node withholds its devices.", by_reason),
                .failures = metric_add(r, METRIC_COUNTER, "nvidia_dra_gpu_nvml_failures_total",
                                       "Processes that query NVML for the plugin and have failed: hung, "
                                       "crashed.",
                                       by_kind),
                .stale = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_inventory_stale",
                                    "1 while NVML does not answer, and the offered devices may be "
                                    "outdated.",
                                    NULL),
                .tainted =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_devices_tainted",
                                   "Devices of this node with a taint because of their health: xid (effect "
                                   "NoSchedule, or None for errors of programs), gpu-lost, unmonitored.",
                                   by_taint),
                .device_plugin =
                        metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_device_plugin_active",
                                   "1 while a device plugin also allocates the GPUs of this node, so "
                                   "that a GPU may be allocated twice.",
                                   NULL),
                .foreign = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_foreign_devices",
                                      "Devices that the Go driver has prepared and this driver does not "
                                      "restore: mps (control daemons), vfio, mig.",
                                      by_kind),
                .persistence_off = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_persistence_mode_off",
                                              "GPUs of this node without persistence mode.", NULL),
                .toolkit = metric_add(r, METRIC_GAUGE, "nvidia_dra_gpu_toolkit_gives_gpus",
                                      "1 while the NVIDIA container toolkit gives all GPUs of this node to "
                                      "pods without a claim.",
                                      NULL),
        };
        node_metrics_init(&m->node, r, &m->options);
        metric_touch(m->failures, LABELS("hung"));
        metric_touch(m->failures, LABELS("crashed"));
        gpu_metrics_offered(m, 0, 0, REASON_DRIVER_NOT_QUERIED);
        gpu_metrics_stale(m, false);
        gpu_metrics_device_plugin(m, false);
        gpu_metrics_persistence_off(m, 0);
        gpu_metrics_toolkit(m, false);
}

void gpu_metrics_done(struct gpu_metrics *m) {
        metrics_free(m->registry);
        m->registry = NULL;
}

void gpu_metrics_offered(struct gpu_metrics *m, size_t gpus, size_t migs, const char *reason) {
        static const char *const reasons[] = { REASON_DRIVER_NOT_QUERIED, REASON_DRIVER_NOT_FOUND,
                                               REASON_DRIVER_NOT_READY, REASON_NO_GPUS };
        metric_set(m->offered, (double)gpus, LABELS(GPU_TYPE_FULL));
        metric_set(m->offered, (double)migs, LABELS(GPU_TYPE_MIG));
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                metric_set(m->withheld, streq(reason, reasons[i]) ? 1 : 0, LABELS(reasons[i]));
}

void gpu_metrics_failed(struct gpu_metrics *m, const char *kind) {
        metric_inc(m->failures, 1, LABELS(kind));
}

void gpu_metrics_tainted(struct gpu_metrics *m, const char *taint, const char *effect, size_t n) {
        metric_set(m->tainted, (double)n, LABELS(taint, effect));
}

void gpu_metrics_stale(struct gpu_metrics *m, bool stale) {
        metric_set(m->stale, stale ? 1 : 0, NULL);
}

void gpu_metrics_foreign(struct gpu_metrics *m, const char *kind, size_t n) {
        metric_set(m->foreign, (double)n, LABELS(kind));
}

void gpu_metrics_toolkit(struct gpu_metrics *m, bool gives) {
        metric_set(m->toolkit, gives ? 1 : 0, NULL);
}

void gpu_metrics_device_plugin(struct gpu_metrics *m, bool active) {
        metric_set(m->device_plugin, active ? 1 : 0, NULL);
}

void gpu_metrics_persistence_off(struct gpu_metrics *m, size_t gpus) {
        metric_set(m->persistence_off, (double)gpus, NULL);
}
