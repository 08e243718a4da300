/* SPDX-License-Identifier: Apache-2.0 */
/* imex_command: where an nvidia-imex answers nvidia-imex-ctl, by the configuration that somebody else wrote
 * for it (IMEX guide, "IMEX Service Config Options"). Pure. */
#pragma once

#include "base/str.h"

/* Why a pod on the same host, with a network of its own, cannot count on an answer: a sentence fragment with
 * the remedy, static. NULL: when it does not answer, it does not run. The last line with a key counts. */
const char *imex_command_out_of_reach(struct str config);
