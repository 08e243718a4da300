/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_line: what we and the process that asks NVML say to each other, a line each. Pure; fuzzed.
 *
 *     us:          <id> <verb>
 *     the worker:  <id> at <text>       any number of times, as the last sign of life before the answer
 *                  <id> ok <json>       or       <id> no <code> <text>
 *
 * "at" comes when NVML has started, for each GPU before it is asked about it: "3 at GPU 7". Attaching a GPU
 * takes seconds without persistence mode, and longer with confidential computing, so a time-out counts from
 * the last line and not from the question.
 *
 * An id is a decimal number that grows with each question. A code is NVML's number, or a negative one of
 * nvml_library.h; the text is for people.
 *
 * The one that watches for events is asked once, and when it has answered ok it goes on by itself:
 *
 *     ! beat                            nothing has happened for NVML_EVENT_WAIT_MS
 *     ! xid <uuid> <xid> <gi> <ci>      of a GPU; an instance is -1 when NVML names none
 *     ! end <code> <text>               the last line: NVML cannot go on */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Verbs. */
#define NVML_ASK_FABRIC "fabric"       /* nvml_facts_decode() reads the answer */
#define NVML_ASK_INVENTORY "inventory" /* inventory_decode() does */
#define NVML_ASK_WATCH "watch"         /* nvml_watched_decode() does; only of who watches for events */

/* How long NVML waits for an event before the process says that it is alive. */
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
        int64_t code;    /* of a no */
        struct str text; /* JSON, why not, or what NVML is asked about now */
};
int nvml_answer_parse(struct str line, struct nvml_answer *ret, struct err *e);
void nvml_answer_write(const struct nvml_answer *a, struct buf *out);

struct nvml_event {
        enum { NVML_BEAT, NVML_XID, NVML_END } kind;
        struct str uuid; /* of an XID */
        uint64_t xid;
        int64_t gpu_instance, compute_instance; /* -1: of the whole GPU, or nobody knows which */
        int64_t code;                           /* of an end */
        struct str text;
};
/* Does this line tell of an event? Others are answers. */
bool nvml_event_is(struct str line);
int nvml_event_parse(struct str line, struct nvml_event *ret, struct err *e);
void nvml_event_write(const struct nvml_event *ev, struct buf *out);

/* Cuts the next line off what has come so far. 0: it is not whole yet, or *ret has it; -1: it is longer than
 * any line may be. */
int nvml_line_next(struct str *rest, struct str *ret, bool *ret_whole, struct err *e);
