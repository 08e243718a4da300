/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_record: encodes and decodes GPUs and MIG devices in the checkpoint, in the two dialects of the Go
 * driver (gpu.nvidia.com). Pure; fuzzed.
 *
 * All releases of the Go driver (25.3 to 0.5.0) write "mpsControlDaemonID":"" if there is no such daemon.
 * Only builds of its main branch between commit 75a2d69f and pull request 1326 (merged on 2026-08-11, before
 * v0.5.0) leave the member out. A release reports the file of such a build as corrupt, and vice versa,
 * because each computes the checksum over its own encoding of the file. This module reads both dialects. It
 * writes the released dialect unless the other one is configured. */
#pragma once

#include "base/mem.h"
#include "gpu_plugin/gpu_devices.h"
#include "node/checkpoint.h"

/* The `type` of a node_device is a GPU_TYPE_* of gpu_config.h. Only the Go driver writes GPU_TYPE_VFIO. Its
 * `info` is {"uuid":...} for a GPU or a VFIO device, and for a MIG device
 * {"parentMinor":...,"giId":...,"ciId":...,"migUUID":...,"parentUUID":...}. `group_info` is the member
 * configState without an empty mpsControlDaemonID: {}, or the settings of the devices. */

enum gpu_record_dialect { GPU_RECORD_RELEASED = 1, GPU_RECORD_MAIN };

extern const struct device_codec gpu_record_codec;

/* Returns the `info` of a device, allocated in the arena. If only the kind of the device is known, the
 * members are empty. */
const char *gpu_record_info(const struct gpu_device *d, struct arena *a);

/* Returns the recorded UUID of the device itself (not of its parent), or NULL if the record has none. */
const char *gpu_record_uuid(const struct node_device *d, struct arena *a);

/* Returns whether the record is that of a MIG device with this GPU, GPU instance and compute instance. MIG
 * devices that are created later get these numbers again, and so the same device nodes. */
bool gpu_record_is_instance(const struct node_device *d, const struct gpu_device *mig);

/* Finds devices that the Go driver has set up for claims of this node in ways that this driver does
 * not manage. The Go driver's checkpoint may contain claims with an MPS control daemon, claims of GPUs that
 * are bound to vfio-pci, and claims with MIG devices that were created for them. Pure. */
enum foreign_kind { FOREIGN_MPS, FOREIGN_VFIO, FOREIGN_MIG, FOREIGN_KINDS };
extern const char *const foreign_names[FOREIGN_KINDS]; /* values of a metric label */

struct foreign_device {
        enum foreign_kind kind;
        const char *uid;    /* UID of the claim; borrowed from the table */
        const char *device; /* name of the device; borrowed from the table */
        const char *remedy; /* for people: what remains after Unprepare, and the commands that remove it */
};
/* Finds such devices of completed claims, and returns their number. Devices that share an MPS daemon count as
 * one. The checkpoint does not record whether a MIG device was created for its claim (the feature gate
 * DynamicMIG) or by an administrator. So the function returns all MIG devices that the Go driver prepared.
 * Their entries have no claim name. The result is allocated in the arena. */
size_t foreign_find(const struct checkpoint *table, struct arena *a, struct foreign_device **ret);

/* Returns the ID of the device's MPS control daemon, allocated in the arena. Returns NULL if it has none. */
const char *foreign_mps_daemon(const struct node_device *d, struct arena *a);
