/* SPDX-License-Identifier: Apache-2.0 */
/* claims: the kubelet's requests, one operation per claim, and the state machine of prepared claims.
 *
 * A Prepare fetches its claim and is judged. It then fails at once with the cause (if it can never succeed),
 * waits, or is carried out. All operations of one turn of the loop share the node lock and two writes of the
 * checkpoint: one before the side effects, one after. Loop thread only. */
#pragma once

#include "node/ops.h"

/* Takes ownership of o->u, also when it fails. */
int claims_new(const struct claims_options *o, struct claims **ret, struct err *e);
/* Takes the node lock, reads the checkpoint, drops entries that a reboot or a corrupt file made void, and
 * removes files without an owner. Calls `done` once, never from inside; operations may start after it. */
void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);

void claims_prepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_unprepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_cancelled(struct claims *c, struct dra_op *op, void *op_data);
/* Rewrites the CDI file of a prepared claim from the claim's object and the current facts of the node, for
 * containers that start with it from now on. Does nothing while there is an operation for the claim. */
void claims_renew(struct claims *c, const char *uid);
/* The facts of the node, or something else that operations may wait for, have changed: judges them again. */
void claims_reevaluate(struct claims *c);

/* Logs each operation with the reason for its wait, and each recorded claim. */
void claims_dump(const struct claims *c);

/* The recorded claims; valid until claims_free(). */
const struct checkpoint *claims_table(const struct claims *c);
/* A thread still waits for the node lock: end by _exit(). */
bool claims_stuck(const struct claims *c);
/* After dra_plugin_free(). */
void claims_free(struct claims *c);
