/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_steps: the conditions that a Prepare of GPUs waits for. For node_driver. */
#pragma once

#include "node/driver.h"

enum verdict gpu_steps_known(void *u, struct op *op);
extern node_step_fn *const gpu_steps[];
