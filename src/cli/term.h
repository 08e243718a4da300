/* SPDX-License-Identifier: Apache-2.0 */
/* term: builds the output of a command: text with colours and marks, and tables.
 *
 * Names and messages of objects are untrusted: they may contain control characters that change what a
 * terminal shows. So every text that is added here is sanitized after formatting, and only this module adds
 * escape sequences. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum term_mark {
        TERM_NONE,
        TERM_OK,
        TERM_BAD,
        TERM_WAIT,   /* not ready yet, or a remark */
        TERM_UNKNOWN /* may not be read */
};

struct term {
        struct buf out; /* the caller frees it with buf_done() */
        bool color;
        bool ascii; /* no character beyond ASCII */
};

enum { TERM_OUT_MAX = 64 << 20 };

/* Sanitizes a text in an arena: control characters, invalid UTF-8 and characters that change the direction of
 * the text become '?'; with `lines`, "\n" stays. With `ascii`, all characters beyond ASCII become '?'. */
const char *term_clean(struct arena *a, const char *s, bool ascii, bool lines);

/* Adds text. A "\n" in the format or in an argument of `term_line` and `term_mark_line` is sanitized, too, so
 * that no text from an object can begin a line. */
void term_printf(struct term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void term_line(struct term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void term_bold(struct term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void term_newline(struct term *t);

/* Adds the mark, and a space. */
void term_add_mark(struct term *t, enum term_mark m);
/* Adds the symbol of a list: "├─ ", or "└─ " for the last line. */
void term_add_branch(struct term *t, bool last);

/* Adds a text of several lines after a word of the margin: "CAUSE  ...". Breaks lines at 100 columns, and
 * indents them below the first. Commands between backticks are not broken. */
void term_paragraph(struct term *t, const char *word, const char *text);

/* A table whose columns are as wide as their cells. The cells are borrowed until term_table_end(). */
struct term_table {
        const char **cells;
        enum term_mark *marks; /* of each cell */
        size_t columns, n, cap, cap_marks;
};
void term_table_begin(struct term_table *x, size_t columns);
void term_cell(struct term_table *x, const char *text);
void term_cell_marked(struct term_table *x, enum term_mark m, const char *text);
/* Adds the table to the output, and frees it. The first row is the head. */
void term_table_end(struct term *t, struct term_table *x, struct arena *a);

/* Writes a member of a JSON output, sanitized. */
void term_json(struct jw *w, const char *key, const char *text, struct arena *a);

/* A text of an object as one word of a command for a shell: in quotation marks unless it is plain. A bundle
 * may be from anyone, and users copy commands. */
const char *term_shell_word(struct arena *a, const char *text);

/* "3h", "2m10s", "4d". */
const char *term_age(struct arena *a, int64_t seconds);
