/* SPDX-License-Identifier: Apache-2.0 */
/* params_mask: the driver's parameters, /proc/driver/nvidia/params, with ModifyDeviceFiles: 0 in one mount
 * namespace.
 *
 * libnvidia-ml and libcuda make the device nodes of all GPUs where a program runs as root and that parameter
 * is 1, which is the driver's default. A file of a tmpfs with the changed text is mounted over the kernel's
 * file. Needs Linux 5.6. It uses libc alone, because the CDI hook, a static program, has it too. */
#pragma once

#include <stddef.h>

#define PARAMS_MASK_FOLDER "driver/nvidia" /* below the root of a /proc */
#define PARAMS_MASK_FILE "params"

enum { PARAMS_MASK_WHY = 160 };

/* Covers the file `name` of `folder`, a descriptor of a folder of a /proc that is mounted in the caller's
 * mount namespace. The tmpfs is mounted on `folder` itself for a moment: a file system that is mounted
 * nowhere cannot be cloned before Linux 6.15. Nothing is done if there is no such file, if its text does not
 * contain the line "ModifyDeviceFiles: 1", or if it was covered before. Refuses a file that is not the
 * kernel's, unless it contains "ModifyDeviceFiles: 0".
 *
 * 0, or -1 with the system call that failed and its error in `why`. The working directory is "/" afterwards
 * if something was covered. */
int params_mask(int folder, const char *name, char why[static PARAMS_MASK_WHY]);

/* For a process that calls NVML itself: gives it a mount namespace in which nothing that it mounts is seen by
 * others (CAP_SYS_ADMIN), and covers the file `name` of the folder `folder` of /proc there: PARAMS_MASK_FILE
 * and PARAMS_MASK_FOLDER, except in tests. No driver: 0. The process must have one thread. */
int params_mask_unshared(const char *folder, const char *name, char why[static PARAMS_MASK_WHY]);
