/* SPDX-License-Identifier: Apache-2.0 */
/* device: a GPU or a MIG device of this node, as plain data: what is published, and what Prepare needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "node/slice.h"

/* The words of the attribute "type". */
#define GPU_TYPE_FULL "gpu"
#define GPU_TYPE_MIG "mig"

enum gpu_kind { GPU_FULL, GPU_MIG };

struct gpu_device {
        enum gpu_kind kind;
        const char *name; /* "gpu-0"; for a MIG device "gpu-0-mig-1g10gb-19-0"; for several compute instances
                             in one GPU instance "gpu-0-mig-1c3g40gb-9-0" and "gpu-0-mig-1c3g40gb-9-0-1" */
        const char *uuid; /* "GPU-...", "MIG-..." */
        unsigned minor;   /* of /dev/nvidia<minor>; a MIG device has its parent's */
        const char
                *address; /* on the PCI bus, "0000:16:00.0"; a MIG device has its parent's; NULL: unknown */
        /* MIG devices only. */
        const char *parent_uuid;
        unsigned gpu_instance, compute_instance; /* capabilities/gpu<minor>/mig/gi<...>/ci<...> */
        bool graphics;                           /* its profile includes the nodes in /dev/dri */
        struct offered_device offered;           /* as in the ResourceSlice */
};

/* A GPU that cannot be described is left out, so that it does not hide the others. */
struct gpu_left_out {
        const char *what; /* "GPU 3", "MIG device 0 of gpu-1" */
        const char *why;  /* for people */
};

/* The devices of this node, sorted: by minor, whole GPUs before parts, by profile and place. */
struct gpu_devices {
        struct arena *arena;        /* owns all of the memory */
        const char *driver_version; /* as NVML returns it, and as in file names: "580.95.05" */
        struct gpu_device *items;
        size_t n;
        struct gpu_left_out *left_out;
        size_t n_left_out;
        bool incomplete;          /* something is left out because NVML could not describe it this time */
        size_t n_persistence_off; /* GPUs without persistence mode */
};

/* NULL: no device has that name. */
const struct gpu_device *gpu_device_find(const struct gpu_devices *d, const char *name);
