/* SPDX-License-Identifier: Apache-2.0 */
/* waits: manages Prepares that wait. A waiting Prepare is recorded as PrepareStarted. It holds nothing and
 * blocks nothing until the awaited event happens or the kubelet's deadline is near. */
#pragma once

#include "node/ops.h"

enum {
        WAITS_BUDGET_MS = 44000,     /* the kubelet waits 45 s, so the answer must arrive earlier */
        WAITS_INVESTIGATE_MS = 5000, /* after this time, a watch and a check of the holder are worthwhile */
};

/* Starts the deadline of a Prepare that has just arrived. The timer of the operation must call
 * waits_late(). */
void waits_start(struct op *op);
loop_fn waits_late;
/* Makes the operation wait, because that was the verdict in its batch. If no caller waits for it any more,
 * ends it as retry_fail() does. */
void waits_wait(struct op *op);
/* Judges the waiting Prepares again. Call it when something that they may wait for has changed. */
void waits_reevaluate(struct claims *c);
/* Recomputes what the operations wait for. Call it when fewer operations wait than before. */
void waits_update(struct claims *c);
void waits_investigate(struct op *op);
