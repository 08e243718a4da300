/* SPDX-License-Identifier: Apache-2.0 */
/* proc_driver: /proc/driver/nvidia as the kernel shows it. */
#pragma once

/* Its path; the caller frees it. What a container runtime has mounted over it or its files is removed,
 * because it hides the capabilities of IMEX and of MIG devices; what cannot be removed is logged.
 * `alt_proc_devices`: not "" where the driver is none of this kernel (tests without GPUs): then it is below
 * the driver's root, `root_here`, and nothing is removed. */
char *proc_driver_folder(const char *alt_proc_devices, const char *root_here);
