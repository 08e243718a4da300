/* SPDX-License-Identifier: Apache-2.0 */
/* steps: has the daemon been released, who holds the device, which domain, which node, which channel, ready
 * or not: what a Prepare is judged by, in this order. */
#pragma once

#include "cd_plugin/state.h"

extern node_step_fn *const cd_steps[]; /* for node_driver */
