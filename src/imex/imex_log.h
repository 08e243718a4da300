/* SPDX-License-Identifier: Apache-2.0 */
/* imex_log: facts that only the log of nvidia-imex contains. Foreign text; pure functions of one line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Finds "... Identified this node as ID <n> ...": the ID that IMEX found for itself by its addresses. */
bool imex_log_node_id(struct str line, int64_t *ret);

/* Cause and remedy, for people, when the line reports a fault that no restart fixes; NULL otherwise.
 * Static. */
const char *imex_log_fault(struct str line);
/* The beginning of the fault when the host's own nvidia-imex holds the session. */
#define IMEX_LOG_SESSION_TAKEN "another nvidia-imex on this node owns the driver's only IMEX session"
