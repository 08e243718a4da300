/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_edits: the CDI edits of a container with a GPU. The Go driver gets the same edits from NVIDIA's
 * container toolkit. Reads the driver's root, /dev and sysfs, and does not call NVML. */
#pragma once

#include <errno.h>

#include "cdi/cdi.h"
#include "gpu_plugin/device.h"
#include "nvidia/driver_set.h"
#include "nvidia/proc_files.h"

struct gpu_edits_options {
        struct driver_root root;
        struct driver_root dev_root; /* the folder that has dev/: the driver's root, or { "/", "/" } */
        const char *sys;             /* "/sys" */
        const char *proc_driver;     /* "/proc/driver/nvidia" or its substitute: has capabilities/ */
        struct proc_majors majors;   /* of the driver's devices; MIG devices need that of caps */
        /* For device nodes that the runtime creates and the host does not have. */
        unsigned node_mode, node_gid;
        bool gids;            /* let processes that are not root use device nodes that belong to a group */
        const char *hook;     /* on the host */
        const char *ldconfig; /* on the host, for a hook with this option; NULL: the hook finds one */
        const char *driver_version;
};

/* The edits of each container with a GPU: the driver's files and hooks, and the devices that all GPUs share.
 * All memory in the arena, except the options' strings. ERR_NOT_FOUND: a device node that every CUDA program
 * needs does not exist and cannot be created; the message has the remedy. The code is GPU_EDITS_NO_UVM if the
 * module nvidia_uvm is not loaded. */
enum { GPU_EDITS_NO_UVM = ENODEV };
int gpu_edits_common(const struct gpu_edits_options *o, const struct driver_set *files, struct arena *a,
                     struct cdi_edits *ret, struct err *e);

/* The further edits for this device. ERR_NOT_FOUND: the numbers of its device node are unknown, or its
 * capability files are missing; the message has the remedy. */
int gpu_edits_device(const struct gpu_edits_options *o, const struct gpu_device *d,
                     const struct cdi_edits *common, struct arena *a, struct cdi_edits *ret, struct err *e);
