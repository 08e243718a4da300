/* SPDX-License-Identifier: Apache-2.0 */
/* mig_profile: the name of a MIG profile, "1g.10gb", "1c.3g.40gb", "1g.10gb+me". Pure.
 *
 * NVML numbers profiles (NVML_GPU_INSTANCE_PROFILE_* of nvml.h) and newer libraries name them, too; which
 * names users write into selectors is decided by nvidia-smi and by the Go driver's library (go-nvlib), whose
 * rule this is, so that the same device has the same name with every driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the rule needs of a device. */
struct mig_profile {
        int64_t gi_profile; /* NVML_GPU_INSTANCE_PROFILE_* */
        int64_t gpu_slices, compute_slices;
        int64_t memory_mib;       /* of the GPU instance */
        int64_t gpu_memory_bytes; /* of the whole GPU */
};

/* false: the rule has no name for it. */
bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n);

/* Can it draw? Only "+gfx" profiles come with the GPU's nodes of the kernel's graphics subsystem. */
bool mig_profile_graphics(int64_t gi_profile);
