/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_watch: reports XIDs of this node's GPUs as they happen, from a separate process (nvml_channel). Its
 * session with the driver is open as long as it runs. An open session prevents an upgrade of the driver, a
 * reset of a GPU and a change of MIG mode, so the watch is optional.
 *
 * A process that hangs or crashes is restarted, with growing pauses. Loop thread only. */
#pragma once

#include <stdint.h>

#include "base/mem.h"
#include "nvidia/nvml_channel.h"

/* The result for each GPU. */
struct nvml_watched_gpu {
        const char *uuid; /* "" if even this query failed */
        int64_t error;    /* NVML's; 0: the GPU is watched */
        const char *call; /* the call that failed */
};
struct nvml_watched {
        struct nvml_watched_gpu *gpus;
        size_t n_gpus;
};
/* Pure; fuzzed. Memory in the arena. */
int nvml_watched_decode(struct str json, struct arena *a, struct nvml_watched *ret, struct err *e);

struct nvml_event;
/* No callback runs inside a function of this module. The watch may be freed in each of them. */
struct nvml_watch_options {
        struct nvml_limits limits; /* until the watch begins */
        unsigned silent_ms;        /* from then on; the process writes a line every NVML_EVENT_WAIT_MS */
        void (*watched)(void *u, const struct nvml_watched *w); /* the watch has begun, perhaps again */
        void (*xid)(void *u, const struct nvml_event *ev);
        /* The watch has ended, or could not begin; the module retries. ERR_RETRY, with a code as in
         * nvml_channel.h. */
        void (*broken)(void *u, const struct err *e);
        void *u;
};

struct nvml_watch;
struct nvml_watch *nvml_watch_new(uv_loop_t *loop, const struct nvml_watch_options *o);
/* Watches with this library; NULL: does not watch. Starts again if `state` differs from the last call: it
 * covers the library's file and the set of GPUs. A process that is still starting is not killed for that,
 * because it may be attaching a GPU. It is replaced when its watch has begun. */
void nvml_watch_with(struct nvml_watch *w, const char *library, uint64_t state);
/* 0: no process runs. */
pid_t nvml_watch_pid(const struct nvml_watch *w);
void nvml_watch_free(struct nvml_watch *w);
