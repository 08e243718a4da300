/* SPDX-License-Identifier: Apache-2.0 */
/* cd_steps: the checks by which a Prepare is judged, in this order: is the daemon claim released, is the
 * device held, which ComputeDomain, which node, which channel, is IMEX ready. */
#pragma once

#include "cd_plugin/state.h"

extern node_step_fn *const cd_steps[]; /* for node_driver */
