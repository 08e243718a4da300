/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_line: encodes and decodes the protocol between the plugin and the worker process that queries NVML.
 * Each message is a line. Pure; fuzzed.
 *
 *     the plugin:  <id> <verb>
 *     the worker:  <id> at <text>       any number of times, as a sign of life before the answer
 *                  <id> ok <json>       or       <id> no <code> <text>
 *
 * The worker writes "at" after NVML has started, before it queries each GPU: "3 at GPU 7". Attaching a GPU
 * takes seconds without persistence mode, and longer with confidential computing. So a time-out counts from
 * the last line and not from the question.
 *
 * An ID is a decimal number that grows with each question. A code is NVML's error number, or the negative
 * code of nvml_library.h. The text is for people.
 *
 * A worker that watches for events gets one question. After its answer "ok" it writes these lines:
 *
 *     ! beat                            no event for NVML_EVENT_WAIT_MS
 *     ! xid <uuid> <xid> <gi> <ci>      from a GPU; an instance is -1 if NVML names none
 *     ! end <code> <text>               the last line: NVML cannot continue */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Verbs. */
#define NVML_ASK_FABRIC "fabric"       /* nvml_facts_decode() reads the answer */
#define NVML_ASK_INVENTORY "inventory" /* inventory_decode() reads the answer */
/* Asks for some GPUs and their MIG devices: "gpus:0,3", with NVML's indexes. inventory_decode() reads the
 * answer, which has no versions. A GPU that no longer exists is left out. NVML initializes only these GPUs,
 * unless others are in use. */
#define NVML_ASK_GPUS "gpus:"
#define NVML_ASK_WATCH "watch"         /* nvml_watched_decode() reads it; only for role "events" */

/* How long the worker waits for an event before it writes "beat". */
enum { NVML_EVENT_WAIT_MS = 5000 };

enum { NVML_LINE_MAX = 4 << 20, NVML_QUESTION_MAX = 256, NVML_UUID_MAX = 96 };

struct nvml_question {
        int64_t id;
        struct str verb;
};
int nvml_question_parse(struct str line, struct nvml_question *ret, struct err *e);
void nvml_question_write(int64_t id, const char *verb, struct buf *out);

struct nvml_answer {
        int64_t id;
        enum { NVML_NO, NVML_YES, NVML_AT } kind;
        int64_t code;    /* set for NVML_NO */
        struct str text; /* JSON, the error, or the GPU that is being queried */
};
int nvml_answer_parse(struct str line, struct nvml_answer *ret, struct err *e);
void nvml_answer_write(const struct nvml_answer *a, struct buf *out);

struct nvml_event {
        enum { NVML_BEAT, NVML_XID, NVML_END } kind;
        struct str uuid; /* of the GPU; set for NVML_XID */
        uint64_t xid;
        int64_t gpu_instance, compute_instance; /* -1: the whole GPU, or unknown */
        int64_t code;                           /* set for NVML_END */
        struct str text;
};
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
/* Decodes the results. All memory is allocated in the arena. */
int nvml_watched_decode(struct str json, struct arena *a, struct nvml_watched *ret, struct err *e);

/* Returns true if the line is an event. Other lines are answers. */
bool nvml_event_is(struct str line);
int nvml_event_parse(struct str line, struct nvml_event *ret, struct err *e);
void nvml_event_write(const struct nvml_event *ev, struct buf *out);

/* Cuts the next line off the received bytes. Returns 0 and sets *ret_whole to whether *ret contains a
 * complete line. Returns -1 if the line is longer than allowed. */
int nvml_line_next(struct str *rest, struct str *ret, bool *ret_whole, struct err *e);
