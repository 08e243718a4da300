/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_events: watches a node's GPUs for XIDs. Only the worker process may use this module, because every
 * call may hang or crash. The session with NVML stays open while the process runs. */
#pragma once

#include "base/str.h"
#include "nvidia/nvml_library.h"

/* Begins to watch, in a session that the caller has begun. Writes the result for each GPU to `out`, as
 * nvml_watched_decode() reads it. ERR_RETRY: no GPU can be watched with this library or this driver. */
int nvml_events_begin(const struct nvml_library *l, const struct nvml_progress *p, nvml_event_set_t *ret,
                      struct buf *out, struct err *e);

/* Waits for the next event and writes its line (nvml_line.h). Returns false if it was the last line. */
bool nvml_events_next(const struct nvml_library *l, nvml_event_set_t set, struct buf *out);
