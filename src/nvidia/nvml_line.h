/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_line: what we and the process that asks NVML say to each other, a line each. Pure; fuzzed.
 *
 *     us:          <id> <verb>
 *     the worker:  <id> ok <json>       or       <id> no <code> <text>
 *
 * An id is a decimal number that grows with each question. A code is NVML's number, or a negative one of
 * nvml_library.h; the text is for people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Verbs. */
#define NVML_ASK_FABRIC "fabric"       /* nvml_facts_decode() reads the answer */
#define NVML_ASK_INVENTORY "inventory" /* inventory_decode() does */

enum { NVML_LINE_MAX = 1 << 20, NVML_QUESTION_MAX = 256 };

struct nvml_question {
        int64_t id;
        struct str verb;
};
int nvml_question_parse(struct str line, struct nvml_question *ret, struct err *e);
void nvml_question_write(int64_t id, const char *verb, struct buf *out);

struct nvml_answer {
        int64_t id;
        bool ok;
        int64_t code;    /* of a no */
        struct str text; /* JSON, or why not */
};
int nvml_answer_parse(struct str line, struct nvml_answer *ret, struct err *e);
void nvml_answer_write(const struct nvml_answer *a, struct buf *out);

/* Cuts the next line off what has come so far. 0: it is not whole yet, or *ret has it; -1: it is longer than
 * any line may be. */
int nvml_line_next(struct str *rest, struct str *ret, bool *ret_whole, struct err *e);
