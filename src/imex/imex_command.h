/* SPDX-License-Identifier: Apache-2.0 */
/* imex_command: reads from the configuration file of the host's nvidia-imex whether nvidia-imex-ctl in a pod
 * can reach it (IMEX guide, "IMEX Service Config Options"). Pure. */
#pragma once

#include "base/str.h"

/* Why nvidia-imex may give no answer to a pod on the same host that has its own network: a part of a
 * sentence, with the remedy, static. NULL: a pod can reach it, so no answer means that it does not run. If a
 * key occurs twice, the last line counts. */
const char *imex_command_unreachable(struct str config);
