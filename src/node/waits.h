/* SPDX-License-Identifier: Apache-2.0 */
/* waits: Prepares that wait. They are recorded, hold nothing and block nothing, until the awaited event
 * happens or the kubelet's deadline is near. */
#pragma once

#include "node/ops.h"

enum {
        WAITS_BUDGET_MS = 44000,     /* the kubelet waits 45 s; the answer must arrive earlier */
        WAITS_INVESTIGATE_MS = 5000, /* after this long, a wait is worth a watch and a check of the holder */
};

/* A Prepare has arrived: its deadline counts from now. Its timer must call waits_late(). */
void waits_start(struct op *op);
loop_fn waits_late;
/* The verdict in its batch is to wait. Ends the operation if no caller waits for it any more. */
void waits_wait(struct op *op);
/* Something has changed: waiting Prepares are judged again. */
void waits_reevaluate(struct claims *c);
/* Fewer operations wait than before. */
void waits_update(struct claims *c);
void waits_investigate(struct op *op);
