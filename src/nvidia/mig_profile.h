/* SPDX-License-Identifier: Apache-2.0 */
/* mig_profile: the name of a MIG profile, "1g.10gb", "1c.3g.40gb", "1g.10gb+me". Pure.
 *
 * NVML numbers the profiles (NVML_GPU_INSTANCE_PROFILE_* of nvml.h), and newer libraries also name them.
 * Users write the names of nvidia-smi and of the Go driver's library (go-nvlib) into selectors. This is the
 * rule of go-nvlib, so that a device has the same name with every driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the rule needs to know about a device. */
struct mig_profile {
        int64_t gi_profile; /* NVML_GPU_INSTANCE_PROFILE_* */
        int64_t gpu_slices, compute_slices;
        int64_t memory_mib;       /* of the GPU instance */
        int64_t gpu_memory_bytes; /* of the whole GPU */
};

/* False: the rule has no name for the profile. */
bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n);

/* True if the profile supports graphics. Only "+gfx" profiles include the GPU's nodes of the kernel's
 * graphics subsystem. */
bool mig_profile_graphics(int64_t gi_profile);
