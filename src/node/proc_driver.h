/* SPDX-License-Identifier: Apache-2.0 */
/* proc_driver: finds /proc/driver/nvidia as the kernel shows it, without mounts on top of it. */
#pragma once

/* Returns the path of the folder; the caller frees it. A container runtime may have made mounts over the
 * folder or over its files, which hide the capabilities of IMEX and of MIG devices. The function removes
 * these mounts, and logs a mount that it cannot remove. `alt_proc_devices`: "", except in tests without GPUs,
 * where the NVIDIA driver is simulated. In such tests, the returned path is below the driver root
 * `root_here`, and nothing is removed. */
char *proc_driver_folder(const char *alt_proc_devices, const char *root_here);
