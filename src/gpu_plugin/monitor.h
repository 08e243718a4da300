/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: watches this node's GPUs for errors and keeps their health (health.h). Only with the feature gate
 * NVMLDeviceHealthCheck, because the watch keeps a session with the driver open (nvidia/nvml_watch.h). Loop
 * thread only. */
#pragma once

#include <uv.h>

#include "gpu_plugin/gpus.h"
#include "gpu_plugin/health.h"

enum { MONITOR_RESTART_MS = 5000 }; /* an interruption of the watch that is shorter is not reported */

struct monitor_options {
        const struct xids *of_programs; /* copied */
        const char *folder, *boot_id;   /* for the file that survives a restart (health_file.h); copied */
        health_told_fn *xid;
        /* The watch has failed; NULL: it runs. Called at each change, and perhaps repeatedly. */
        void (*watch)(void *u, const struct err *e);
        /* The taints may have changed. Never called inside a function of this module, except
         * monitor_forget_xids(). */
        void (*changed)(void *u);
        void *u;
};

struct monitor;
struct monitor *monitor_new(uv_loop_t *loop, const struct monitor_options *o);
/* To be called when the GPUs have changed. The devices are borrowed until the next call. */
void monitor_follow(struct monitor *m, const struct gpus_state *s, const struct gpu_devices *d);
/* An administrator has handled the errors. Calls changed(). */
void monitor_forget_xids(struct monitor *m);
const struct health *monitor_health(const struct monitor *m);
void monitor_free(struct monitor *m);
