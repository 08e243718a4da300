/* SPDX-License-Identifier: Apache-2.0 */
/* check_list: the result of the subcommand check-node: a list of checked items, and its output as text and as
 * JSON. docs/reference/flags.md documents the JSON; later versions only add members and items. Pure. */
#pragma once

#include "base/mem.h"
#include "base/str.h"

enum check_state {
        CHECK_OK,
        CHECK_PROBLEM,
        CHECK_SKIPPED, /* not checked, or the check has no result; the text is the reason */
};

struct check_item {
        const char *name; /* static, "driver-root"; the same item may appear several times */
        enum check_state state;
        const char *text;   /* the state that was found, the cause of the problem, or the reason */
        const char *remedy; /* a sentence; only for CHECK_PROBLEM */
};

struct check_list {
        struct arena *arena; /* owns the list and its texts */
        struct check_item *items;
        size_t n, cap;
};

void check_list_init(struct check_list *l);
void check_list_done(struct check_list *l);

/* Add an item. Line breaks in the texts become spaces. */
void check_list_ok(struct check_list *l, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void check_list_skipped(struct check_list *l, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void check_list_problem(struct check_list *l, const char *name, const char *remedy, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* Adds a problem with the remedy that the catalogue has for this reason of a Node (api/reasons.h). */
void check_list_reason(struct check_list *l, const char *name, const char *reason, const char *text);

/* The exit status of the program: 0, or 1 with a problem. */
int check_list_status(const struct check_list *l);
/* Append the list: a line for each item, or a JSON object and a newline. */
void check_list_text(const struct check_list *l, struct buf *out);
void check_list_json(const struct check_list *l, const char *program, const char *node, struct buf *out);
