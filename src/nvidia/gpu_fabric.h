/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_fabric: derives the clique ID of the node's NVLink partition from NVML's facts. Pure. */
#pragma once

#include "nvidia/nvml.h"

enum gpu_fabric_kind {
        GPU_FABRIC_NONE,        /* no multi-node NVLink: pods run without a channel */
        GPU_FABRIC_CLIQUE,      /* clique_id is set */
        GPU_FABRIC_REGISTERING, /* strict only: registration not started or in progress; query NVML again */
        GPU_FABRIC_ERROR, /* strict only: registration failed, GPUs disagree or NVML failed; see `reason` */
};

struct gpu_fabric {
        enum gpu_fabric_kind kind;
        char clique_id[64]; /* "<cluster uuid>.<n>" */
        char reason[200];   /* for people: why there is no clique ID; names the GPU */
};

/* Derives the clique ID. `strict` is the feature gate CrashOnNVLinkFabricErrors. */
void gpu_fabric_from_facts(const struct nvml_facts *f, bool strict, struct gpu_fabric *ret);
