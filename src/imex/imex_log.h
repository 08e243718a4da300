/* SPDX-License-Identifier: Apache-2.0 */
/* imex_log: what the log of nvidia-imex tells that nothing else does. Foreign text; pure functions of one
 * line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* "... Identified this node as ID <n> ...": the id that IMEX found for itself by its addresses. */
bool imex_log_node_id(struct str line, int64_t *ret);

/* Cause and remedy, for people, when the line tells of a fault that no restart mends; NULL otherwise. Static.
 */
const char *imex_log_fault(struct str line);
/* What the fault begins with when the host's own nvidia-imex is in the way. */
#define IMEX_LOG_SESSION_TAKEN "another nvidia-imex on this node owns the driver's only IMEX session"
