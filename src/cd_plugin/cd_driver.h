/* SPDX-License-Identifier: Apache-2.0 */
/* cd_driver: the functions of compute-domain.nvidia.com for src/node. */
#pragma once

#include "cd_plugin/state.h"

extern const struct node_driver cd_driver;
/* The `u` of claims_new(). The strings are borrowed, like those of claims_options. */
struct cd *cd_driver_new(const struct cd_options *o);
/* The facts of the node have changed. */
void cd_driver_facts(struct cd *cd);
