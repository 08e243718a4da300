/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_fabric: decodes NVML's description of the node's NVLink fabric, and derives the clique ID of the node's
 * NVLink partition from it. Pure; the decoder is fuzzed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* The description that nvml_survey_fabric() writes. */
struct nvml_gpu {
        const char *name, *uuid;
        int64_t fabric_call;   /* nvmlReturn_t of the fabric query; 3 is NOT_SUPPORTED */
        int64_t fabric_state;  /* 0 not supported, 1 not started, 2 in progress, 3 completed */
        int64_t fabric_status; /* nvmlReturn_t of the registration when completed */
        int64_t clique_id;
        const char *cluster_uuid; /* canonical lower case text */
};

struct nvml_facts {
        const char *driver_version;
        struct nvml_gpu *gpus;
        size_t n_gpus;
};

extern const struct jd_field nvml_facts_fields[];

/* Decodes the description. All memory is allocated in the arena. */
int nvml_facts_decode(struct str json, struct arena *a, struct nvml_facts *ret, struct err *e);

/* Compares dotted versions numerically. Returns a negative number, 0 or a positive number, as strcmp()
 * does. */
int nvml_version_cmp(const char *a, const char *b);

enum gpu_fabric_kind {
        GPU_FABRIC_NONE,        /* no multi-node NVLink: pods run without a channel */
        GPU_FABRIC_CLIQUE,      /* clique_id is set */
        GPU_FABRIC_REGISTERING, /* strict only: registration not started or in progress; query NVML again */
        GPU_FABRIC_ERROR, /* strict only: registration failed, GPUs disagree, NVML reports no GPU or NVML
                             failed; see `reason` */
};

struct gpu_fabric {
        enum gpu_fabric_kind kind;
        char clique_id[64]; /* "<cluster uuid>.<n>" */
        char reason[200];   /* for people: why there is no clique ID; names the GPU */
};

/* Derives the clique ID. `strict` is the feature gate CrashOnNVLinkFabricErrors; without it, a node in error
 * counts as a node without a fabric.
 *
 * A list without any GPU does not show that the node has no fabric: NVML returns one while the GPUs fail to
 * start, or the driver is reloaded. So it is an error. A node that has only display adapters has no fabric.
 */
void gpu_fabric_from_facts(const struct nvml_facts *f, bool strict, struct gpu_fabric *ret);
