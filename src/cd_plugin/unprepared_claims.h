/* SPDX-License-Identifier: Apache-2.0 */
/* unprepared_claims: the daemon claims that have been unprepared on this node since its boot.
 *
 * The newest of them is reported to the controller (IMEX_ANNOTATION_UNPREPARED), which may then give the
 * index of that daemon's assignment to another node. So such a claim must never be prepared again.
 *
 * They are recorded in the file "unprepared-daemon-claims" of the plugin's folder for the next plugin
 * process: the boot ID, then the claims' UIDs, the newest last, one per line. A file of another boot does not
 * count. A claim is recorded before anything of it is removed, and counts as released as soon as the table no
 * longer has it. A claim that was missing in a lost checkpoint is not recorded: without a record of the
 * claim, an Unprepare proves nothing. Nothing is synced. */
#pragma once

#include <stdbool.h>

#include "node/checkpoint.h"

/* Older ones are dropped. The kubelet asks only for claims of Pods on the node, which are fewer. */
enum { UNPREPARED_CLAIMS_MAX = 256 };

/* The claim is about to be unprepared, or an Unprepare of it is repeated: it becomes the newest. -1: it could
 * not be recorded, so it must not be reported. */
int unprepared_claims_add(const char *plugin_dir, const char *boot_id, const char *claim_uid, struct err *e);
/* -1: the file cannot be read, so the answer is unknown. */
int unprepared_claims_has(const char *plugin_dir, const char *boot_id, const char *claim_uid, bool *ret,
                          struct err *e);
/* The UID of the newest one that is not in the table; "" when there is none. -1: unknown. */
int unprepared_claims_newest(const char *plugin_dir, const char *boot_id, const struct checkpoint *table,
                             char ret[static 37], struct err *e);
