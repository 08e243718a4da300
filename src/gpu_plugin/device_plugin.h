/* SPDX-License-Identifier: Apache-2.0 */
/* device_plugin: detects from the Node's resources whether a device plugin also gives this node's GPUs to
 * pods. While a device plugin runs, the kubelet reports `nvidia.com/gpu: 4` in the Node; after the device
 * plugin has stopped, it reports 0. */
#pragma once

#include "kube/kube_client.h"

struct device_plugin;

/* Starts to watch the Node. Calls `changed` when the Node has been read, and after each change. `offers` is a
 * text for people ("nvidia.com/gpu: 4"), "" if there is no device plugin, and valid during the call. Copies
 * `node`. */
struct device_plugin *device_plugin_new(struct kube_client *c, const char *node,
                                        void (*changed)(void *u, const char *offers), void *u);
void device_plugin_free(struct device_plugin *d); /* NULL is allowed */
