/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild: the devices of a claim from its CDI file, when no other record is left. Pure; fuzzed, because any
 * process on the node may have written the file.
 *
 * The comment of the file, "claim <ns>/<name> domain <uid> channel <device>=<id> clique <id> boot <uid>", has
 * what its CDI devices lack: the owner of the channel, its ID, and its partition. `channel` and `clique` are
 * missing in files of plugins and modes in which the name of the device is enough. Files of the Go driver
 * have no comment. */
#pragma once

#include "base/mem.h"
#include "node/checkpoint.h"

/* The middle of the comment, between the claim and the boot; in the arena. clique NULL: the device's name is
 * enough to know the channel. */
const char *rebuild_comment(struct arena *a, const char *domain, const char *device, int64_t channel,
                            const char *clique);
/* For node_driver. */
size_t rebuild_devices(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
/* The clique ID in the comment, in the arena; NULL: none. */
const char *rebuild_clique(const char *cdi_file, struct arena *a);
