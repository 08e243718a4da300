/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_client: queries NVML in a separate process (nvml_worker), which starts for a query and ends some
 * seconds after the last one. A library that hangs or crashes costs that process and one answer. The process
 * restarts with growing pauses, or at once if the library's file has changed. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/nvml_channel.h"

enum { NVML_LINGER_MS = 10000 }; /* from the last answer to the end of the process */

/* The answer: JSON text that is valid during the call, or NULL and the error (ERR_RETRY). Never called before
 * nvml_client_ask() returns. In the callback the client may be freed, or used for another query. */
typedef void(nvml_answered_fn)(void *u, const struct str *json, const struct err *e);

struct nvml_client;
struct nvml_client *nvml_client_new(uv_loop_t *loop);

/* One query at a time. `verb` is one of nvml_line.h. The limits count from the moment when the library gets
 * the query. After a crash this is later than the call. Copies the library's path. */
void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, struct nvml_limits limits,
                     nvml_answered_fn *fn, void *u);
bool nvml_client_asking(const struct nvml_client *c);
/* 0: no process runs. */
pid_t nvml_client_pid(const struct nvml_client *c);
/* An open query gets no answer. */
void nvml_client_free(struct nvml_client *c);
