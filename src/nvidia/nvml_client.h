/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_client: asks NVML, in a process of its own (nvml_worker), which is started for a question and ends
 * some seconds after the last one. A library that hangs or crashes costs that process and one answer; it is
 * started again with growing pauses, or at once when the library's file has become another one. Loop thread
 * only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/nvml_channel.h"

enum { NVML_LINGER_MS = 10000 }; /* from the last answer to the end of the process */

/* The answer: a text of JSON that lasts as long as the call, or NULL and why (ERR_RETRY). Never from inside
 * nvml_client_ask(); the client may be asked again, or freed, in it. */
typedef void(nvml_answered_fn)(void *u, const struct str *json, const struct err *e);

struct nvml_client;
struct nvml_client *nvml_client_new(uv_loop_t *loop);

/* One question at a time. `verb` is one of nvml_line.h. The limits count from when the question is put to the
 * library, which after a crash is later than now. Copies the library's path. */
void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, struct nvml_limits limits,
                     nvml_answered_fn *fn, void *u);
bool nvml_client_asking(const struct nvml_client *c);
/* 0: no process runs. */
pid_t nvml_client_pid(const struct nvml_client *c);
/* An open question is not answered any more. */
void nvml_client_free(struct nvml_client *c);
