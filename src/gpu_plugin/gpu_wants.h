/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_wants: what a claim asks of us, as far as the claim alone can tell: whatever is wrong here no waiting
 * mends. Pure. For node_driver. */
#pragma once

#include "node/ops.h"

int gpu_wants_take(void *u, const struct op *op, struct node_want *w, struct err *e);
int gpu_wants_check(void *u, const struct op *op, struct err *e);
