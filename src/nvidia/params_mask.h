/* SPDX-License-Identifier: Apache-2.0 */
/* params_mask: shows the driver's parameters, /proc/driver/nvidia/params, with ModifyDeviceFiles: 0 in one
 * mount namespace.
 *
 * libnvidia-ml and libcuda create the device nodes of all GPUs if the program runs as root and that parameter
 * is 1, which is the driver's default. This module mounts a file of a tmpfs with the changed text over the
 * kernel's file. It needs Linux 5.6. It uses only libc, because the CDI hook, a static program, also contains
 * this module. */
#pragma once

#include <stddef.h>

#define PARAMS_MASK_FOLDER "driver/nvidia" /* relative to the root of a /proc */
#define PARAMS_MASK_FILE "params"

enum { PARAMS_MASK_WHY = 160 };

/* Covers the file `name` of `folder`, a descriptor of a folder of a /proc that is mounted in the caller's
 * mount namespace. The tmpfs is mounted on `folder` itself for a moment, because Linux before 6.15 cannot
 * clone a file system that is not mounted. Does nothing if the file does not exist, if its text does not
 * contain the line "ModifyDeviceFiles: 1", or if it is covered already. Refuses a file that is not the
 * kernel's, unless it contains "ModifyDeviceFiles: 0".
 *
 * Returns 0, or -1 with the failed system call and its error in `why`. After it has covered a file, the
 * working directory is "/". */
int params_mask(int folder, const char *name, char why[static PARAMS_MASK_WHY]);

/* Gives the calling process, which calls NVML itself, a mount namespace whose mounts other processes do not
 * see (needs CAP_SYS_ADMIN), and covers the file `name` in the folder `folder` of /proc there. Outside of
 * tests, `name` is PARAMS_MASK_FILE and `folder` is PARAMS_MASK_FOLDER. Also returns 0 if there is no driver.
 * The process must have one thread. */
int params_mask_unshared(const char *folder, const char *name, char why[static PARAMS_MASK_WHY]);
