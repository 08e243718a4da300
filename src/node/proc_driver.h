/* SPDX-License-Identifier: Apache-2.0 */
/* proc_driver: /proc/driver/nvidia as the kernel shows it. */
#pragma once

/* Its path; the caller frees it. Mounts that a container runtime has made over it or its files are removed,
 * because they hide the capabilities of IMEX and of MIG devices. A mount that cannot be removed is logged.
 * `alt_proc_devices`: not "" in tests without GPUs, where the driver is not that of the kernel: then the path
 * is below the driver's root, `root_here`, and nothing is removed. */
char *proc_driver_folder(const char *alt_proc_devices, const char *root_here);
