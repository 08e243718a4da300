/* SPDX-License-Identifier: Apache-2.0 */
/* health: turns the errors of this node's GPUs (XIDs) into taints of their devices, with the Go driver's
 * keys, values and effects:
 *
 *     gpu.nvidia.com/xid          the XID     NoSchedule, or None for an error of a program
 *     gpu.nvidia.com/gpu-lost                 NoSchedule: the GPU has fallen off the bus
 *     gpu.nvidia.com/unmonitored              None: the GPU is not watched
 *
 * A device keeps an XID until health_forget_xids(), or until the node boots, because NVML does not report
 * that a GPU has recovered. A later XID replaces it, except that of a program. The XID belongs to the device
 * that NVML names, or to all devices of the GPU if NVML names none. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "gpu_plugin/gpu_devices.h"
#include "nvidia/nvml_line.h"

/* Decides which XIDs are errors of programs, after which the GPU still works. Pure. */
enum { XIDS_ADDED_MAX = 256 };

struct xids {
        uint64_t added[XIDS_ADDED_MAX];
        size_t n;
};

/* Adds a comma-separated list of numbers, the value of --additional-xids-to-ignore. Returns true if all words
 * are valid. Otherwise sets *ret_bad to the first word that is not a number or exceeds the limit, and adds
 * the other words, as the Go driver does. */
bool xids_add(struct xids *x, const char *list, struct str *ret_bad);
/* Returns true for an XID that NVIDIA's documentation calls an error of applications, and for an added
 * XID. */
bool xids_of_programs(const struct xids *x, uint64_t xid);

#define EFFECT_NO_SCHEDULE "NoSchedule"
#define EFFECT_NONE "None"

struct health;
/* Creates an object without any taint. Copies the XIDs that count as errors of programs. */
struct health *health_new(const struct xids *of_programs);
void health_free(struct health *h);

/* Record that the watch has begun or ended. Return true if the taints of a device have changed. */
bool health_watched(struct health *h, const struct nvml_watched *w);
bool health_unwatched(struct health *h); /* the watch has ended, or could not begin */
/* Records that the watch was stopped: the node has no NVIDIA driver, or is being prepared for work on it. */
void health_stopped(struct health *h);
/* Returns true if health_watched() or health_unwatched() was called, and health_stopped() was not called
 * since. Otherwise it is unknown whether the GPUs are watched. */
bool health_settled(const struct health *h);
/* The type of `report`, which health_xid() calls for each device for which the XID is new. health_xid()
 * returns true if the taints of a device have changed. */
typedef void(health_report_fn)(void *u, const struct gpu_device *d, uint64_t xid, bool of_program);
bool health_xid(struct health *h, const struct gpu_devices *devices, const struct nvml_event *ev,
                health_report_fn *report, void *u);

/* Write the state that survives a restart as JSON, and read it into a new object: XIDs remain, and a lost GPU
 * stays lost until NVML describes it again. health_restore() ignores the text of another boot. ERR_INVALID:
 * the text is not such a state. */
void health_render(const struct health *h, const char *boot_id, struct buf *out);
int health_restore(struct health *h, struct str text, const char *boot_id, struct err *e);
/* Forgets all XIDs, because an administrator has handled the errors. */
void health_forget_xids(struct health *h);

/* Returns the number of taints of a device, and the taints in *ret, sorted by key, allocated in the arena.
 * Pure. */
size_t health_taints(const struct health *h, const struct gpu_device *d, struct arena *a,
                     const struct offered_taint **ret);
/* Returns how many of these devices have the taint with that effect. */
size_t health_count(const struct health *h, const struct gpu_devices *devices, const char *key,
                    const char *effect);
