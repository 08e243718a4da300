/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_channel: runs a process that calls NVML (nvml_worker.h), and exchanges lines with it. If NVML's
 * library hangs or crashes, only that process is lost. The owner decides when to start another one. Loop
 * thread only. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

/* Values of err.code if NVML did not answer at all. Otherwise err.code is NVML's error number, or
 * NVML_CANNOT_LOAD. */
enum { NVML_HUNG = -2, NVML_CRASHED = -3 };

enum { NVML_BACKOFF_MIN_MS = 1000, NVML_BACKOFF_MAX_MS = 60000 };
/* Returns how long to wait before the next process starts. `failures`: how many processes failed in a row
 * before this one. Pure. */
unsigned nvml_backoff_ms(unsigned failures);

/* How long NVML's process may be silent before it counts as hung and is killed. A process that is killed
 * while it attaches a GPU can leave that GPU unusable until a reset. So the limits are far above the
 * durations that were observed: one to three seconds for a GPU without persistence mode, more with
 * confidential computing, and more on a busy node. */
struct nvml_limits {
        unsigned start_ms;  /* until the first line of an answer: loads the library, calls nvmlInit */
        unsigned silent_ms; /* from each line to the next: queries one GPU */
};
#define NVML_LIMITS ((struct nvml_limits){ .start_ms = 180000, .silent_ms = 60000 })
/* Sets the error for a process that exceeded the limits. `at` is the GPU that it was querying; "": it had not
 * written a line. */
void nvml_hung(const struct nvml_limits *l, const char *at, struct err *e);
enum { NVML_AT_SIZE = 64 };

struct nvml_channel_options {
        const char *role;    /* NVML_WORKER_QUERY or NVML_WORKER_EVENTS */
        const char *library; /* path of libnvidia-ml.so.1, copied */
        /* Called for each line, without its newline; `line` is valid during the call. The callback may free
         * the channel, as may ended(). */
        void (*line)(void *u, struct str line);
        /* Called once, when the process has ended and all its lines have been delivered, or when its output
         * is not a valid line. Afterwards the owner can only free the channel. The error is ERR_RETRY with
         * the code NVML_CRASHED. */
        void (*ended)(void *u, const struct err *e);
        void *u;
};

struct nvml_channel;
/* Starts the process. Calls no callback before it returns. Errors are ERR_RETRY. Code NVML_CRASHED: the
 * process cannot be started. Code NVML_HUNG: an earlier process is stuck (process.h). */
int nvml_channel_open(uv_loop_t *loop, const struct nvml_channel_options *o, struct nvml_channel **ret,
                      struct err *e);
/* Sends a line, which includes its newline and has at most NVML_QUESTION_MAX bytes. If the process has ended,
 * ended() reports this. */
void nvml_channel_send(struct nvml_channel *c, struct str line);
/* Returns the process ID, or 0 if the process has ended. Its last lines may still arrive then. */
pid_t nvml_channel_pid(const struct nvml_channel *c);
/* Kills the process and frees the channel. No callback is called afterwards. NULL is allowed. */
void nvml_channel_free(struct nvml_channel *c);
