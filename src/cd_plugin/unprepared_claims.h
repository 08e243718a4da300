/* SPDX-License-Identifier: Apache-2.0 */
/* unprepared_claims: records the daemon claims that have been unprepared on this node since its boot.
 *
 * The plugin reports the newest of them to the controller (IMEX_ANNOTATION_UNPREPARED), which may then give
 * the index of that daemon's assignment to another node. So such a claim must never be prepared again.
 *
 * The claims are recorded for the next plugin process in the file "unprepared-daemon-claims" in the plugin's
 * folder. It contains the boot ID and then the claims' UIDs, one per line, the newest last. A file of another
 * boot does not count. A claim is recorded before the plugin removes anything that belongs to it, and counts
 * as unprepared as soon as the table no longer has it. A claim that was missing in a lost checkpoint is not
 * recorded, because without an entry of the claim an Unprepare proves nothing. The file is not synced to the
 * disk. */
#pragma once

#include <stdbool.h>

#include "node/checkpoint.h"

/* Older claims are dropped. The kubelet asks only for claims of Pods on the node, which are fewer. */
enum { UNPREPARED_CLAIMS_MAX = 256 };

/* Records the claim as the newest. Call it when the claim is about to be unprepared, or when an Unprepare of
 * it is repeated. -1: it could not be recorded, so it must not be reported. */
int unprepared_claims_add(const char *plugin_dir, const char *boot_id, const char *claim_uid, struct err *e);
/* Sets *ret to whether the claim is recorded. -1: the file cannot be read, so the answer is unknown. */
int unprepared_claims_has(const char *plugin_dir, const char *boot_id, const char *claim_uid, bool *ret,
                          struct err *e);
/* Sets `ret` to the UID of the newest recorded claim that is not in the table; "": there is none. -1:
 * unknown. */
int unprepared_claims_newest(const char *plugin_dir, const char *boot_id, const struct checkpoint *table,
                             char ret[static 37], struct err *e);
