/* SPDX-License-Identifier: Apache-2.0 */
/* device_nodes: creates the device nodes with which NVML reaches the GPUs.
 *
 * NVML opens /dev/nvidiactl and /dev/nvidia<N> of the plugin's container, whose /dev the runtime fills with
 * the host's nodes when it creates the container. A node may be missing there, because a driver container
 * creates its nodes only in its own /dev, or because the host's nodes were created later. As root, NVML
 * creates missing nodes itself, unless the driver's parameter ModifyDeviceFiles is 0: by the driver's option
 * NVreg_ModifyDeviceFiles=0, or by the chart value maskNvidiaDriverParams (params_mask.h). Then it fails. */
#pragma once

#include "base/err.h"
#include "nvidia/driver_root.h"

/* Creates in the folder `to` the character devices nvidiactl and nvidia<N> of the driver root's /dev, with
 * their device numbers, and keeps what exists there. Creates no node that the driver root lacks, so that a
 * container with some of a machine's GPUs does not get the others. Does nothing if the driver root has no
 * dev/. */
int device_nodes_copy(const struct driver_root *root, const char *to, struct err *e);
