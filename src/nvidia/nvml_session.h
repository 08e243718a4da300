/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_session: runs a process that calls NVML (nvml_worker.h), and exchanges lines with it. If NVML's
 * library hangs or crashes, only that process and one answer are lost. The module restarts the process with
 * growing pauses. It has two uses: queries (nvml_client) and the watch for XIDs (nvml_watch). Loop thread
 * only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/nvml_line.h"

/* Values of err.code if NVML did not answer at all. Otherwise err.code is NVML's error number, or
 * NVML_CANNOT_LOAD. */
enum { NVML_HUNG = -2, NVML_CRASHED = -3 };

/* How long the module waits before it starts the next process, after one that has failed. */
enum { NVML_BACKOFF_MIN_MS = 1000, NVML_BACKOFF_MAX_MS = 60000 };

/* How long NVML's process may be silent before it counts as hung and is killed. A process that is killed
 * while it attaches a GPU can leave that GPU unusable until a reset. So the limits are far above the
 * durations that were observed: one to three seconds for a GPU without persistence mode, more with
 * confidential computing, and more on a busy node. */
struct nvml_limits {
        unsigned start_ms;  /* until the first line of an answer: loads the library, calls nvmlInit */
        unsigned silent_ms; /* from each line to the next: queries one GPU */
};
#define NVML_LIMITS ((struct nvml_limits){ .start_ms = 180000, .silent_ms = 60000 })

/* ---- queries ---- */

/* The process starts for a query and ends some seconds after the last one. It is restarted at once if the
 * library's file has changed. */
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

/* ---- the watch ---- */

/* Reports XIDs of this node's GPUs as they happen. The session of the process with the driver is open as long
 * as the process runs. An open session prevents an upgrade of the driver, a reset of a GPU and a change of
 * MIG mode, so the watch is optional.
 *
 * No callback runs inside a function of this module. Each callback may free the watch. */
struct nvml_watch_options {
        struct nvml_limits limits; /* limits until the watch begins */
        unsigned silent_ms;        /* limit afterwards; the process writes a line every NVML_EVENT_WAIT_MS */
        void (*watched)(void *u, const struct nvml_watched *w); /* the watch has (re)started */
        void (*xid)(void *u, const struct nvml_event *ev);
        /* Called when the watch has ended or could not begin; the module retries. The error is ERR_RETRY,
         * with a code as above. */
        void (*broken)(void *u, const struct err *e);
        void *u;
};

struct nvml_watch;
struct nvml_watch *nvml_watch_new(uv_loop_t *loop, const struct nvml_watch_options *o);
/* Watches with this library; NULL: stops watching. Restarts the watch if `state` differs from the last call:
 * `state` is a number that identifies the library's file and the set of GPUs. A process that is still
 * starting is not killed for this reason, because it may be attaching a GPU; the module replaces it when its
 * watch has begun. */
void nvml_watch_with(struct nvml_watch *w, const char *library, uint64_t state);
/* Returns the process ID, or 0 if no process runs. */
pid_t nvml_watch_pid(const struct nvml_watch *w);
void nvml_watch_free(struct nvml_watch *w);
