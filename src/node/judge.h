/* SPDX-License-Identifier: Apache-2.0 */
/* judge: what may become of a Prepare now. Only looks. */
#pragma once

#include "node/ops.h"

/* Needs a current table when it says GO or ANSWER. */
enum verdict judge(struct op *op);

/* For the driver's steps. The verdict, for which op->msg has the reason. */
enum verdict judge_say(struct op *op, enum verdict v, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The entry of another claim that has this device, which is then what the operation waits for, or NULL. */
const struct checkpoint_claim *judge_holder(struct op *op, const struct node_want *w);
