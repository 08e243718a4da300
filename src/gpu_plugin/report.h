/* SPDX-License-Identifier: Apache-2.0 */
/* report: what people are told of this node's GPUs: log, metrics, and Events of the Node. */
#pragma once

#include "gpu_plugin/foreign.h"
#include "gpu_plugin/gpu_metrics.h"
#include "gpu_plugin/gpus.h"
#include "gpu_plugin/health.h"
#include "kube/event_recorder.h"
#include "nvidia/toolkit.h"

struct report {
        struct event_recorder *events;
        struct gpu_metrics *metrics;
        const char *node;
        /* What was told last. */
        char withheld[32]; /* the reason; "" none */
        bool stale, unmonitored, device_plugin;
        enum slice_taints taints;
        size_t lost, foreign, persistence_off;
        uint64_t offered, left_out; /* hashes of what is offered, and left out; 0: nothing */
};

/* To be called at each change; each thing is told once. */
void report_tell(struct report *r, const struct gpus_state *s, const struct gpu_devices *d);
/* A device reports an error; one of a program is only logged. */
void report_xid(struct report *r, const struct gpu_device *d, uint64_t xid, bool of_program);
/* Nobody watches the GPUs any more, and why; NULL: somebody does. */
void report_watch(struct report *r, const struct err *e);
/* What the devices have of taints now. */
void report_health(struct report *r, const struct health *h, const struct gpu_devices *d);
/* The API server does not take taints. */
void report_untainted(struct report *r, enum slice_taints taken);
/* The API server does not take a device. */
void report_refused(struct report *r, const char *device, const struct err *e);
/* What the Go driver has set up for claims and this driver does not manage; to be called at the start and
 * when the table has changed. */
void report_foreign(struct report *r, const struct checkpoint *table);
/* Whether the container toolkit gives GPUs to pods without a claim, each time that this changes. */
void report_toolkit(struct report *r, enum toolkit_gpus answer, const char *why);
/* What a device plugin gives out of this node, as device_plugin tells it; "" when there is none (any more).
 */
void report_device_plugin(struct report *r, const char *offers);
