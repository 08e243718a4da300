/* SPDX-License-Identifier: Apache-2.0 */
/* report: what people are told of this node's GPUs: log, metrics, and Events of the Node. */
#pragma once

#include "gpu_plugin/gpu_metrics.h"
#include "gpu_plugin/gpus.h"
#include "kube/event_recorder.h"

struct report {
        struct event_recorder *events;
        struct gpu_metrics *metrics;
        const char *node;
        /* What was told last. */
        char withheld[32]; /* the reason; "" none */
        bool stale;
        uint64_t offered, left_out; /* hashes of what is offered, and left out; 0: nothing */
};

/* To be called at each change; each thing is told once. */
void report_tell(struct report *r, const struct gpus_state *s, const struct gpu_devices *d);
/* The API server does not take a device. */
void report_refused(struct report *r, const char *device, const struct err *e);
