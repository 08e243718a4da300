/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint: detects whether the node's GPUs have changed since the last query of NVML.
 *
 * A query opens the driver, wakes sleeping GPUs, and takes seconds on a machine without persistence mode, and
 * no event announces a change. So the fingerprint covers what the kernel driver shows at no cost: the GPUs,
 * the MIG instances and their capabilities, the driver's version, the device nodes, and the file of NVML's
 * library. It takes about sixty system calls, none of which touches a GPU. */
#pragma once

#include <stdint.h>

struct fingerprint_of {
        const char *proc_driver; /* "/proc/driver/nvidia" or its substitute */
        const char *sys;         /* "/sys" */
        const char *dev;         /* the folder of the device nodes: "/dev" */
        const char *library;     /* the path of libnvidia-ml.so.1 in our container */
};

/* Returns the same number as long as nothing changes, and never 0 or 1. A missing file is part of the
 * fingerprint, too. */
uint64_t fingerprint(const struct fingerprint_of *of);
