/* SPDX-License-Identifier: Apache-2.0 */
/* cd_driver: compute-domain.nvidia.com as the node half knows it. */
#pragma once

#include "cd_plugin/state.h"

extern const struct node_driver cd_driver;
/* What claims_new() takes as `u`. The strings are borrowed, as those of claims_options. */
struct cd *cd_driver_new(const struct cd_options *o);
/* The facts of the node have changed. */
void cd_driver_facts(struct cd *cd);
