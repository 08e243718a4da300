/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_driver: the DRA driver gpu.nvidia.com on a node, as a struct node_driver. Loop thread only. */
#pragma once

#include "api/gates.h"
#include "gpu_plugin/device.h"
#include "gpu_plugin/gpu_record.h"
#include "node/ops.h"
#include "nvidia/driver_root.h"

/* Strings are borrowed as long as the driver's `u` lives. Only `hook` is copied. */
struct gpu_driver_options {
        const char *node;
        const struct gates *gates;
        struct driver_root root;
        const char *sys;          /* "/sys" */
        const char *proc_driver;  /* "/proc/driver/nvidia", or its substitute */
        const char *proc_devices; /* "/proc/devices", or its substitute */
        const char *hook;         /* on the host */
        const char *ldconfig;     /* on the host, for our own hook; NULL: the hook finds one */
        bool ipc_sockets;         /* give containers the socket of nvidia-persistenced */
        bool no_gids;             /* no additional groups, which need CDI 0.7.0 */
        /* True if the devices of the last gpu_driver_set_devices() are still what the node shows. If not,
         * gpu_driver_set_devices() is called soon. */
        bool (*hold)(void *u);
        /* A Prepare waits for gpu_driver_set_devices(), or none does any more. */
        void (*wanted)(void *u, bool yes);
        /* The recorded claims, at the start and after each change. May be NULL. */
        void (*recorded)(void *u, const struct checkpoint *table);
        void *u;
};

struct gpu;
/* `u` of the node half's functions. */
struct gpu *gpu_driver_new(const struct gpu_driver_options *o);

/* To be called when the node's GPUs or the driver's files have changed. `devices` is borrowed until the next
 * call; NULL: not known yet, or no longer known. `why`, for people: why they are not known; with devices, a
 * problem or "". */
void gpu_driver_set_devices(struct gpu *g, const struct gpu_devices *devices, const char *why);

extern const struct node_driver gpu_driver;

/* Rejects feature gates that this driver does not implement, because a gate without effect would mislead.
 * ERR_INVALID names the gate. */
int gpu_driver_check_gates(const struct gates *gates, struct err *e);
