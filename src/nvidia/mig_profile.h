/* SPDX-License-Identifier: Apache-2.0 */
/* mig_profile: computes the name of a MIG profile, such as "1g.10gb", "1c.3g.40gb" or "1g.10gb+me". Pure.
 *
 * NVML numbers the profiles (NVML_GPU_INSTANCE_PROFILE_* of nvml.h), and newer libraries also name them.
 * Users write the names of nvidia-smi and of the Go driver's library (go-nvlib) into selectors. This
 * module follows the rule of go-nvlib, so that a device has the same name with each driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facts about a device that determine its profile name. */
struct mig_profile {
        int64_t gi_profile; /* NVML_GPU_INSTANCE_PROFILE_* */
        int64_t gpu_slices, compute_slices;
        int64_t memory_mib;       /* of the GPU instance */
        int64_t gpu_memory_bytes; /* of the whole GPU */
};

/* Writes the name. Returns false if the rule has no name for the profile. */
bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n);

/* Returns true if the profile supports graphics. Only "+gfx" profiles include the GPU's device nodes in
 * /dev/dri. */
bool mig_profile_graphics(int64_t gi_profile);
