/* SPDX-License-Identifier: Apache-2.0 */
/* waits: Prepares that wait, recorded, holding nothing and blocking nobody, until whatever they wait for
 * happens or the kubelet's deadline is near. */
#pragma once

#include "node/ops.h"

enum {
        WAITS_BUDGET_MS = 44000, /* the kubelet waits 45 s; the answer must get there before */
        WAITS_LOOK_MS =
                5000, /* after this long, a wait is worth a watch and a look at who stands in the way */
};

/* A Prepare has come: its deadline counts from now. Its timer must call waits_late(). */
void waits_start(struct op *op);
loop_fn waits_late;
/* The verdict of its batch is to wait; it ends when nobody waits for it any more. */
void waits_wait(struct op *op);
/* Something has changed: those who wait are judged again. */
void waits_reevaluate(struct claims *c);
/* Fewer wait than before. */
void waits_tell(struct claims *c);
void waits_look_closer(struct op *op);
