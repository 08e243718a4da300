/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_config: the configurations of GPUs that travel in resource claims (resource.nvidia.com/v1beta1:
 * GpuConfig, MigDeviceConfig, VfioDeviceConfig), and which of them counts for a device. Pure; fuzzed.
 *
 * What is refused is refused in the words of the Go driver, which users search for. */
#pragma once

#include "api/claim.h"
#include "api/gates.h"

/* Of a configuration, and of a device: one of a kind is for devices of that kind. */
enum gpu_config_kind { GPU_CONFIG_GPU, GPU_CONFIG_MIG, GPU_CONFIG_VFIO };
/* "gpu", "mig", "vfio": the attribute `type` of a device. */
const char *gpu_config_type(enum gpu_config_kind kind);

enum gpu_sharing { GPU_EXCLUSIVE, GPU_TIME_SLICING, GPU_MPS };
enum gpu_interval { GPU_INTERVAL_DEFAULT, GPU_INTERVAL_SHORT, GPU_INTERVAL_MEDIUM, GPU_INTERVAL_LONG };

struct gpu_config {
        enum gpu_config_kind kind;
        enum gpu_sharing sharing;
        enum gpu_interval interval; /* with GPU_TIME_SLICING */
};

/* Strict: unknown and duplicate members, a foreign apiVersion or kind, and what the gates do not allow are
 * ERR_INVALID. What is not said has its default. */
int gpu_config_decode(struct str json, const struct gates *gates, struct gpu_config *ret, struct err *e);

/* The configuration of a device: that of the claim before that of its class, later ones before earlier, and
 * of those the first that names the request, or names none and is of the device's kind; GPU_EXCLUSIVE when
 * there is none. A configuration that names the request "main" counts for "main/sub" too. All of the claim's
 * must be written as they should be; what the gates do not allow is refused only of the one that counts.
 * *ret_index: its place among the claim's, or n_configs. */
int gpu_config_for(const struct claim *c, const struct claim_result *r, enum gpu_config_kind kind,
                   const struct gates *gates, struct gpu_config *ret, size_t *ret_index, struct err *e);
