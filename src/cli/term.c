/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 7 };

/* Whether the character changes the direction or order of the text around it, or is invisible: marks and
 * embeddings (U+200B to U+200F, U+2028 to U+202E), isolates (U+2060 to U+206F), and the byte order mark. */
static bool is_tricky(unsigned long c) {
        return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
               c == 0xfeff || c == 0x061c;
}

static unsigned long term_code_of(const unsigned char *p, size_t n) {
        unsigned long c = n == 1 ? p[0] : p[0] & (0x7fUL >> n);
        for (size_t i = 1; i < n; i++)
                c = c << 6 | (p[i] & 0x3fUL);
        return c;
}

static void add_clean(struct buf *out, struct str s, bool ascii, bool lines) {
        while (s.n) {
                size_t n = str_utf8_char(s);
                unsigned long c = n ? term_code_of((const unsigned char *)s.p, n) : 0;
                bool good = n && (c >= 0x20 || (c == '\n' && lines)) && (c < 0x7f || c > 0x9f) &&
                            !is_tricky(c) && (c < 0x80 || !ascii);
                if (good)
                        buf_add(out, s.p, n);
                else
                        buf_addc(out, c == '\n' || c == '\t' || c == '\r' ? ' ' : '?');
                n = n ? n : 1;
                s = (struct str){ s.p + n, s.n - n };
        }
}

const char *term_clean(struct arena *a, const char *s, bool ascii, bool lines) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(TERM_OUT_MAX);
        add_clean(&b, str_from(s), ascii, lines);
        return arena_strdup(a, buf_str(&b));
}

static void term_vadd(struct term *t, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void term_vadd(struct term *t, const char *fmt, va_list ap) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(TERM_OUT_MAX);
        buf_vaddf(&b, fmt, ap);
        add_clean(&t->out, (struct str){ buf_str(&b), b.n }, t->ascii, false);
}

void term_printf(struct term *t, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        term_vadd(t, fmt, ap);
        va_end(ap);
}

void term_line(struct term *t, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        term_vadd(t, fmt, ap);
        va_end(ap);
        term_newline(t);
}

static void term_code(struct term *t, const char *code) {
        if (t->color)
                buf_adds(&t->out, code);
}

void term_bold(struct term *t, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        term_code(t, "\033[1m");
        term_vadd(t, fmt, ap);
        term_code(t, "\033[0m");
        va_end(ap);
}

void term_newline(struct term *t) {
        buf_addc(&t->out, '\n');
}

static const struct {
        const char *color, *symbol, *word;
} mark_texts[] = {
        [TERM_NONE] = { "", "", "" },
        [TERM_OK] = { "\033[32m", "✔", "ok" },
        [TERM_BAD] = { "\033[31m", "✘", "FAIL" },
        [TERM_WAIT] = { "\033[33m", "▸", "wait" },
        [TERM_UNKNOWN] = { "\033[33m", "?", "?" },
};

void term_add_mark(struct term *t, enum term_mark m) {
        if (m == TERM_NONE)
                return;
        term_code(t, mark_texts[m].color);
        if (t->ascii)
                buf_addf(&t->out, "%-4s", mark_texts[m].word);
        else
                buf_adds(&t->out, mark_texts[m].symbol);
        term_code(t, "\033[0m");
        buf_addc(&t->out, ' ');
}

void term_add_branch(struct term *t, bool last) {
        buf_adds(&t->out, t->ascii ? (last ? "`- " : "|- ") : (last ? "└─ " : "├─ "));
}

/* The number of columns of a clean text. Wide characters count as one. */
static size_t columns_of(const char *s, size_t n) {
        size_t columns = 0;
        for (size_t i = 0; i < n; i++)
                columns += ((unsigned char)s[i] & 0xc0) != 0x80;
        return columns;
}

/* The length of the next word, with the spaces between backticks. */
static size_t word_length(const char *s) {
        bool code = false;
        size_t n = 0;
        for (; s[n] && (code || s[n] != ' '); n++)
                if (s[n] == '`' && (code || strchr(s + n + 1, '`')))
                        code = !code;
        return n;
}

void term_paragraph(struct term *t, const char *word, const char *text) {
        _cleanup_(buf_done) struct buf clean = BUF_INIT(TERM_OUT_MAX);
        size_t at = INDENT;
        add_clean(&clean, str_from(text), t->ascii, false);
        term_bold(t, "%-*s", INDENT, word);
        for (const char *s = buf_str(&clean); *s;) {
                size_t n = word_length(s), columns = columns_of(s, n);
                if (at > INDENT && at + 1 + columns > WIDTH) {
                        buf_addf(&t->out, "\n%*s", INDENT, "");
                        at = INDENT;
                } else if (at > INDENT) {
                        buf_addc(&t->out, ' ');
                        at++;
                }
                buf_add(&t->out, s, n);
                at += columns;
                for (s += n; *s == ' '; s++)
                        ;
        }
        term_newline(t);
}

void term_table_begin(struct term_table *x, size_t columns) {
        *x = (struct term_table){ .columns = columns };
}

void term_cell_marked(struct term_table *x, enum term_mark m, const char *text) {
        GROW(x->marks, x->n, x->cap_marks);
        GROW(x->cells, x->n, x->cap);
        x->marks[x->n] = m;
        x->cells[x->n++] = text;
}

void term_cell(struct term_table *x, const char *text) {
        term_cell_marked(x, TERM_NONE, text);
}

void term_table_end(struct term *t, struct term_table *x, struct arena *a) {
        size_t *widths = arena_alloc(a, (x->columns + 1) * sizeof *widths);
        for (size_t i = 0; i < x->n; i++) {
                x->cells[i] = term_clean(a, str_or(x->cells[i], ""), t->ascii, false);
                size_t n = columns_of(x->cells[i], strlen(x->cells[i]));
                if (n > widths[i % x->columns])
                        widths[i % x->columns] = n;
        }
        for (size_t i = 0; i < x->n; i++) {
                size_t column = i % x->columns, n = columns_of(x->cells[i], strlen(x->cells[i]));
                bool last = column + 1 == x->columns;
                term_code(t, i < x->columns ? "\033[1m" : mark_texts[x->marks[i]].color);
                buf_adds(&t->out, x->cells[i]);
                if (i < x->columns || *mark_texts[x->marks[i]].color)
                        term_code(t, "\033[0m");
                bool rest = false; /* whether the row has more text */
                for (size_t k = i + 1; k < x->n && k % x->columns; k++)
                        rest = rest || *x->cells[k];
                if (!last && rest)
                        buf_addf(&t->out, "%*s", (int)(widths[column] - n + 2), "");
                if (last)
                        term_newline(t);
        }
        free(x->cells);
        free(x->marks);
        *x = (struct term_table){ 0 };
}

void term_json(struct jw *w, const char *key, const char *text, struct arena *a) {
        jw_str(w, key, text ? term_clean(a, text, false, true) : NULL);
}

const char *term_shell_word(struct arena *a, const char *text) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-";
        text = str_or(text, "");
        if (*text && !text[strspn(text, plain)] && *text != '-')
                return text;
        _cleanup_(buf_done) struct buf b = BUF_INIT(TERM_OUT_MAX);
        buf_addc(&b, '\'');
        for (; *text; text++) {
                if (*text == '\'')
                        buf_adds(&b, "'\\'");
                buf_addc(&b, *text);
        }
        buf_addc(&b, '\'');
        return arena_strdup(a, buf_str(&b));
}

const char *term_age(struct arena *a, int64_t s) {
        if (s < 0)
                s = 0;
        if (s < 120)
                return arena_printf(a, "%" PRId64 "s", s);
        if (s < 600)
                return s % 60 ? arena_printf(a, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60)
                              : arena_printf(a, "%" PRId64 "m", s / 60);
        if (s < 2 * 3600)
                return arena_printf(a, "%" PRId64 "m", s / 60);
        return s < 2 * 86400 ? arena_printf(a, "%" PRId64 "h", s / 3600)
                             : arena_printf(a, "%" PRId64 "d", s / 86400);
}
