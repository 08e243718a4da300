/* SPDX-License-Identifier: Apache-2.0 */
/* host_report: reports the state of the host's nvidia-imex. It updates the metrics after each answer. After a
 * change, it also writes a log line and an Event of the Node, and, in the host-managed mode, annotations of
 * the plugin's own Pod, from which the controller makes a condition. */
#pragma once

#include "cd_plugin/host_imex.h"
#include "cd_plugin/cd_metrics.h"
#include "cd_plugin/own_pod.h"
#include "kube/event_recorder.h"
#include "model/mode.h"

struct host_report;

struct host_report_options { /* the strings are borrowed until host_report_free() */
        struct event_recorder *events;
        struct cd_metrics *metrics;
        const struct imex_mode *mode;
        const char *node;
        struct own_pod *own_pod; /* borrowed until host_report_free(); NULL: nothing is annotated */
};

struct host_report *host_report_new(const struct host_report_options *o);
void host_report_free(struct host_report *r);
void host_report_update(struct host_report *r, const struct host_imex_status *s);
