/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_client: queries NVML in a separate process (nvml_worker), which starts for a query and ends some
 * seconds after the last one. If NVML's library hangs or crashes, only that process and one answer are lost.
 * The module restarts the process with growing pauses, or at once if the library's file has changed. Loop
 * thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/nvml_channel.h"

enum { NVML_LINGER_MS = 10000 }; /* from the last answer to the end of the process */

/* Called with the answer, after nvml_client_ask() has returned. `json` is valid during the call; NULL: the
 * query failed with this error (ERR_RETRY). The callback may free the client, or use it for another query. */
typedef void(nvml_answered_fn)(void *u, const struct str *json, const struct err *e);

struct nvml_client;
struct nvml_client *nvml_client_new(uv_loop_t *loop);

/* Sends a query. Only one query may be open. `verb` is an NVML_ASK_* of nvml_line.h. The limits count from
 * the moment when the library gets the query; after a crash this is later than the call. Copies the library's
 * path. */
void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, struct nvml_limits limits,
                     nvml_answered_fn *fn, void *u);
/* Returns true while a query is open. */
bool nvml_client_asking(const struct nvml_client *c);
/* Returns the process ID, or 0 if no process runs. */
pid_t nvml_client_pid(const struct nvml_client *c);
/* Frees the client. An open query gets no answer. */
void nvml_client_free(struct nvml_client *c);
