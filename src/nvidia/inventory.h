/* SPDX-License-Identifier: Apache-2.0 */
/* inventory: what NVML says of a node's GPUs, as plain data. Numbers and names are NVML's own (nvml.h); what
 * they are called in Kubernetes is decided elsewhere. Reading is pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
        INVENTORY_GPUS_MAX = 64,
        INVENTORY_MIG_MAX = 64,    /* of one GPU; there are 7 today */
        INVENTORY_SLICES_MAX = 64, /* in which a GPU is divided; there are 8 today */
        INVENTORY_TEXT_MAX = 96,
};

/* Why a device cannot be described: NVML's function failed with this nvmlReturn_t, or NVML says what cannot
 * be. All are NULL and 0 when it can. */
struct inventory_failure {
        const char *call;
        int64_t error;
        const char *odd; /* for people */
};
bool inventory_failed(const struct inventory_failure *f);

/* A MIG device: one compute instance in a GPU instance. */
struct mig_facts {
        struct inventory_failure failure;
        const char *uuid;
        int64_t gpu_instance, compute_instance; /* ids, as in the names below /proc/driver/nvidia */
        int64_t gi_profile;                     /* NVML_GPU_INSTANCE_PROFILE_*; -1: none that we know */
        int64_t profile_id;                     /* of the GPU instance's profile: nvidia-smi mig -lgip */
        int64_t start, size;                    /* its placement, in slices of memory */
        int64_t gpu_slices, compute_slices;
        const char *name; /* NVML's own name of the profile, or NULL */
        int64_t multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines, memory_mib;
};

struct gpu_facts {
        struct inventory_failure failure; /* then nothing is known but the index, and what came before it */
        int64_t index, minor;
        const char *uuid;
        const char *name;               /* or NULL, as all texts below */
        int64_t brand, architecture;    /* NVML_BRAND_*, NVML_DEVICE_ARCH_*; 0 when it did not say */
        const char *compute_capability; /* "9.0" */
        int64_t memory_bytes;           /* 0: not told */
        const char *pci_bus_id;         /* as NVML writes it: "00000000:16:00.0" */
        const char *addressing_mode;    /* "HMM", "ATS", "None" */
        int64_t mig_mode;               /* 1: on */
        bool persistence_off;           /* it is attached again for each session */
        struct mig_facts *mig;
        size_t n_mig;
        int64_t n_mig_more; /* places for MIG devices beyond INVENTORY_MIG_MAX, which were not asked */
};

struct inventory {
        const char *driver_version; /* "580.95.05" */
        int64_t cuda_version;       /* 13000 for 13.0; 0: not told */
        struct gpu_facts *gpus;     /* in the order of NVML's index */
        size_t n_gpus;
};

/* All memory in the arena. A GPU or MIG device that is described as none can be has a failure, and the others
 * are read. ERR_INVALID: it is no inventory at all, and why. */
int inventory_decode(struct str json, struct arena *a, struct inventory *ret, struct err *e);
