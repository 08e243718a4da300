/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_offer.h"

#include "api/names.h"
#include "node/slice_pool.h"

static struct offered_device gpu_offer_copy(const struct offered_device *d, struct arena *a) {
        struct offered_attribute *attributes = arena_alloc(a, (d->n_attributes + 1) * sizeof *attributes);
        struct offered_capacity *capacities = arena_alloc(a, (d->n_capacities + 1) * sizeof *capacities);
        for (size_t i = 0; i < d->n_attributes; i++) {
                attributes[i] = d->attributes[i];
                attributes[i].name = arena_strdup(a, d->attributes[i].name);
                attributes[i].text = arena_strdup_or_null(a, d->attributes[i].text);
        }
        for (size_t i = 0; i < d->n_capacities; i++)
                capacities[i] = (struct offered_capacity){ arena_strdup(a, d->capacities[i].name),
                                                           arena_strdup(a, d->capacities[i].quantity) };
        return (struct offered_device){ .name = arena_strdup(a, d->name),
                                        .attributes = attributes,
                                        .n_attributes = d->n_attributes,
                                        .capacities = capacities,
                                        .n_capacities = d->n_capacities };
}

struct slice_content gpu_offer_content(const struct gpu_devices *d, const struct health *h) {
        struct arena *a = arena_new(4096);
        struct offered_device *devices = arena_alloc(a, (d->n + 1) * sizeof *devices);
        for (size_t i = 0; i < d->n; i++) {
                devices[i] = gpu_offer_copy(&d->items[i].offered, a);
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
