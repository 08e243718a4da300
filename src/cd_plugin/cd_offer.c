/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_offer.h"

#include "api/names.h"
#include "cd_plugin/cd_devices.h"

static struct offered_device device(struct arena *a, const char *name, const char *type,
                                    const char *clique_id, const char *rack) {
        struct offered_builder b = { .a = a };
        offered_add_attribute(&b, (struct offered_attribute){ .name = CD_ATTRIBUTE_TYPE, .text = type });
        offered_add_attribute(&b, (struct offered_attribute){ .name = CD_ATTRIBUTE_ID, .number = 0 });
        if (clique_id)
                offered_add_attribute(
                        &b, (struct offered_attribute){ .name = CD_ATTRIBUTE_CLIQUE, .text = clique_id });
        if (rack)
                offered_add_attribute(&b,
                                      (struct offered_attribute){ .name = CD_ATTRIBUTE_RACK, .text = rack });
        return offered_end(&b, name);
}

struct slice_content cd_offer_content(const struct cd_offer *o) {
        struct arena *a = arena_new(512);
        struct offered_device *devices = arena_alloc(a, (o->channel_devices + 1) * sizeof *devices);
        const char *clique = arena_strdup(a, o->clique_id), *rack = o->rack ? arena_strdup(a, o->rack) : NULL;
        bool own_channels = o->channel_devices > 1;
        struct slice_content content = { .arena = a,
                                         .driver = CD_DRIVER,
                                         .devices = devices,
                                         .annotation = { CD_ANNOTATION_CLIQUE, NULL } };
        /* A node that offers nothing still belongs to its partition, and the controller must know that: the
         * node may hold channels. */
        if (!o->channels && own_channels && *clique)
                content.annotation.value = clique;
        if (!o->channels && !o->daemon)
                return content;
        /* If the host runs IMEX and all ComputeDomains share channel 0, devices have only type and id, and
         * the rack if racks are enabled. The annotation gives the clique ID to the controller nevertheless,
         * for the label of the Node. */
        if (!o->daemon)
                content.annotation.value = clique;
        const char *attribute = (o->daemon || own_channels) && *clique ? clique : NULL;
        /* All have the id that the DeviceClass selects; their names differ. */
        for (unsigned i = 0; o->channels && i < o->channel_devices && (attribute || !own_channels); i++)
                devices[content.n_devices++] = device(a, arena_printf(a, CD_DEVICE_CHANNEL_PREFIX "%u", i),
                                                      DEVICE_CHANNEL, attribute, rack);
        if (o->daemon)
                devices[content.n_devices++] = device(a, CD_DEVICE_DAEMON, DEVICE_DAEMON, attribute, rack);
        return content;
}
