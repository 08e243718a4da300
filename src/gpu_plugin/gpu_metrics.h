/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_metrics: exports the metrics of this plugin: the metrics of the node half, and metrics of GPUs. */
#pragma once

#include "node/node_metrics.h"

struct gpu_metrics {
        struct metrics *registry;
        struct node_metrics_options options;
        struct node_metrics node;
        struct metric *offered, *withheld, *failures, *stale, *tainted, *device_plugin, *foreign,
                *persistence_off, *toolkit;
};

/* Registers all metrics. `m` must not move until gpu_metrics_done(). */
void gpu_metrics_init(struct gpu_metrics *m, const char *node);
void gpu_metrics_done(struct gpu_metrics *m);

/* Sets the number of offered devices of each type. `reason`: why devices are withheld; "": they are
 * offered. */
void gpu_metrics_offered(struct gpu_metrics *m, size_t gpus, size_t migs, const char *reason);
/* Counts a failure of the process that calls NVML. `kind`: "hung" or "crashed". */
void gpu_metrics_failed(struct gpu_metrics *m, const char *kind);
/* Sets the number of devices with this taint and effect. `taint` is the key without the driver's name. */
void gpu_metrics_tainted(struct gpu_metrics *m, const char *taint, const char *effect, size_t n);
/* Sets whether the offered devices are from an answer that NVML gave before it failed. */
void gpu_metrics_stale(struct gpu_metrics *m, bool stale);
/* Sets the number of devices of a kind ("mps", "vfio", "mig") that the Go driver has prepared. */
void gpu_metrics_foreign(struct gpu_metrics *m, const char *kind, size_t n);
/* Sets the number of GPUs without persistence mode. */
void gpu_metrics_persistence_off(struct gpu_metrics *m, size_t gpus);
/* Sets whether the container toolkit gives GPUs to pods without a claim. */
void gpu_metrics_toolkit(struct gpu_metrics *m, bool gives);
/* Sets whether a device plugin gives this node's GPUs to pods. */
void gpu_metrics_device_plugin(struct gpu_metrics *m, bool active);
