/* SPDX-License-Identifier: Apache-2.0 */
/* released: which daemon claims have been unprepared on this node since its boot.
 *
 * The newest of them is reported to the controller (IMEX_ANNOTATION_UNPREPARED), which may then give the
 * index of that daemon's assignment to another node. So such a claim must never be prepared again.
 *
 * They are in the file "released-daemon-claims" of the plugin's folder, so that the next plugin process knows
 * them: the boot ID, then the claims' UIDs, the newest last, one per line. In another boot the file means
 * nothing. A claim is written down before anything of it is removed, and counts as released once the table
 * does not have it any more. One that a lost checkpoint did not have is not written down: without a record an
 * Unprepare proves nothing. Nothing is synced. */
#pragma once

#include <stdbool.h>

#include "node/checkpoint.h"

/* Older ones are dropped. The kubelet asks only for claims of Pods that it has, which are fewer. */
enum { RELEASED_MAX = 256 };

/* The claim is about to be unprepared, or was and is asked for again: it is the newest from now on. -1: it
 * could not be written down, so it must not be reported. */
int released_add(const char *plugin_dir, const char *boot_id, const char *claim_uid, struct err *e);
/* -1: the file cannot be read, so nobody knows. */
int released_has(const char *plugin_dir, const char *boot_id, const char *claim_uid, bool *ret,
                 struct err *e);
/* The UID of the newest one that the table does not have; "" when there is none. -1: nobody knows. */
int released_newest(const char *plugin_dir, const char *boot_id, const struct checkpoint *table,
                    char ret[static 37], struct err *e);
