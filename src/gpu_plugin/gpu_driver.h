/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_driver: the DRA driver gpu.nvidia.com on a node, as a driver of the node half. Loop thread only. */
#pragma once

#include "api/gates.h"
#include "gpu_plugin/device.h"
#include "gpu_plugin/record.h"
#include "node/ops.h"
#include "nvidia/driver_root.h"

/* Strings are borrowed for as long as the driver's `u` lives, but for the hook, which is copied. */
struct gpu_driver_options {
        const char *node;
        const struct gates *gates;
        struct driver_root root;
        const char *sys;          /* "/sys" */
        const char *proc_driver;  /* "/proc/driver/nvidia", or its substitute */
        const char *proc_devices; /* "/proc/devices", or its substitute */
        const char *hook;         /* on the host */
        const char *ldconfig;     /* on the host, for our own hook; NULL: the hook knows one */
        bool ipc_sockets;         /* give containers the socket of nvidia-persistenced */
        bool no_gids;             /* no additional groups, which need CDI 0.7.0 */
        /* Is what was told last still what the node shows? If not, gpu_driver_know() is called soon. */
        bool (*hold)(void *u);
        /* A Prepare waits for that, or none does any more. */
        void (*wanted)(void *u, bool yes);
        /* The claims that are recorded, at the start and after each change. NULL: nobody wants to know. */
        void (*recorded)(void *u, const struct checkpoint *table);
        void *u;
};

struct gpu;
/* `u` of the node half's functions. */
struct gpu *gpu_driver_new(const struct gpu_driver_options *o);

/* The node's GPUs, whenever something about them, or about the driver's files, has changed. Borrowed until
 * the next call; NULL: not known yet, or not any more. `why`, for people: why not; with devices, "" or what
 * is wrong all the same. */
void gpu_driver_know(struct gpu *g, const struct gpu_devices *devices, const char *why);

extern const struct node_driver gpu_driver;

/* Feature gates that the driver has no part for yet: what is silently not there is worse than what is
 * refused. ERR_INVALID names it. */
int gpu_driver_check_gates(const struct gates *gates, struct err *e);
