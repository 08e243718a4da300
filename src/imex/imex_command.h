/* SPDX-License-Identifier: Apache-2.0 */
/* imex_command: whether an nvidia-imex that others configured answers nvidia-imex-ctl, by its configuration
 * file (IMEX guide, "IMEX Service Config Options"). Pure. */
#pragma once

#include "base/str.h"

/* Why a pod on the same host, with its own network, cannot rely on an answer: a sentence fragment with the
 * remedy, static. NULL: if it does not answer, it does not run. If a key occurs twice, the last line
 * counts. */
const char *imex_command_unreachable(struct str config);
