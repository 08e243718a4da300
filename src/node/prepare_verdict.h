/* SPDX-License-Identifier: Apache-2.0 */
/* prepare_verdict: decides what can happen to a Prepare now. Changes nothing. */
#pragma once

#include "node/ops.h"

/* Returns the verdict on a Prepare. VERDICT_GO and VERDICT_ANSWER are valid only if the table is current. */
enum verdict prepare_verdict(struct op *op);

/* For the driver's steps: returns `v`, and writes its reason to op->msg. */
enum verdict prepare_verdict_set(struct op *op, enum verdict v, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Returns the entry of another claim that has this device, and makes the operation wait for that claim. NULL:
 * no other claim has it. */
const struct checkpoint_claim *prepare_verdict_holder(struct op *op, const struct node_request *w);
