/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/mig_profile.h"

#include <stdio.h>

/* The suffix of the name, by NVML_GPU_INSTANCE_PROFILE_*. The numbers between are profiles without a
 * suffix. */
static const char *suffix(int64_t gi_profile) {
        switch (gi_profile) {
        case 7: /* 1_SLICE_REV1 */
        case 8: /* 2_SLICE_REV1 */
                return "+me";
        case 10: /* 1_SLICE_GFX */
        case 11: /* 2_SLICE_GFX */
        case 12: /* 4_SLICE_GFX */
        case 17: /* 3_SLICE_GFX */
                return "+gfx";
        case 13: /* 1_SLICE_NO_ME */
        case 14: /* 2_SLICE_NO_ME */
                return "-me";
        case 15: /* 1_SLICE_ALL_ME */
        case 16: /* 2_SLICE_ALL_ME */
                return "+me.all";
        default:
                return "";
        }
}

enum { KNOWN_PROFILES = 18 };

/* The instance's share of the GPU's memory in eighths, rounded up, times the GPU's memory in GiB, rounded up.
 * The result is rounded to the nearest. Integers are exact; a double would be exact only up to 2^53 bytes. */
static int64_t gigabytes(const struct mig_profile *p) {
        const int64_t gib = INT64_C(1) << 30;
        __int128 mig = (__int128)p->memory_mib << 20, whole = p->gpu_memory_bytes;
        int64_t eighths = (int64_t)((8 * mig + whole - 1) / whole);
        int64_t total = (p->gpu_memory_bytes - 1) / gib + 1;
        return (eighths * total + 4) / 8;
}

bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n) {
        if (p->gi_profile < 0 || p->gi_profile >= KNOWN_PROFILES || p->gpu_slices < 1 ||
            p->compute_slices < 1 || p->memory_mib < 1 || p->gpu_memory_bytes < 1 ||
            p->memory_mib > p->gpu_memory_bytes >> 20)
                return false;
        char c[24] = "";
        if (p->compute_slices != p->gpu_slices)
                snprintf(c, sizeof c, "%lldc.", (long long)p->compute_slices);
        snprintf(ret, n, "%s%lldg.%lldgb%s", c, (long long)p->gpu_slices, (long long)gigabytes(p),
                 suffix(p->gi_profile));
        return true;
}

bool mig_profile_graphics(int64_t gi_profile) {
        return suffix(gi_profile)[0] == '+' && suffix(gi_profile)[1] == 'g';
}
