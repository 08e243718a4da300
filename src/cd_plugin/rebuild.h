/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild: what the CDI file of a claim tells of its devices, for when there is no other record left. Pure;
 * fuzzed, because anybody on the node may have written the file.
 *
 * The comment of the file, "claim <ns>/<name> domain <uid> channel <device>=<id> clique <id> boot <uid>", has
 * what its CDI devices do not say: whose channel it is, which one, and of which fabric. Files of plugins and
 * modes in which the name of the device says it all go without `channel` and `clique`; those of the Go driver
 * have no comment. */
#pragma once

#include "base/mem.h"
#include "node/checkpoint.h"

/* The middle of the comment, between the claim and the boot; in the arena. clique NULL: the device's name
 * says which channel it is. */
const char *rebuild_comment(struct arena *a, const char *domain, const char *device, int64_t channel,
                            const char *clique);
/* For node_driver. */
size_t rebuild_devices(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret);
/* The clique in the comment, in the arena; NULL: it does not say. */
const char *rebuild_clique(const char *cdi_file, struct arena *a);
