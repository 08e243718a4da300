/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_offer.h"

#include "api/names.h"
#include "node/slice_pool.h"

struct slice_content gpu_offer_content(const struct gpu_devices *d, const struct health *h) {
        struct arena *a = arena_new(4096);
        struct offered_device *devices = arena_alloc(a, (d->n + 1) * sizeof *devices);
        for (size_t i = 0; i < d->n; i++) {
                jd_copy(offered_device_fields, &d->items[i].offered, a, &devices[i]);
                if (h)
                        devices[i].n_taints = health_taints(h, &d->items[i], a, &devices[i].taints);
        }
        /* The slices have room for taints, so that the first taint moves no device to another slice. */
        return (struct slice_content){ .arena = a,
                                       .driver = GPU_DRIVER,
                                       .devices = devices,
                                       .n_devices = d->n,
                                       .part_max = h ? SLICE_TAINTED_DEVICES_MAX : 0 };
}
