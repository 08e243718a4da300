/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_channel: a process in which NVML is called (nvml_worker.h), and the lines that come from it and go to
 * it. A library that hangs or crashes costs that process; when to start another one is its owner's to say.
 * Loop thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

/* err.code where NVML did not answer at all; otherwise it is its number, or NVML_CANNOT_LOAD. */
enum { NVML_HUNG = -2, NVML_CRASHED = -3 };

enum { NVML_BACKOFF_MIN_MS = 1000, NVML_BACKOFF_MAX_MS = 60000 };
/* Pure. How long to wait before another process is started, after so many that failed in a row before this
 * one. */
unsigned nvml_backoff_ms(unsigned failures);

/* How long nothing may come from NVML's process before it counts as hung and is killed. A process that is
 * killed while it attaches a GPU can leave that GPU unusable until a reset, so these are far above what was
 * seen: one to three seconds a GPU without persistence mode, some more with confidential computing, more on a
 * busy node. */
struct nvml_limits {
        unsigned start_ms;  /* to the first line of an answer: the library is loaded, and nvmlInit */
        unsigned silent_ms; /* from each line to the next: one GPU */
};
#define NVML_LIMITS ((struct nvml_limits){ .start_ms = 180000, .silent_ms = 60000 })
/* Sets the error of a process that exceeded them; `at` is what it was asked about, "" before the first line.
 */
void nvml_hung(const struct nvml_limits *l, const char *at, struct err *e);
enum { NVML_AT_SIZE = 64 };

struct nvml_channel_options {
        const char *role;    /* NVML_WORKER_QUERY, or another one of nvml_worker.h */
        const char *library; /* path of libnvidia-ml.so.1, copied */
        /* A line, without its end, that lasts as long as the call. The channel may be freed in it, and in
         * the next. */
        void (*line)(void *u, struct str line);
        /* Once: the process has ended, and all its lines have come, or it says what cannot be a line. Then
         * the channel is only there to be freed. ERR_RETRY, NVML_CRASHED. */
        void (*ended)(void *u, const struct err *e);
        void *u;
};

struct nvml_channel;
/* ERR_RETRY, NVML_CRASHED: the process cannot be started; NVML_HUNG: an earlier one is stuck (process.h).
 * Nothing is called back from inside. */
int nvml_channel_open(uv_loop_t *loop, const struct nvml_channel_options *o, struct nvml_channel **ret,
                      struct err *e);
/* A line with its end, at most NVML_QUESTION_MAX bytes; of a process that is gone ended() tells. */
void nvml_channel_send(struct nvml_channel *c, struct str line);
/* 0: the process has ended, though lines of it may still come. */
pid_t nvml_channel_pid(const struct nvml_channel *c);
/* Kills the process; nothing is called back any more. NULL is allowed. */
void nvml_channel_free(struct nvml_channel *c);
