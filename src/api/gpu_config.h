/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_config: decodes the configurations of GPUs in resource claims (resource.nvidia.com/v1beta1: GpuConfig,
 * MigDeviceConfig, VfioDeviceConfig), and chooses the configuration of a device. Pure; fuzzed.
 *
 * Errors have the wording of the Go driver's errors, because users search for it. */
#pragma once

#include "api/claim.h"
#include "api/gates.h"

/* The kind of a device, and of the configurations that apply to it. */
enum gpu_config_kind { GPU_CONFIG_GPU, GPU_CONFIG_MIG, GPU_CONFIG_VFIO };
/* The values of the attribute `type` of a device. */
#define GPU_TYPE_FULL "gpu"
#define GPU_TYPE_MIG "mig"
#define GPU_TYPE_VFIO "vfio"
/* Returns the GPU_TYPE_* of the kind. */
const char *gpu_config_type(enum gpu_config_kind kind);

enum gpu_sharing { GPU_EXCLUSIVE, GPU_TIME_SLICING, GPU_MPS };
enum gpu_interval { GPU_INTERVAL_DEFAULT, GPU_INTERVAL_SHORT, GPU_INTERVAL_MEDIUM, GPU_INTERVAL_LONG };

struct gpu_config {
        enum gpu_config_kind kind;
        enum gpu_sharing sharing;
        enum gpu_interval interval; /* with GPU_TIME_SLICING */
};

/* The configuration of a device. `index` is its position in the claim's configurations; n_configs: it is not
 * one of them. */
struct gpu_config_choice {
        struct gpu_config config;
        size_t index;
};

/* Decodes a configuration strictly: unknown and duplicate members, another apiVersion or kind, and settings
 * that the gates do not allow are ERR_INVALID. Missing settings get their defaults. */
int gpu_config_decode(struct str json, const struct gates *gates, struct gpu_config *ret, struct err *e);

/* Finds the configuration of a device. Searches the configurations of the claim before those of the class,
 * and later ones before earlier ones. Uses the first one that names the request, or that names no request and
 * has the kind of the device. If there is none, the device is GPU_EXCLUSIVE. A configuration that names the
 * request "main" also matches "main/sub". All configurations of the claim must be well-formed, but only the
 * used one is checked against the gates. */
int gpu_config_for(const struct claim *c, const struct claim_result *r, enum gpu_config_kind kind,
                   const struct gates *gates, struct gpu_config_choice *ret, struct err *e);
