/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_events: watches a node's GPUs for XIDs. Only for the worker process, because every call may hang or
 * crash. The process's session stays open. */
#pragma once

#include "base/str.h"
#include "nvidia/nvml_library.h"

/* Begins to watch, in a session. Writes the result for each GPU to `out`, as nvml_watched_decode() reads it.
 * ERR_RETRY: no GPU can be watched with this library or this driver. */
int nvml_events_begin(const struct nvml_library *l, const struct nvml_progress *p, nvml_event_set_t *ret,
                      struct buf *out, struct err *e);

/* Waits for the next event and writes its line (nvml_line.h). False: it was the last line. */
bool nvml_events_next(const struct nvml_library *l, nvml_event_set_t set, struct buf *out);
