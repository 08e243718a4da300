/* SPDX-License-Identifier: Apache-2.0 */
/* device_plugin: detects whether a device plugin also gives this node's GPUs to pods, by the resources of the
 * Node. The kubelet writes `nvidia.com/gpu: 4` there, and 0 after the device plugin has stopped. */
#pragma once

#include "kube/kube_client.h"

struct device_plugin;

/* `changed` is called when the Node is known, and after each change. `offers` is for people ("nvidia.com/gpu:
 * 4"), "" without a device plugin, and valid during the call. `node` is copied. */
struct device_plugin *device_plugin_new(struct kube_client *c, const char *node,
                                        void (*changed)(void *u, const char *offers), void *u);
void device_plugin_free(struct device_plugin *d); /* NULL is allowed */
