/* SPDX-License-Identifier: Apache-2.0 */
/* message: formats texts for conditions and Events, which have limits. */
#pragma once

#include "base/mem.h"
#include "base/str.h"

/* Formats a text of at most MESSAGE_MAX bytes into the arena. Cuts a longer text between UTF-8 characters,
 * and ends it with "...". The limit is needed because texts that Pods report may be longer. A "?" replaces
 * each byte that is not valid UTF-8, such as the rest of a character that a precision has cut. */
enum { MESSAGE_MAX = 4096 };
const char *message_of(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A text that lists only the first few items: "node-1, node-2 and 3 more". The caller zero-initializes the
 * struct. */
enum { MESSAGE_NAMES_MAX = 5 };
struct message_list {
        struct buf text;
        size_t n;
        const char *between; /* NULL: ", " */
};
void message_add(struct message_list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text, in the arena, and frees the list. */
const char *message_end(struct message_list *l, struct arena *a);
