/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_edits: computes the CDI edits of a container with a GPU. The Go driver gets the same edits from
 * NVIDIA's container toolkit. This module reads the driver's root, /dev and sysfs, and does not call NVML. */
#pragma once

#include <errno.h>

#include "cdi/cdi.h"
#include "gpu_plugin/gpu_devices.h"
#include "nvidia/driver_set.h"
#include "nvidia/proc_files.h"

struct gpu_edits_options {
        struct driver_root root;
        struct driver_root dev_root; /* the folder that contains dev/: the driver's root, or { "/", "/" } */
        const char *sys;             /* "/sys" */
        const char *proc_driver;     /* "/proc/driver/nvidia" or its substitute; contains capabilities/ */
        struct proc_majors majors;   /* majors of the driver's devices; MIG devices need majors.caps */
        /* The mode and the group of device nodes that the runtime creates, because the host lacks them. */
        unsigned node_mode, node_gid;
        bool gids;            /* let non-root processes use device nodes that belong to a group */
        const char *hook;     /* path of the CDI hook on the host */
        bool no_profiles;     /* the hook lacks HOOK_PROFILE_COMMAND (gpu_hook.h) */
        const char *ldconfig; /* path on the host, for a hook with this option; NULL: the hook searches */
        const char *driver_version;
};

/* Computes the edits that each container with a GPU needs: the driver's files and hooks, and the devices that
 * all GPUs share. All memory is allocated in the arena; the options' strings are borrowed. ERR_NOT_FOUND: a
 * device node that every CUDA program needs does not exist and cannot be created; the message contains the
 * remedy, and the code is GPU_EDITS_NO_UVM if the module nvidia_uvm is not loaded. */
enum { GPU_EDITS_NO_UVM = ENODEV };
int gpu_edits_common(const struct gpu_edits_options *o, const struct driver_set *files, struct arena *a,
                     struct cdi_edits *ret, struct err *e);

/* Computes the additional edits for this device. ERR_NOT_FOUND: the major or minor of its device node is
 * unknown, or its capability files are missing; the message contains the remedy. */
int gpu_edits_device(const struct gpu_edits_options *o, const struct gpu_device *d,
                     const struct cdi_edits *common, struct arena *a, struct cdi_edits *ret, struct err *e);
