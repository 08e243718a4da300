/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_watch: reports XIDs of this node's GPUs as they happen, from a separate process (nvml_channel). The
 * session of this process with the driver is open as long as the process runs. An open session prevents an
 * upgrade of the driver, a reset of a GPU and a change of MIG mode, so the watch is optional.
 *
 * The module restarts a process that hangs or crashes, with growing pauses. Loop thread only. */
#pragma once

#include <stdint.h>

#include "base/mem.h"
#include "nvidia/nvml_channel.h"

/* The result of starting the watch, for each GPU. */
struct nvml_watched_gpu {
        const char *uuid; /* "" if the query of the UUID failed */
        int64_t error;    /* NVML's error number; 0: the GPU is watched */
        const char *call; /* the NVML function that failed */
};
struct nvml_watched {
        struct nvml_watched_gpu *gpus;
        size_t n_gpus;
};
/* Decodes the results. All memory is allocated in the arena. Pure; fuzzed. */
int nvml_watched_decode(struct str json, struct arena *a, struct nvml_watched *ret, struct err *e);

struct nvml_event;
/* No callback runs inside a function of this module. Each callback may free the watch. */
struct nvml_watch_options {
        struct nvml_limits limits; /* limits until the watch begins */
        unsigned silent_ms;        /* limit afterwards; the process writes a line every NVML_EVENT_WAIT_MS */
        void (*watched)(void *u, const struct nvml_watched *w); /* the watch has (re)started */
        void (*xid)(void *u, const struct nvml_event *ev);
        /* Called when the watch has ended or could not begin; the module retries. The error is ERR_RETRY,
         * with a code as in nvml_channel.h. */
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
