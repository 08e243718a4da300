/* SPDX-License-Identifier: Apache-2.0 */
/* claims: what the kubelet asks for, one operation a claim, and the state machine of prepared claims
 * (reference sections 7.8 to 7.13).
 *
 * A Prepare fetches its claim, is judged, and either fails at once with the cause (what can never succeed),
 * waits, or is carried out. All that is carried out in one turn of the loop shares the node lock and two
 * writes of the checkpoint: one before the side effects, one after. Loop thread only. */
#pragma once

#include "node/ops.h"

/* Takes o->u, whatever becomes of it. */
int claims_new(const struct claims_options *o, struct claims **ret, struct err *e);
/* Takes the node lock, reads the checkpoint, drops what a reboot or corruption made void, and sweeps what
 * nobody owns. `done` once, never from inside; operations may start after it. */
void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u);

void claims_prepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_unprepare(struct claims *c, struct dra_op *op, const struct dra_claim *claim);
void claims_cancelled(struct claims *c, struct dra_op *op, void *op_data);
/* Writes the CDI file of a prepared claim anew, from the claim's object and what is known of the node now,
 * for the containers that start with it from then on. Nothing, while an operation for it is under way. */
void claims_renew(struct claims *c, const char *uid);
/* What is known of the node has changed, or whatever else operations may wait for: they are judged again. */
void claims_reevaluate(struct claims *c);

/* Logs each operation with what it waits for, and each recorded claim. */
void claims_dump(const struct claims *c);

/* Those that are recorded; valid until claims_free(). */
const struct checkpoint *claims_table(const struct claims *c);
/* A thread still waits for the node lock: end by _exit(). */
bool claims_stuck(const struct claims *c);
/* After dra_plugin_free(). */
void claims_free(struct claims *c);
