/* SPDX-License-Identifier: Apache-2.0 */
/* device_plugin: whether a device plugin gives this node's GPUs to pods as well, by what the node's Node
 * offers. The kubelet writes it there, as `nvidia.com/gpu: 4`, and leaves a 0 when the device plugin goes. */
#pragma once

#include "kube/kube_client.h"

struct device_plugin;

/* `changed` is called when the Node is known, and when that changes. `offers` is for people ("nvidia.com/gpu:
 * 4"), "" when there is no device plugin; it lives for the call. `node` is copied. */
struct device_plugin *device_plugin_new(struct kube_client *c, const char *node,
                                        void (*changed)(void *u, const char *offers), void *u);
void device_plugin_free(struct device_plugin *d); /* NULL is allowed */
