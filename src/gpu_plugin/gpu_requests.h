/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_requests: checks the requests and the configuration of a claim, without the state of the node. Retrying
 * does not fix an error that it returns. Pure. struct node_driver refers to these functions. */
#pragma once

#include "node/ops.h"

int gpu_requests_take(void *u, const struct op *op, struct node_request *w, struct err *e);
int gpu_requests_check(void *u, const struct op *op, struct err *e);
