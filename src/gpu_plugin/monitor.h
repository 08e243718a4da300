/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: watches this node's GPUs for errors and records their health (health.h). The plugin uses it only
 * with the feature gate NVMLDeviceHealthCheck, because the watch keeps a session with the driver open
 * (nvidia/nvml_session.h). Loop thread only. */
#pragma once

#include <uv.h>

#include "gpu_plugin/gpu_report.h"
#include "gpu_plugin/gpus.h"
#include "gpu_plugin/health.h"

enum { MONITOR_RESTART_MS = 5000 }; /* a shorter interruption of the watch is not reported */

struct monitor_options {
        const struct xids *of_programs; /* copied */
        const char *folder, *boot_id;   /* of the file with the health; copied */
        struct gpu_report *report;      /* of XIDs, and of a watch that fails; borrowed */
        /* Called when the taints may have changed, but never inside a function of this module except
         * monitor_forget_xids(). */
        void (*changed)(void *u);
        /* Called when the taints may have changed and NVML cannot watch a GPU: perhaps NVML fails for every
         * use of the GPU. Not called for a lost GPU, which has a taint, or for a GPU that works but has no
         * events for XIDs (NVML_NOT_SUPPORTED). Never called inside a function of this module. */
        void (*doubt)(void *u);
        void *u;
};

struct monitor;
struct monitor *monitor_new(uv_loop_t *loop, const struct monitor_options *o);
/* Sets the GPUs to watch. The owner calls it when they have changed. `d` is borrowed until the next call.
 * s->library NULL: stops the watch and closes its session. */
void monitor_follow(struct monitor *m, const struct gpus_state *s, const struct gpu_devices *d);
/* Forgets all XIDs, because an administrator has handled the errors. Calls changed(). */
void monitor_forget_xids(struct monitor *m);
const struct health *monitor_health(const struct monitor *m);
void monitor_free(struct monitor *m);
