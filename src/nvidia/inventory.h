/* SPDX-License-Identifier: Apache-2.0 */
/* inventory: NVML's description of a node's GPUs, as plain data. Numbers and names are NVML's own (nvml.h).
 * gpu_plugin/gpu_devices chooses the names in Kubernetes. The decoder is pure and fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
        INVENTORY_GPUS_MAX = 64,
        INVENTORY_MIG_MAX = 64,    /* for one GPU; today it has up to 7 */
        INVENTORY_SLICES_MAX = 64, /* of one GPU; today it has up to 8 */
        INVENTORY_TEXT_MAX = 96,
};

/* Why a device cannot be described: NVML's function failed with this nvmlReturn_t, or NVML returned an
 * impossible value. All members are NULL and 0 if there is no failure. */
struct inventory_failure {
        const char *call;
        int64_t error;
        const char *odd; /* the impossible value, for people */
};
bool inventory_failed(const struct inventory_failure *f);

/* A MIG device: one compute instance in a GPU instance. */
struct mig_facts {
        struct inventory_failure failure;
        const char *uuid;
        int64_t gpu_instance, compute_instance; /* IDs, as in the names below /proc/driver/nvidia */
        int64_t gi_profile;                     /* NVML_GPU_INSTANCE_PROFILE_*; -1: an unknown profile */
        int64_t profile_id;                     /* of the GPU instance's profile: nvidia-smi mig -lgip */
        int64_t start, size;                    /* its placement, in slices of memory */
        int64_t gpu_slices, compute_slices;
        const char *name; /* NVML's own name of the profile, or NULL */
        int64_t multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines, memory_mib;
};

struct gpu_facts {
        struct inventory_failure failure; /* if set, only members up to the failed one are known */
        int64_t index, minor;
        const char *uuid;
        const char *name;               /* or NULL, as all texts below */
        int64_t brand, architecture;    /* NVML_BRAND_*, NVML_DEVICE_ARCH_*; 0: unknown */
        const char *compute_capability; /* "9.0" */
        int64_t memory_bytes;           /* 0: unknown */
        const char *pci_bus_id;         /* as NVML writes it: "00000000:16:00.0" */
        const char *addressing_mode;    /* "HMM", "ATS", "None" */
        int64_t mig_mode;               /* 1: on */
        bool persistence_off;           /* the driver attaches it again for each session */
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

/* All memory in the arena. A GPU or MIG device with an impossible description gets a failure, and the others
 * are read. ERR_INVALID: the text is not an inventory; the message states why. */
int inventory_decode(struct str json, struct arena *a, struct inventory *ret, struct err *e);
