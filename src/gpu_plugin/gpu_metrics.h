/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_metrics: the series of this plugin: those of the node half, and what only GPUs have. */
#pragma once

#include "node/metrics.h"

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

/* Devices of each type; reason "": some are offered. */
void gpu_metrics_offered(struct gpu_metrics *m, size_t gpus, size_t migs, const char *reason);
/* NVML's process was "hung" or has "crashed". */
void gpu_metrics_failed(struct gpu_metrics *m, const char *kind);
/* Devices with each of the taints that health.h has. */
/* How many devices have the taint, by its name without the driver's, with that effect. */
void gpu_metrics_tainted(struct gpu_metrics *m, const char *taint, const char *effect, size_t n);
/* What is offered is known from before NVML failed. */
void gpu_metrics_stale(struct gpu_metrics *m, bool stale);
/* How many devices another driver has prepared, by kind: "mps", "vfio", "mig". */
void gpu_metrics_foreign(struct gpu_metrics *m, const char *kind, size_t n);
/* How many GPUs have no persistence mode. */
void gpu_metrics_persistence_off(struct gpu_metrics *m, size_t gpus);
/* The container toolkit gives GPUs to pods without a claim. */
void gpu_metrics_toolkit(struct gpu_metrics *m, bool gives);
/* A device plugin gives out GPUs of this node. */
void gpu_metrics_device_plugin(struct gpu_metrics *m, bool active);
