/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild: restores the recorded devices of a claim from its CDI file, when no other record of the claim
 * exists. Pure; fuzzed, because any process on the node may have written the file.
 *
 * The comment of the file is "claim <ns>/<name> domain <uid> channel <device>=<id> clique <id> boot <uid>".
 * It contains data that the CDI devices lack: the owner of the channel, the channel ID and its partition.
 * `channel` and `clique` are absent if the device name already identifies the channel. Files of the Go driver
 * have no comment. */
#pragma once

#include "base/mem.h"
#include "node/checkpoint.h"

/* Returns the part of the comment between the claim and the boot ID, in the arena. clique NULL: omits the
 * channel and the clique ID, because the device's name already identifies the channel. */
const char *rebuild_comment(struct arena *a, const char *domain, const char *device, int64_t channel,
                            const char *clique);
/* For struct node_driver. The Go driver cannot unprepare a daemon claim whose configuration names no
 * ComputeDomain, so the configuration names CD_DAEMON_DOMAIN if the ComputeDomain is unknown. */
size_t rebuild_devices(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
const char *rebuild_config(const struct node_device *d, struct arena *a);
/* Returns the clique ID in the comment, in the arena; NULL: none. */
const char *rebuild_clique(const char *cdi_file, struct arena *a);
