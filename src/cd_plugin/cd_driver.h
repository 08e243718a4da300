/* SPDX-License-Identifier: Apache-2.0 */
/* cd_driver: implements the driver compute-domain.nvidia.com for src/node (struct node_driver). */
#pragma once

#include "cd_plugin/state.h"

extern const struct node_driver cd_driver;
/* Creates the `u` that claims_new() receives. The strings are borrowed, like those of claims_options. */
struct cd *cd_driver_new(const struct cd_options *o);
/* Handles a change of the facts of the node. */
void cd_driver_facts(struct cd *cd);
