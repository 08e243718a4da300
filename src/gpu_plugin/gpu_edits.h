/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_edits: what a GPU adds to a container, as CDI edits: what the Go driver has NVIDIA's container toolkit
 * make, made here (spec 3.11). Reads the driver's root, /dev and sysfs; asks NVML for nothing. */
#pragma once

#include <errno.h>

#include "cdi/cdi.h"
#include "gpu_plugin/device.h"
#include "nvidia/driver_set.h"
#include "nvidia/proc_files.h"

struct gpu_edits_options {
        struct driver_root root;
        struct driver_root dev_root; /* what has dev/: the driver's root, or { "/", "/" } */
        const char *sys;             /* "/sys" */
        const char *proc_driver;     /* "/proc/driver/nvidia" or its substitute: has capabilities/ */
        struct proc_majors majors;   /* of the driver's devices; without that of caps no MIG device */
        /* Of nodes that the runtime makes and the host does not have. */
        unsigned node_mode, node_gid;
        bool gids;            /* let processes that are not root use nodes that belong to a group */
        const char *hook;     /* on the host */
        const char *ldconfig; /* on the host, for a hook that is told which one to run; NULL: it knows */
        const char *driver_version;
};

/* What each container with a GPU gets: the driver's files and hooks, and the devices that all GPUs share. All
 * memory in the arena but the options' strings. ERR_NOT_FOUND: a node that every CUDA program needs can be
 * made by nobody, with the remedy; its code is GPU_EDITS_NO_UVM where the module nvidia_uvm is not loaded. */
enum { GPU_EDITS_NO_UVM = ENODEV };
int gpu_edits_common(const struct gpu_edits_options *o, const struct driver_set *files, struct arena *a,
                     struct cdi_edits *ret, struct err *e);

/* What it gets of this device beyond that. ERR_NOT_FOUND: nobody knows the numbers of its device node, or its
 * capability files are missing, with the remedy. */
int gpu_edits_device(const struct gpu_edits_options *o, const struct gpu_device *d,
                     const struct cdi_edits *common, struct arena *a, struct cdi_edits *ret, struct err *e);
