/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint: has anything about the node's GPUs changed since NVML was asked?
 *
 * Asking opens the driver, wakes sleeping GPUs, and takes seconds on a machine without persistence mode; and
 * nothing announces what changes. So what the kernel's driver shows for nothing is looked at instead: which
 * GPUs there are, which MIG instances and with which capabilities, its version, the nodes of the devices, and
 * which file its library is. Some sixty system calls, none of which touches a GPU. */
#pragma once

#include <stdint.h>

struct fingerprint_of {
        const char *proc_driver; /* "/proc/driver/nvidia" or its substitute */
        const char *sys;         /* "/sys" */
        const char *dev;         /* the folder of the nodes: "/dev" */
        const char *library;     /* libnvidia-ml.so.1 as seen from here */
};

/* The same as long as nothing changes, and neither 0 nor 1. What is missing is one more thing that can
 * change. */
uint64_t fingerprint(const struct fingerprint_of *of);
