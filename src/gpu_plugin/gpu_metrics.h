/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_metrics: the metrics of this plugin: those of the node half, and those of GPUs. */
#pragma once

#include "node/node_metrics.h"

struct gpu_metrics {
        struct metrics *registry;
        struct node_metrics_options options;
        struct node_metrics node;
        struct metric *offered, *withheld, *failures, *stale, *tainted, *device_plugin, *foreign,
                *persistence_off, *toolkit;
};

/* m must not move. */
void gpu_metrics_init(struct gpu_metrics *m, const char *node);
void gpu_metrics_done(struct gpu_metrics *m);

/* The number of devices of each type; reason "": devices are offered. */
void gpu_metrics_offered(struct gpu_metrics *m, size_t gpus, size_t migs, const char *reason);
/* NVML's process "hung" or "crashed". */
void gpu_metrics_failed(struct gpu_metrics *m, const char *kind);
/* The number of devices with this taint and effect. `taint` is the key without the driver's name. */
void gpu_metrics_tainted(struct gpu_metrics *m, const char *taint, const char *effect, size_t n);
/* The offered devices are from an answer before NVML failed. */
void gpu_metrics_stale(struct gpu_metrics *m, bool stale);
/* The number of devices that another driver has prepared, by kind: "mps", "vfio", "mig". */
void gpu_metrics_foreign(struct gpu_metrics *m, const char *kind, size_t n);
/* The number of GPUs without persistence mode. */
void gpu_metrics_persistence_off(struct gpu_metrics *m, size_t gpus);
/* The container toolkit gives GPUs to pods without a claim. */
void gpu_metrics_toolkit(struct gpu_metrics *m, bool gives);
/* A device plugin gives this node's GPUs to pods. */
void gpu_metrics_device_plugin(struct gpu_metrics *m, bool active);
