/* SPDX-License-Identifier: Apache-2.0 */
/* health: turns the errors of this node's GPUs (XIDs) into taints of their devices, with the Go driver's
 * keys, values and effects:
 *
 *     gpu.nvidia.com/xid          the XID     NoSchedule, or None for an error of a program (xids.h)
 *     gpu.nvidia.com/gpu-lost                 NoSchedule: the GPU has fallen off the bus
 *     gpu.nvidia.com/unmonitored              None: the GPU is not watched
 *
 * A device keeps an XID until health_forget_xids(), or until the node boots, because NVML does not report
 * that a GPU has recovered. The XID belongs to the device that NVML names, or to all devices of the GPU if
 * NVML names none. No I/O. */
#pragma once

#include "gpu_plugin/device.h"
#include "gpu_plugin/xids.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_watch.h"

#define EFFECT_NO_SCHEDULE "NoSchedule"
#define EFFECT_NONE "None"

struct health;
/* The XIDs are copied. */
struct health *health_new(const struct xids *of_programs);
void health_free(struct health *h);

/* These return true if the taints of a device have changed. */
bool health_watched(struct health *h, const struct nvml_watched *w);
bool health_unwatched(struct health *h); /* the watch has ended, or cannot begin */
/* True after a call of either. Before that it is unknown whether XIDs are noticed. */
bool health_settled(const struct health *h);
/* `report` is called for each device for which the XID is new. */
typedef void(health_told_fn)(void *u, const struct gpu_device *d, uint64_t xid, bool of_program);
bool health_xid(struct health *h, const struct gpu_devices *devices, const struct nvml_event *ev,
                health_told_fn *report, void *u);

/* Writes the state that survives a restart as JSON, and reads it into a new object: XIDs continue, and a lost
 * GPU stays lost until NVML describes it again. Text of another boot is ignored. ERR_INVALID: the text does
 * not have that form. */
void health_render(const struct health *h, const char *boot_id, struct buf *out);
int health_restore(struct health *h, struct str text, const char *boot_id, struct err *e);
/* An administrator has handled the errors: earlier XIDs no longer count. */
void health_forget_xids(struct health *h);

/* The taints of a device, sorted by key. Pure; in the arena. */
size_t health_taints(const struct health *h, const struct gpu_device *d, struct arena *a,
                     const struct offered_taint **ret);
/* The number of these devices that have the taint with that effect. */
size_t health_count(const struct health *h, const struct gpu_devices *devices, const char *key,
                    const char *effect);
