/* SPDX-License-Identifier: Apache-2.0 */
/* imex_log: extracts facts that only the log of nvidia-imex contains. The log is the output of another
 * program; each function reads one line and is pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Finds "... Identified this node as ID <n> ...": the ID that IMEX determined for itself from its
 * addresses. */
bool imex_log_node_id(struct str line, int64_t *ret);

/* If the line reports a fault that no restart fixes, returns the cause and the remedy, for people; otherwise
 * NULL. The text is static. */
const char *imex_log_fault(struct str line);
/* The beginning of the text that imex_log_fault() returns when the host's own nvidia-imex holds the
 * session. */
#define IMEX_LOG_SESSION_TAKEN "another nvidia-imex on this node owns the driver's only IMEX session"
