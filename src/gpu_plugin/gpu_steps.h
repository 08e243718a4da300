/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_steps: checks the conditions that a Prepare of GPUs waits for. struct node_driver refers to these
 * functions. */
#pragma once

#include "node/driver.h"

enum verdict gpu_steps_known(void *u, struct op *op);
extern node_step_fn *const gpu_steps[];
