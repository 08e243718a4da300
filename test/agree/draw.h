/* SPDX-License-Identifier: Apache-2.0 */
/* draw: requests to send, from a seed. Each is of a form (form.h) that a file lists, about the objects that
 * the simulated server has, or might have; some are of no form and wrong. */
#pragma once

#include <yyjson.h>

#include "../simulate/store.h"
#include "base/err.h"
#include "form.h"

/* What is the server's own choice in path and body stands between a mark and MARK_END, as the simulated
 * server says it. */
#define MARK_UID "\1"
#define MARK_VERSION "\2"
#define MARK_TOKEN "\3"
#define MARK_END "\4"

enum caller { CALLER_ADMIN, CALLER_NOBODY, CALLER_STRANGER }; /* may do all, may do nothing, shows no token */

struct request {
        enum kind k; /* K_COUNT: about no object */
        enum caller caller;
        char *method, *path, *content_type, *accept, *body; /* body NULL: none */
        bool watch, from_cache;
};
void request_done(struct request *r);

void draw_seed(uint64_t seed);
uint64_t draw_below(uint64_t n);
bool draw_chance(unsigned percent);

/* Reads a list of forms. `left_out` has a line for each resource whose forms are not sent. */
int draw_load(const char *path, const char *left_out, struct err *e);
void draw_next(struct request *r);
/* Neither lists nor watches from now on, or again: while the real server's caches are of another history. */
void draw_direct(bool is);
/* A list of all objects of a kind, by which the real server's cache catches up. */
void draw_catch_up(enum kind k, struct request *r);
/* What the simulated server has answered to a GET of this path: a page that goes on, or a list's version. */
void draw_note_answer(const struct request *r, const char *path, yyjson_val *answer);
/* Neither goes on, nor is its version known. */
void draw_forget_lists(void);
/* A request of this form was answered. */
void draw_covered(const char *form);
/* Adds the forms that were not. */
void draw_uncovered(struct buf *out);
void draw_done(void);

#define DRAW_SPACES                                                                                          \
        { "a", "a-b", "b" }
