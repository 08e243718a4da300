/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_watch: tells of XIDs of this node's GPUs as they happen, from a process of its own (nvml_channel),
 * whose session with the driver is open as long as it runs: that is in the way of a driver's upgrade, of a
 * GPU's reset and of a change of MIG mode, so it is there only for who wants it.
 *
 * What hangs or crashes is started again, with growing pauses. Loop thread only. */
#pragma once

#include <stdint.h>

#include "base/mem.h"
#include "nvidia/nvml_channel.h"

/* What came of it, GPU by GPU. */
struct nvml_watched_gpu {
        const char *uuid; /* "" when not even that could be asked */
        int64_t error;    /* NVML's; 0: it is watched */
        const char *call; /* that failed */
};
struct nvml_watched {
        struct nvml_watched_gpu *gpus;
        size_t n_gpus;
};
/* Pure; fuzzed. Memory in the arena. */
int nvml_watched_decode(struct str json, struct arena *a, struct nvml_watched *ret, struct err *e);

struct nvml_event;
/* None is called from inside a function of ours; the watch may be freed in each. */
struct nvml_watch_options {
        struct nvml_limits limits; /* until it watches */
        unsigned silent_ms;        /* from then on; it says something every NVML_EVENT_WAIT_MS */
        void (*watched)(void *u, const struct nvml_watched *w); /* it has begun, anew perhaps */
        void (*xid)(void *u, const struct nvml_event *ev);
        /* It has ended, or could not begin; it is tried again by itself. ERR_RETRY, and code as of
         * nvml_client.h. */
        void (*broken)(void *u, const struct err *e);
        void *u;
};

struct nvml_watch;
struct nvml_watch *nvml_watch_new(uv_loop_t *loop, const struct nvml_watch_options *o);
/* Watches with this library, or with none when NULL. Starts over when `state` is another than before: of the
 * library's file, and of which GPUs there are. A process that is still starting is not killed for that,
 * because it may be attaching a GPU: it is replaced when it watches. */
void nvml_watch_with(struct nvml_watch *w, const char *library, uint64_t state);
/* 0: no process runs. */
pid_t nvml_watch_pid(const struct nvml_watch *w);
void nvml_watch_free(struct nvml_watch *w);
