/* SPDX-License-Identifier: Apache-2.0 */
/* cd_plan: determines how preparing one of our devices changes the node and the containers, and how the
 * device is recorded. For struct node_driver. */
#pragma once

#include "cd_plugin/state.h"

int cd_plan_device(void *u, const struct op *op, const struct node_request *w, struct arena *a,
                   struct node_effect *ret, struct err *e);
void cd_plan_record(const struct node_request *w, struct node_device *ret);
const char *cd_plan_comment(const struct op *op, struct arena *a);
