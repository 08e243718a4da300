/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: keeps watching this node's GPUs for errors, and what is known of their health (health.h). With the
 * feature gate NVMLDeviceHealthCheck only: a session with the driver stays open for it (nvidia/nvml_watch.h).
 * Loop thread only. */
#pragma once

#include <uv.h>

#include "gpu_plugin/gpus.h"
#include "gpu_plugin/health.h"

enum { MONITOR_PATIENCE_MS = 5000 }; /* who is started anew within that is not missed */

struct monitor_options {
        const struct xids *of_programs; /* copied */
        const char *folder, *boot_id;   /* where it is kept over a restart (health_file.h); copied */
        health_told_fn *xid;
        /* Nobody watches; NULL: somebody does. Told at each change, and perhaps again. */
        void (*watch)(void *u, const struct err *e);
        /* Taints may be others than before. Never from inside a call of ours but monitor_forget_xids(). */
        void (*changed)(void *u);
        void *u;
};

struct monitor;
struct monitor *monitor_new(uv_loop_t *loop, const struct monitor_options *o);
/* What is known of the GPUs, whenever that has changed. The devices are borrowed until the next call. */
void monitor_follow(struct monitor *m, const struct gpus_state *s, const struct gpu_devices *d);
/* Somebody has seen to the GPUs. changed() is called. */
void monitor_forget_xids(struct monitor *m);
const struct health *monitor_health(const struct monitor *m);
void monitor_free(struct monitor *m);
