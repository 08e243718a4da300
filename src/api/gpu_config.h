/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_config: the configurations of GPUs in resource claims (resource.nvidia.com/v1beta1: GpuConfig,
 * MigDeviceConfig, VfioDeviceConfig), and the choice of the one that counts for a device. Pure; fuzzed.
 *
 * Errors use the words of the Go driver, which users search for. */
#pragma once

#include "api/claim.h"
#include "api/gates.h"

/* The kind of a configuration, and of a device. A configuration is for devices of its kind. */
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

/* The configuration of a device, and its place among the claim's configurations; n_configs: none of them. */
struct gpu_config_choice {
        struct gpu_config config;
        size_t index;
};

/* Decodes strictly: unknown and duplicate members, another apiVersion or kind, and settings that the gates do
 * not allow are ERR_INVALID. Missing settings have their defaults. */
int gpu_config_decode(struct str json, const struct gates *gates, struct gpu_config *ret, struct err *e);

/* Finds the configuration of a device. Those of the claim come before those of its class, and later ones
 * before earlier ones. The first one counts that names the request, or that names no request and has the kind
 * of the device. If there is none, the device is GPU_EXCLUSIVE. A configuration that names the request "main"
 * also counts for "main/sub". All configurations of the claim must be well-formed, but only the one that
 * counts is checked against the gates. */
int gpu_config_for(const struct claim *c, const struct claim_result *r, enum gpu_config_kind kind,
                   const struct gates *gates, struct gpu_config_choice *ret, struct err *e);
