/* SPDX-License-Identifier: Apache-2.0 */
/* tool_exec: runs `kubectl exec` and returns what the program in the container prints. Only POSIX calls. */
#pragma once

#include "base/str.h"
#include "base/err.h"

enum { TOOL_EXEC_MS = 180 * 1000 }; /* NVML may take a minute to initialize */

struct tool_exec_result {
        int status;             /* the exit status */
        struct buf out, errors; /* what it printed, up to a limit; the caller frees both with buf_done() */
};

/* Runs argv[0], which ends with NULL, with /dev/null as its input. `limit` is the largest number of bytes of
 * each output. The caller frees the buffers, also after an error. ERR_RETRY: it did not end in time, and was
 * killed; ERR_INVALID: it printed more than the limit; ERR_INTERNAL: it cannot be run, or was killed by a
 * signal. */
int tool_exec_run(const char *const *argv, size_t limit, int timeout_ms, struct tool_exec_result *ret,
                  struct err *e);
