/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: the node's NVLink clique from NVML's facts (reference section 7.3, both tables). Pure. */
#pragma once

#include "nvidia/nvml.h"

enum fabric_kind {
        FABRIC_NONE,        /* no multi-node NVLink: pods run without a channel */
        FABRIC_CLIQUE,      /* clique_id is set */
        FABRIC_REGISTERING, /* strict only: registration not started or in progress; ask again */
        FABRIC_ERROR, /* strict only: failed registration, GPUs that disagree, NVML failing; reason says it */
};

struct fabric {
        enum fabric_kind kind;
        char clique_id[64]; /* "<cluster uuid>.<n>" */
        char reason[200];   /* for people: why it is not a clique, naming the GPU */
};

/* strict is the gate CrashOnNVLinkFabricErrors. */
void fabric_from_facts(const struct nvml_facts *f, bool strict, struct fabric *ret);
