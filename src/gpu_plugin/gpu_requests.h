/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_requests: checks what a claim requests, as far as the claim alone shows it. Waiting does not fix an
 * error found here. Pure. For node_driver. */
#pragma once

#include "node/ops.h"

int gpu_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e);
int gpu_requests_check(void *u, const struct op *op, struct err *e);
