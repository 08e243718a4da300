/* SPDX-License-Identifier: Apache-2.0 */
/* cd_devices: reads and writes channel and daemon devices in the checkpoint. Pure; fuzzed. */
#pragma once

#include "node/checkpoint.h"

/* Values of node_device.type. `domain` is the UID of the ComputeDomain. `id` is the ID of the IMEX channel,
 * which may differ from the number in the name of the device. */
#define DEVICE_CHANNEL "channel"
#define DEVICE_DAEMON "daemon"
bool cd_device_is_daemon(const struct node_device *d);
/* Returns whether the device belongs to our daemon, which serves any IMEX domain that the node is in. Every
 * other daemon device belongs to the Go driver's daemon. */
bool cd_device_is_own_daemon(const struct node_device *d);
/* Returns the claim of our daemon; NULL: there is none. */
const struct checkpoint_claim *cd_device_own_daemon_claim(const struct checkpoint *table);
/* Returns the number in the name of a device, for example 7 for "channel-7"; -1: the name has no number. */
int64_t cd_device_number(const char *name);

extern const struct device_codec cd_device_codec;
