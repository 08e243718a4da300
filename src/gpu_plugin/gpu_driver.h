/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_driver: implements the DRA driver gpu.nvidia.com on a node, as a struct node_driver. Loop thread
 * only. */
#pragma once

#include "api/gates.h"
#include "gpu_plugin/gpu_devices.h"
#include "gpu_plugin/gpu_record.h"
#include "node/ops.h"
#include "nvidia/driver_root.h"

/* The driver borrows all strings except `hook`, which it copies. They must live as long as the struct gpu. */
struct gpu_driver_options {
        const char *node;
        const struct gates *gates;
        struct driver_root root;
        const char *sys;          /* "/sys" */
        const char *proc_driver;  /* "/proc/driver/nvidia", or its substitute */
        const char *proc_devices; /* "/proc/devices", or its substitute */
        const char *hook;         /* path of the CDI hook on the host */
        const char *ldconfig;     /* path on the host, for our own hook; NULL: the hook searches for it */
        bool ipc_sockets;         /* give containers the socket of nvidia-persistenced */
        bool no_gids;             /* no additional groups, which need CDI 0.7.0 */
        /* Returns true if the devices of the last gpu_driver_set_devices() are still current. If it returns
         * false, the owner calls gpu_driver_set_devices() soon. */
        bool (*hold)(void *u);
        /* Returns true if NVML has described this device after `since_ms` (loop_now_ms()), or cannot answer.
         * If it returns false, the owner calls gpu_driver_verified() soon. */
        bool (*verify)(void *u, const struct gpu_device *d, uint64_t since_ms);
        /* Called when a Prepare begins to wait for gpu_driver_set_devices() (yes), or when none waits any
         * more. */
        void (*wanted)(void *u, bool yes);
        /* Called with the recorded claims, at the start and after each change. May be NULL. */
        void (*recorded)(void *u, const struct checkpoint *table);
        void *u;
};

struct gpu;
/* Creates the object that the node half passes as `u` to the functions of gpu_driver. */
struct gpu *gpu_driver_new(const struct gpu_driver_options *o);

/* Sets the devices. The owner calls it when the node's GPUs or the NVIDIA driver's files have changed.
 * `devices` is borrowed until the next call; NULL: the devices are not known yet, or no longer known. `why`
 * is a text for people: without devices, the reason why they are not known; with devices, a problem, or "" if
 * there is none. */
void gpu_driver_set_devices(struct gpu *g, const struct gpu_devices *devices, const char *why);

/* The owner calls it before it sets devices, if the hook lacks HOOK_PROFILE_COMMAND (gpu_hook.h). */
void gpu_driver_set_no_profiles(struct gpu *g);

/* The owner calls it when `verify` may return true for more devices. */
void gpu_driver_verified(struct gpu *g);

extern const struct node_driver gpu_driver;

/* Rejects feature gates that this driver does not implement, because a gate without effect would mislead.
 * ERR_INVALID names the gate. */
int gpu_driver_check_gates(const struct gates *gates, struct err *e);
