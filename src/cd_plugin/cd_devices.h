/* SPDX-License-Identifier: Apache-2.0 */
/* cd_devices: channels and daemons in the checkpoint. Pure; fuzzed. */
#pragma once

#include "node/checkpoint.h"

/* The types of our devices. `domain` is the UID of the ComputeDomain. `id` is that of the IMEX channel, which
 * may differ from the number in the name of the device. */
#define DEVICE_CHANNEL "channel"
#define DEVICE_DAEMON "daemon"
bool cd_device_is_daemon(const struct node_device *d);
/* Our daemon, which serves any domain that the node is in. Every other daemon is the Go driver's. */
bool cd_device_is_own_daemon(const struct node_device *d);
/* The claim of our daemon; NULL: none. */
const struct checkpoint_claim *cd_device_own_daemon_claim(const struct checkpoint *table);
/* The number in the name of a device: "channel-7" -> 7. -1: there is no number. */
int64_t cd_device_number(const char *name);

extern const struct device_codec cd_device_codec;
