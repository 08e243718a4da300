/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint: detects whether the node's GPUs have changed since the last query of NVML.
 *
 * A query opens the driver, wakes sleeping GPUs, and takes seconds on a machine without persistence mode. No
 * event announces a change. So the fingerprint covers the state that can be read without opening the driver:
 * the GPUs, the MIG instances and their capabilities, the driver's version, the device nodes, and the file of
 * NVML's library. Computing it takes about sixty system calls, none of which accesses a GPU. */
#pragma once

#include <stdint.h>

struct fingerprint_of {
        const char *proc_driver; /* "/proc/driver/nvidia" or its substitute */
        const char *sys;         /* "/sys" */
        const char *dev;         /* the folder of the device nodes: "/dev" */
        const char *library;     /* the path of libnvidia-ml.so.1 in our container */
};

/* Returns a number that stays the same as long as nothing changes. It is never 0 or 1. The fact that a file
 * is missing is part of the fingerprint, too. */
uint64_t fingerprint(const struct fingerprint_of *of);
