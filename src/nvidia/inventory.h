/* SPDX-License-Identifier: Apache-2.0 */
/* inventory: decodes NVML's description of a node's GPUs to plain data. Numbers and names are those of NVML
 * (NVIDIA's nvml.h); gpu_plugin/gpu_devices chooses the names in Kubernetes. The decoder is pure and
 * fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum {
        INVENTORY_GPUS_MAX = 64,
        INVENTORY_MIG_MAX = 64,    /* of one GPU; current GPUs have up to 7 */
        INVENTORY_SLICES_MAX = 64, /* of one GPU; current GPUs have up to 8 */
        INVENTORY_TEXT_MAX = 96,
};

/* The reason why a device cannot be described: an NVML function failed, or NVML returned an impossible value.
 * All members are NULL or 0 if there is no failure. */
struct inventory_failure {
        const char *call; /* the NVML function */
        int64_t error;    /* its nvmlReturn_t */
        const char *odd; /* the impossible value, for people */
};
bool inventory_failed(const struct inventory_failure *f);

/* A MIG device: one compute instance in a GPU instance. */
struct mig_facts {
        struct inventory_failure failure;
        const char *uuid;
        int64_t gpu_instance, compute_instance; /* IDs, as in the names below /proc/driver/nvidia */
        int64_t gi_profile;                     /* NVML_GPU_INSTANCE_PROFILE_*; -1: an unknown profile */
        int64_t profile_id;                     /* profile ID, as in nvidia-smi mig -lgip */
        int64_t start, size;                    /* its placement, in memory slices */
        int64_t gpu_slices, compute_slices;
        const char *name; /* NVML's own name of the profile, or NULL */
        int64_t multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines, memory_mib;
};

struct gpu_facts {
        struct inventory_failure failure; /* if set, only members up to the failed one are known */
        int64_t index, minor;
        const char *uuid;
        const char *name;               /* NULL: unknown, as for all texts below */
        int64_t brand, architecture;    /* NVML_BRAND_*, NVML_DEVICE_ARCH_*; 0: unknown */
        const char *compute_capability; /* "9.0" */
        int64_t memory_bytes;           /* 0: unknown */
        const char *pci_bus_id;         /* as NVML writes it: "00000000:16:00.0" */
        const char *addressing_mode;    /* "HMM", "ATS", "None" */
        int64_t mig_mode;               /* 1: on */
        bool persistence_off;           /* persistence mode is off: each session attaches the GPU again */
        struct mig_facts *mig;
        size_t n_mig;
        int64_t n_mig_more; /* places for MIG devices beyond INVENTORY_MIG_MAX, which were not queried */
};

struct inventory {
        const char *driver_version; /* "580.95.05" */
        int64_t cuda_version;       /* 13000 for 13.0; 0: unknown */
        struct gpu_facts *gpus;     /* in the order of NVML's index */
        size_t n_gpus;
};

extern const struct jd_field inventory_fields[];

/* Decodes an inventory. All memory is allocated in the arena. If the description of a GPU or MIG device is
 * impossible, its `failure` is set, and the others are decoded. ERR_INVALID: the text is not an inventory;
 * the message states why. */
int inventory_decode(struct str json, struct arena *a, struct inventory *ret, struct err *e);

/* Computes the name of a MIG profile, such as "1g.10gb", "1c.3g.40gb" or "1g.10gb+me". Pure.
 *
 * NVML numbers the profiles (NVML_GPU_INSTANCE_PROFILE_* of nvml.h), and newer libraries also name them.
 * Users write the names of nvidia-smi and of the Go driver's library (go-nvlib) into selectors. This
 * module follows the rule of go-nvlib, so that a device has the same name with each driver. */

/* The facts about a device that determine its profile name. */
struct mig_profile {
        int64_t gi_profile; /* NVML_GPU_INSTANCE_PROFILE_* */
        int64_t gpu_slices, compute_slices;
        int64_t memory_mib;       /* of the GPU instance */
        int64_t gpu_memory_bytes; /* of the whole GPU */
};

/* Writes the name. Returns false if the rule has no name for the profile. */
bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n);

/* Returns true if the profile supports graphics. Only "+gfx" profiles include the GPU's device nodes in
 * /dev/dri. */
bool mig_profile_graphics(int64_t gi_profile);
