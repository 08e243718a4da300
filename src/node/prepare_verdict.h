/* SPDX-License-Identifier: Apache-2.0 */
/* prepare_verdict: decides what can happen to a Prepare now. Changes nothing. */
#pragma once

#include "node/ops.h"

/* GO and ANSWER need a current table. */
enum verdict prepare_verdict(struct op *op);

/* For the driver's steps: returns the verdict, and writes its reason to op->msg. */
enum verdict prepare_verdict_set(struct op *op, enum verdict v, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The entry of another claim that has this device; the operation then waits for that claim. NULL: none. */
const struct checkpoint_claim *prepare_verdict_holder(struct op *op, const struct node_request *w);
