/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_devices: converts the facts that NVML and sysfs report about this node's GPUs to devices. The names,
 * attributes and capacities are those of the Go driver, because users' selectors and allocations contain
 * them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/gpu_config.h"
#include "base/mem.h"
#include "node/slice.h"
#include "nvidia/inventory.h"

/* ---- a GPU or a MIG device as plain data ---- */

enum gpu_kind { GPU_FULL, GPU_MIG };

struct gpu_device {
        enum gpu_kind kind;
        const char *name; /* "gpu-0"; for a MIG device "gpu-0-mig-1g10gb-19-0"; for several compute instances
                             in one GPU instance "gpu-0-mig-1c3g40gb-9-0" and "gpu-0-mig-1c3g40gb-9-0-1" */
        const char *uuid; /* "GPU-...", "MIG-..." */
        unsigned minor;   /* the number in /dev/nvidia<minor>; a MIG device has the minor of its parent */
        unsigned index;   /* NVML's index of the GPU, below INVENTORY_GPUS_MAX */
        const char *address; /* PCI address, "0000:16:00.0"; a MIG device has its parent's; NULL: unknown */
        /* MIG devices only. */
        const char *parent_uuid;
        unsigned gpu_instance, compute_instance; /* IDs in capabilities/gpu<minor>/mig/gi<...>/ci<...> */
        bool graphics;                           /* its profile includes the device nodes in /dev/dri */
        struct offered_device offered;           /* its entry in the ResourceSlice */
};

/* A device that is left out, because it cannot be described. The other devices are still listed. */
struct gpu_left_out {
        const char *what; /* "GPU 3", "MIG device 0 of gpu-1" */
        const char *why;  /* the reason, for people */
        bool unused_mig;  /* the reason: the GPU is in MIG mode and has no MIG devices */
};

/* The devices of this node. They are sorted by minor; a whole GPU precedes its MIG devices, which are sorted
 * by profile and placement. */
struct gpu_devices {
        struct arena *arena;        /* owns all of the memory */
        const char *driver_version; /* as NVML returns it and as it appears in file names: "580.95.05" */
        struct gpu_device *items;
        size_t n;
        struct gpu_left_out *left_out;
        size_t n_left_out;
        bool incomplete;          /* a device is left out because NVML failed to describe it in this query, or
                                     because its GPU is in MIG mode and has no MIG devices */
        size_t n_persistence_off; /* GPUs without persistence mode */
};

/* Finds a device by its name. Returns NULL if no device has that name. */
const struct gpu_device *gpu_device_find(const struct gpu_devices *d, const char *name);

/* Describes the devices of an inventory. Reads only sysfs, below `sys`. All memory is allocated in
 * ret->arena; the caller frees it with gpu_devices_done(). */
void gpu_devices_describe(const struct inventory *in, const char *sys, struct gpu_devices *ret);
void gpu_devices_done(struct gpu_devices *d);

/* Returns true if both contain the same devices with the same descriptions. */
bool gpu_devices_equal(const struct gpu_devices *a, const struct gpu_devices *b);

/* The following functions are pure. They are exported for tests. */

/* Writes a version as the API accepts it (semantic versioning): the first three numbers of the text, without
 * leading zeros, and 0 for a missing number. "580.95.05" becomes "580.95.5". Returns false if the text does
 * not begin with a number. */
bool gpu_version(const char *text, char *ret, size_t n);
/* Writes a quantity as the API server does, with binary units: 150754820096 becomes "143771Mi", 14 becomes
 * "14". */
void gpu_quantity(int64_t v, char *ret, size_t n);
/* Writes a profile as device names contain it: in lower case and without dots. Characters other than letters,
 * digits and '-' become '-'. */
void gpu_profile_in_name(const char *profile, char *ret, size_t n);
