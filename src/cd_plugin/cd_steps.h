/* SPDX-License-Identifier: Apache-2.0 */
/* cd_steps: lists the checks that decide on a Prepare, in this order: was the daemon claim unprepared
 * earlier, does another claim hold the device, which ComputeDomain, which node, which channel, is IMEX
 * ready. */
#pragma once

#include "cd_plugin/state.h"

extern node_step_fn *const cd_steps[]; /* for struct node_driver */
