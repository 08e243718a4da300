/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_report: reports the state of this node's GPUs in the log, in metrics, and as Events of the Node. */
#pragma once

#include "gpu_plugin/gpu_record.h"
#include "gpu_plugin/gpus.h"
#include "gpu_plugin/health.h"
#include "kube/event_recorder.h"
#include "node/node_metrics.h"
#include "nvidia/toolkit.h"

/* The metrics of this plugin: those of the node half, and those of GPUs. */
struct gpu_metrics {
        struct node_metrics node;
        struct metric *offered, *withheld, *failures, *stale, *tainted, *device_plugin, *foreign,
                *persistence_off, *toolkit;
};

/* Registers all metrics, until node_metrics_done(). */
void gpu_metrics_init(struct gpu_metrics *m, const char *node);
/* Counts a failure of the process that calls NVML. `kind`: "hung" or "crashed". */
void gpu_metrics_failed(struct gpu_metrics *m, const char *kind);

struct gpu_report {
        struct event_recorder *events;
        struct gpu_metrics *metrics;
        const char *node;
        const char *hook; /* why the CDI hook cannot be used, so no GPU is offered; NULL: it can */
        /* The last reported state. */
        char withheld[32]; /* the reason; "": none */
        bool stale, unmonitored, device_plugin;
        enum slice_taints taints;
        size_t lost, foreign, persistence_off;
        uint64_t offered, left_out; /* hashes of the offered and the left-out devices; 0: none */
};

/* Reports the state of the GPUs. The caller calls it on each change; each fact is reported once. */
void gpu_report_update(struct gpu_report *r, const struct gpus_state *s, const struct gpu_devices *d);
/* Reports an XID of a device. An XID that is a program's error (of_program) is only logged. */
void gpu_report_xid(struct gpu_report *r, const struct gpu_device *d, uint64_t xid, bool of_program);
/* Reports that the watch of the GPUs has failed, or with e NULL, that it runs. */
void gpu_report_watch(struct gpu_report *r, const struct err *e);
/* Reports the current taints of the devices. */
void gpu_report_health(struct gpu_report *r, const struct health *h, const struct gpu_devices *d);
/* Reports which taints the API server accepts. */
void gpu_report_untainted(struct gpu_report *r, enum slice_taints taken);
/* Reports that the API server rejects a device. */
void gpu_report_refused(struct gpu_report *r, const char *device, const struct err *e);
/* Reports the devices that the Go driver has set up and that this driver does not manage (gpu_record.h). The
 * caller calls it at the start and when the table has changed. */
void gpu_report_foreign(struct gpu_report *r, const struct checkpoint *table);
/* Reports whether the container toolkit gives GPUs to pods without a claim. The caller calls it on each
 * change. */
void gpu_report_toolkit(struct gpu_report *r, enum toolkit_gpus answer, const char *why);
/* Reports the GPUs that a device plugin gives to pods, as text ("nvidia.com/gpu: 4"); "": there is no
 * device plugin. */
void gpu_report_device_plugin(struct gpu_report *r, const char *offers);
