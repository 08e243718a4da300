/* SPDX-License-Identifier: Apache-2.0 */
/* record: GPUs and MIG devices as the checkpoint records them, in the two dialects of the Go driver
 * (gpu.nvidia.com). Pure; fuzzed.
 *
 * All releases of the Go driver (25.3 to 0.5.0) write "mpsControlDaemonID":"" where there is no such daemon.
 * Only builds of its main branch between commit 75a2d69f and pull request 1326 (merged on 2026-08-11, before
 * v0.5.0) leave the member out. Each reports the other's file as corrupt, because the checksums cover what
 * its own types make of the file. Both are read here; the released dialect is the one that is written, unless
 * the other one is asked for. */
#pragma once

#include "gpu_plugin/device.h"
#include "node/checkpoint.h"

/* The types of a node_device are those of device.h, and one that only others write. `info` of a node_device
 * is {"uuid":...} for a GPU and a VFIO device, and for a MIG device
 * {"parentMinor":...,"giId":...,"ciId":...,"migUUID":...,"parentUUID":...}. `group_info` is the member
 * configState without an empty mpsControlDaemonID: {}, or what was set for the devices. */
#define GPU_TYPE_VFIO "vfio"

enum record_dialect { RECORD_RELEASED = 1, RECORD_MAIN };

extern const struct device_codec record_codec;

/* `info` of a device; with nothing but its kind known, what says so. In the arena. */
const char *record_info(const struct gpu_device *d, struct arena *a);

/* What was recorded of a device. The UUID is that of the device itself; NULL when the record does not say. */
const char *record_uuid(const struct node_device *d, struct arena *a);
