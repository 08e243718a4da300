/* SPDX-License-Identifier: Apache-2.0 */
/* message: texts for people, which go into conditions and Events and have their limits. */
#pragma once

#include "base/mem.h"
#include "base/str.h"

/* printf into an arena, 4 KiB at most: what a Pod says of itself may be longer. */
const char *message_of(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Things of which only the first few are named: "node-1, node-2 and 3 more". Zeroed at first. */
enum { MESSAGE_NAMED_AT_MOST = 5 };
struct message_list {
        struct buf text;
        size_t n;
        const char *between; /* NULL: ", " */
};
void message_add(struct message_list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text, in the arena; frees what the list has. */
const char *message_end(struct message_list *l, struct arena *a);
