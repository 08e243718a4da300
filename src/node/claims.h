/* SPDX-License-Identifier: Apache-2.0 */
/* claims: runs the kubelet's requests as one operation per claim, and implements the state machine of
 * prepared claims.
 *
 * A Prepare first reads its claim and then gets a verdict: it fails at once with the cause (if it can never
 * succeed), waits, or is carried out. All operations of one turn of the loop share the node lock and two
 * writes of the checkpoint: one before the side effects, and one after them. Loop thread only. */
#pragma once

#include "node/ops.h"

/* Creates the state machine. Takes ownership of o->u, even if it fails. */
int claims_new(const struct claims_options *o, struct claims **ret, struct err *e);
/* Takes the node lock, reads the checkpoint, drops entries that became void because of a reboot or a corrupt
 * file, and removes files without an owner. Calls `done` once, never from inside this call. Operations may
 * start after that. */
void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);

/* Asks the kubelet to repeat the Prepares that have failed because a plugin was not registered. Call it
 * whenever the kubelet has registered this plugin, or another one of the node. */
void claims_registered(struct claims *c);

void claims_prepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_unprepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_cancelled(struct claims *c, struct dra_op *op, void *op_data);
/* Rewrites the CDI file of a prepared claim from the claim's object and the current facts of the node.
 * Containers that start from now on get the new edits. Does nothing while there is an operation for the
 * claim. */
void claims_renew(struct claims *c, const char *uid);
/* Judges all waiting operations again. Call it when the facts of the node, or anything else that operations
 * may wait for, have changed. */
void claims_reevaluate(struct claims *c);

/* Logs each operation with the reason for its wait, and each recorded claim. */
void claims_dump(const struct claims *c);

/* Returns the recorded claims; valid until claims_free(). */
const struct checkpoint *claims_table(const struct claims *c);
/* Returns true if a thread still waits for the node lock; the process must then end by _exit(). */
bool claims_stuck(const struct claims *c);
/* Frees the state machine. Call it after dra_plugin_free(). */
void claims_free(struct claims *c);
