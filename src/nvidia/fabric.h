/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: derives the clique ID of the node's NVLink partition from NVML's facts. Pure. */
#pragma once

#include "nvidia/nvml.h"

enum fabric_kind {
        FABRIC_NONE,        /* no multi-node NVLink: pods run without a channel */
        FABRIC_CLIQUE,      /* clique_id is set */
        FABRIC_REGISTERING, /* strict only: registration not started or in progress; query NVML again */
        FABRIC_ERROR,       /* strict only: registration failed, GPUs disagree or NVML failed; see `reason` */
};

struct fabric {
        enum fabric_kind kind;
        char clique_id[64]; /* "<cluster uuid>.<n>" */
        char reason[200];   /* for people: why there is no clique ID; names the GPU */
};

/* `strict` is the feature gate CrashOnNVLinkFabricErrors. */
void fabric_from_facts(const struct nvml_facts *f, bool strict, struct fabric *ret);
