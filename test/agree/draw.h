/* SPDX-License-Identifier: Apache-2.0 */
/* draw: draws requests from a seed. Each has a form (form.h) from a list, and is about objects that the
 * simulated server has or might have. Some requests have no listed form and are invalid. */
#pragma once

#include <yyjson.h>

#include "../simulate/store.h"
#include "base/err.h"
#include "form.h"

/* Values that a server chooses are between a mark and MARK_END in path and body, with the value of the
 * simulated server. */
#define MARK_UID "\1"
#define MARK_VERSION "\2"
#define MARK_TOKEN "\3"
#define MARK_END "\4"

enum caller {
        CALLER_ADMIN,
        CALLER_NOBODY,
        CALLER_STRANGER
}; /* may do everything, may do nothing, sends no token */

struct request {
        enum kind k; /* K_COUNT: the resource is not served */
        enum caller caller;
        char *method, *path, *content_type, *accept, *body; /* body NULL: none */
        bool watch, from_cache;
};
void request_done(struct request *r);

void draw_seed(uint64_t seed);
uint64_t draw_below(uint64_t n);
bool draw_chance(unsigned percent);

/* Reads a list of forms. `left_out` has a line for each resource whose forms are not drawn. */
int draw_load(const char *path, const char *left_out, struct err *e);
void draw_next(struct request *r);
/* true: draws no lists and no watches, because the real server's caches have another history. */
void draw_direct(bool is);
/* Makes a request for a list of all objects of a kind, which updates the real server's cache. */
void draw_catch_up(enum kind k, struct request *r);
/* Records the simulated server's answer to a GET of this path: a page with a continuation, or the version of
 * a list. */
void draw_note_answer(const struct request *r, const char *path, yyjson_val *answer);
/* Forgets these continuations and versions. */
void draw_forget_lists(void);
/* Call it when a request of this form was answered. */
void draw_covered(const char *form);
/* Adds the forms of which no request was answered. */
void draw_uncovered(struct buf *out);
void draw_done(void);

#define DRAW_SPACES                                                                                          \
        { "a", "a-b", "b" }
