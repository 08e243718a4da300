/* SPDX-License-Identifier: Apache-2.0 */
/* nvml: decodes NVML's description of the node's NVLink fabric, which nvml_survey_fabric() writes. Pure;
 * fuzzed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

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
