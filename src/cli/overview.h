/* SPDX-License-Identifier: Apache-2.0 */
/* overview: the text of `status`, which `watch` repeats. */
#pragma once

#include "cli/command.h"

/* Adds the overview of the driver, the racks and the ComputeDomains to the output. Returns the exit code. */
int overview_add(struct cli *c, struct view *v);
