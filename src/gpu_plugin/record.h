/* SPDX-License-Identifier: Apache-2.0 */
/* record: GPUs and MIG devices as the checkpoint records them, in the two dialects of the Go driver
 * (gpu.nvidia.com). Pure; fuzzed.
 *
 * Released versions of the Go driver (25.3 to 0.4.1) write "mpsControlDaemonID":"" where there is no such
 * daemon, and later ones leave the member out. Each takes the other's file for a corrupt one, because the
 * checksums cover what their own types make of it; so the dialect that was found is the one that is written.
 */
#pragma once

#include "gpu_plugin/device.h"
#include "node/checkpoint.h"

/* The types of a node_device are those of device.h, and one that only others write. `info` of a node_device
 * is {"uuid":...} for a GPU and a VFIO device, and for a MIG device
 * {"parentMinor":...,"giId":...,"ciId":...,"migUUID":...,"parentUUID":...}. `group_info` is the member
 * configState as the later versions write it: {}, or what was set for the devices. */
#define GPU_TYPE_VFIO "vfio"

enum record_dialect { RECORD_MAIN = 1, RECORD_RELEASED };

/* Of a file that tells no dialect, that of later versions. */
extern const struct device_codec record_codec;

/* `info` of a device; with nothing but its kind known, what says so. In the arena. */
const char *record_info(const struct gpu_device *d, struct arena *a);

/* What was recorded of a device. The UUID is that of the device itself; NULL when the record does not say. */
const char *record_uuid(const struct node_device *d, struct arena *a);
