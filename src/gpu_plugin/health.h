/* SPDX-License-Identifier: Apache-2.0 */
/* health: what this node's GPUs report of errors (XIDs), as taints of their devices, with the Go driver's
 * keys, values and effects:
 *
 *     gpu.nvidia.com/xid          the XID     NoSchedule, or None for an error of a program (xids.h)
 *     gpu.nvidia.com/gpu-lost                 NoSchedule: it has fallen off the bus
 *     gpu.nvidia.com/unmonitored              None: nobody knows
 *
 * An XID stays with the device until somebody says that it has been seen to, or the node boots: NVML does not
 * tell when a GPU is well again. It is the device's that NVML names, and that of all of the GPU when it names
 * none. Without I/O. */
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

/* These say whether a device has other taints than before. */
bool health_watched(struct health *h, const struct nvml_watched *w);
bool health_unwatched(struct health *h); /* nobody watches any more, or it cannot begin */
/* Has either been called? Before that nobody knows whether XIDs are seen. */
bool health_settled(const struct health *h);
/* `told` for each device of which it is news. */
typedef void(health_told_fn)(void *u, const struct gpu_device *d, uint64_t xid, bool of_program);
bool health_xid(struct health *h, const struct gpu_devices *devices, const struct nvml_event *ev,
                health_told_fn *told, void *u);

/* All of it that outlives a process, as JSON, and back, into an object that knows nothing yet: XIDs go on,
 * and that a GPU is lost holds until NVML says how it is. Of another boot it says nothing. ERR_INVALID: it is
 * not of that form. */
void health_render(const struct health *h, const char *boot_id, struct buf *out);
int health_recall(struct health *h, struct str text, const char *boot_id, struct err *e);
/* Somebody has seen to the GPUs: what they reported before is over. */
void health_forget_xids(struct health *h);

/* The taints of a device, sorted by key. Pure; in the arena. */
size_t health_taints(const struct health *h, const struct gpu_device *d, struct arena *a,
                     const struct offered_taint **ret);
/* Of these, how many have the taint with that effect. */
size_t health_count(const struct health *h, const struct gpu_devices *devices, const char *key,
                    const char *effect);
