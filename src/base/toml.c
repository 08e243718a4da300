/* SPDX-License-Identifier: Apache-2.0 */
#include "base/toml.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

enum { DEPTH_MAX = 64, KEY_MAX_BYTES = 1024 };

/* The position of a value: the number of names that lead to it, and how many of these, from the first on,
 * equal the names of the requested path. */
struct path {
        unsigned n, same;
        bool list; /* inside an element of a list, which has no name */
};

struct reader {
        const char *p, *end;
        unsigned line, depth;
        const char *const *sought;
        unsigned n_sought;
        struct toml_value value;
        struct err *e;
};

static int toml_bad(struct reader *r, const char *what) {
        return err_set(r->e, ERR_INVALID, 0, "line %u: %s", r->line, what);
}

/* '\0' at the end of the text, and for a NUL, which TOML never allows. */
static char at(const struct reader *r, size_t i) {
        return (size_t)(r->end - r->p) > i ? r->p[i] : '\0';
}

static bool toml_take(struct reader *r, const char *word) {
        size_t n = strlen(word);
        if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
                return false;
        r->p += n;
        return true;
}

static void toml_skip_blanks(struct reader *r) {
        while (at(r, 0) == ' ' || at(r, 0) == '\t')
                r->p++;
}

static bool is_control(char c) {
        return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool take_newline(struct reader *r) {
        if (!toml_take(r, "\n") && !toml_take(r, "\r\n"))
                return false;
        r->line++;
        return true;
}

static int skip_comment(struct reader *r) {
        if (!toml_take(r, "#"))
                return 0;
        for (; r->p < r->end && at(r, 0) != '\n' && !(at(r, 0) == '\r' && at(r, 1) == '\n'); r->p++) {
                if (is_control(*r->p) && *r->p != '\t')
                        return toml_bad(r, "a control character in a comment");
        }
        return 0;
}

/* Blanks, comments and ends of lines, as between the elements of a list. */
static int skip_lines(struct reader *r) {
        do {
                toml_skip_blanks(r);
                if (skip_comment(r) < 0)
                        return -1;
        } while (take_newline(r));
        return 0;
}

/* ---- strings ---- */

static int hex_digits(struct reader *r, unsigned n, uint32_t *ret) {
        *ret = 0;
        for (unsigned i = 0; i < n; i++, r->p++) {
                char c = at(r, 0);
                if (!isxdigit((unsigned char)c))
                        return toml_bad(r, "an escape without its digits");
                *ret = *ret * 16 + (uint32_t)(isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return *ret > 0x10ffff || (*ret >= 0xd800 && *ret < 0xe000) ? toml_bad(r, "an escape of no character")
                                                                    : 0;
}

static void put_utf8(struct buf *out, uint32_t c) {
        char text[4];
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
        for (size_t i = n; --i > 0; c >>= 6)
                text[i] = (char)(0x80 | (c & 0x3f));
        text[0] = (char)(lead[n] | c);
        buf_add(out, text, n);
}

/* After the backslash. */
static int toml_take_escape(struct reader *r, bool lines, struct buf *out) {
        static const char names[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
        char c = at(r, 0);
        const char *known = c ? strchr(names, c) : NULL;
        uint32_t code;
        if (known) {
                r->p++;
                buf_add(out, &meant[known - names], 1);
                return 0;
        }
        if (c == 'u' || c == 'U') {
                r->p++;
                if (hex_digits(r, c == 'u' ? 4 : 8, &code) < 0)
                        return -1;
                put_utf8(out, code);
                return 0;
        }
        /* Skips the end of the line and all blank space that follows. */
        toml_skip_blanks(r);
        if (!lines || !take_newline(r))
                return toml_bad(r, "an escape that TOML does not have");
        do
                toml_skip_blanks(r);
        while (take_newline(r));
        return 0;
}

/* After the first quote, which is `quote`; with `lines`, after the third. */
static int toml_take_string(struct reader *r, char quote, bool lines, struct buf *out) {
        const char end[] = { quote, quote, quote, '\0' };
        if (lines)
                (void)take_newline(r);
        for (;;) {
                char c = at(r, 0);
                if (lines && toml_take(r, end)) {
                        /* Up to two more quotes belong to the text. */
                        for (int i = 0; i < 2 && at(r, 0) == quote; i++, r->p++)
                                buf_add(out, &quote, 1);
                        return 0;
                }
                if (!lines && c == quote) {
                        r->p++;
                        return 0;
                }
                if (quote == '"' && toml_take(r, "\\")) {
                        if (toml_take_escape(r, lines, out) < 0)
                                return -1;
                } else if (lines && take_newline(r)) {
                        buf_add(out, "\n", 1);
                } else if (r->p == r->end || (is_control(c) && c != '\t')) {
                        return toml_bad(r, "a string without its end");
                } else {
                        buf_add(out, r->p++, 1);
                }
        }
}

static int toml_take_text(struct reader *r, struct buf *text) {
        char quote = at(r, 0);
        bool lines = at(r, 1) == quote && at(r, 2) == quote;
        r->p += lines ? 3 : 1;
        return toml_take_string(r, quote, lines, text);
}

/* ---- keys ---- */

static bool is_bare(char c) {
        return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static int take_name(struct reader *r, struct path *path) {
        struct buf name = BUF_INIT(KEY_MAX_BYTES);
        char quote = at(r, 0);
        int ret = 0;
        if (quote == '"' || quote == '\'') {
                r->p++;
                ret = toml_take_string(r, quote, false, &name);
        } else {
                const char *begin = r->p;
                while (is_bare(at(r, 0)))
                        r->p++;
                buf_add(&name, begin, (size_t)(r->p - begin));
                ret = r->p == begin ? toml_bad(r, "a key was expected") : 0;
        }
        if (ret == 0 && name.failed)
                ret = toml_bad(r, "a key that is too long");
        struct str text = { buf_str(&name), name.n };
        if (path->same == path->n && path->n < r->n_sought && str_eq(text, str_from(r->sought[path->n])))
                path->same++;
        path->n += path->n <= r->n_sought;
        buf_done(&name);
        return ret;
}

/* "a.b.c", appended to the names in `path`. */
static int take_key(struct reader *r, struct path *path) {
        for (;;) {
                toml_skip_blanks(r);
                if (take_name(r, path) < 0)
                        return -1;
                toml_skip_blanks(r);
                if (!toml_take(r, "."))
                        return 0;
        }
}

/* ---- values ---- */

static int take_value(struct reader *r, const struct path *path);

static int take_list(struct reader *r) {
        const struct path element = { .list = true };
        for (;;) {
                if (skip_lines(r) < 0)
                        return -1;
                if (toml_take(r, "]"))
                        return 0;
                if (take_value(r, &element) < 0 || skip_lines(r) < 0)
                        return -1;
                if (toml_take(r, "]"))
                        return 0;
                if (!toml_take(r, ","))
                        return toml_bad(r, "a list without its end");
        }
}

static int take_pair(struct reader *r, const struct path *table) {
        struct path path = *table;
        if (take_key(r, &path) < 0)
                return -1;
        if (!toml_take(r, "="))
                return toml_bad(r, "a key without '='");
        toml_skip_blanks(r);
        return take_value(r, &path);
}

static int take_inline_table(struct reader *r, const struct path *path) {
        toml_skip_blanks(r);
        if (toml_take(r, "}"))
                return 0;
        for (;;) {
                if (take_pair(r, path) < 0)
                        return -1;
                toml_skip_blanks(r);
                if (toml_take(r, "}"))
                        return 0;
                if (!toml_take(r, ","))
                        return toml_bad(r, "a table without its end");
        }
}

/* A number, a date or a time. */
static int skip_scalar(struct reader *r) {
        const char *begin = r->p;
        while (is_bare(at(r, 0)) || (at(r, 0) && strchr("+.:", at(r, 0))))
                r->p++;
        /* There may be a blank between a date and its time. */
        if (r->p - begin == 10 && begin[4] == '-' && at(r, 0) == ' ' && isdigit((unsigned char)at(r, 1))) {
                r->p++;
                while (isalnum((unsigned char)at(r, 0)) || (at(r, 0) && strchr("+-.:", at(r, 0))))
                        r->p++;
        }
        struct str word = { begin, (size_t)(r->p - begin) };
        if (word.n && strchr("+-", *begin)) {
                word.p++;
                word.n--;
        }
        char first = word.n ? *word.p : '\0'; /* at the end of the text there is no character */
        if (!word.n ||
            (!isdigit((unsigned char)first) && !str_eq(word, STR("inf")) && !str_eq(word, STR("nan"))))
                return toml_bad(r, "a value was expected");
        return 0;
}

static bool take_bool(struct reader *r, bool *ret) {
        const char *begin = r->p;
        *ret = toml_take(r, "true");
        if ((*ret || toml_take(r, "false")) && !is_bare(at(r, 0)))
                return true;
        r->p = begin;
        return false;
}

static int take_string_value(struct reader *r, struct toml_value *ret) {
        struct buf text = BUF_INIT(TOML_TEXT_MAX - 1);
        int r_text = toml_take_text(r, &text);
        if (!text.failed && !memchr(buf_str(&text), '\0', text.n)) {
                ret->kind = TOML_STRING;
                memcpy(ret->text, buf_str(&text), text.n + 1);
        }
        buf_done(&text);
        return r_text;
}

static int take_value(struct reader *r, const struct path *path) {
        struct toml_value other, *value = &other;
        const char *begin = r->p;
        int ret;
        if (!path->list && path->n == r->n_sought && path->same == path->n) {
                value = &r->value;
                if (value->kind != TOML_ABSENT)
                        return toml_bad(r, "the setting occurs twice");
        }
        *value = (struct toml_value){ .kind = TOML_OTHER, .line = r->line };
        if (take_bool(r, &value->truth)) {
                value->kind = TOML_BOOL;
                return 0;
        }
        if (at(r, 0) == '"' || at(r, 0) == '\'')
                return take_string_value(r, value);
        bool list = toml_take(r, "[");
        if (!list && !toml_take(r, "{"))
                return skip_scalar(r);
        if (++r->depth > DEPTH_MAX)
                return toml_bad(r, "values that nest too deep");
        ret = list ? take_list(r) : take_inline_table(r, path);
        r->depth--;
        value->raw = (struct str){ begin, (size_t)(r->p - begin) };
        return ret;
}

/* ---- the document ---- */

/* "[a.b]" or "[[a.b]]" */
static int take_header(struct reader *r, struct path *ret) {
        bool list = toml_take(r, "[[");
        *ret = (struct path){ .list = list };
        if (!list)
                r->p++;
        if (take_key(r, ret) < 0)
                return -1;
        return toml_take(r, list ? "]]" : "]") ? 0 : toml_bad(r, "a table name without its end");
}

static int take_document(struct reader *r) {
        struct path table = { 0 };
        (void)toml_take(r, "\xef\xbb\xbf");
        for (;;) {
                if (skip_lines(r) < 0)
                        return -1;
                if (r->p == r->end)
                        return 0;
                int ret = at(r, 0) == '[' ? take_header(r, &table) : take_pair(r, &table);
                if (ret < 0)
                        return -1;
                toml_skip_blanks(r);
                if (skip_comment(r) < 0)
                        return -1;
                if (r->p < r->end && !take_newline(r))
                        return toml_bad(r, "text after a value");
        }
}

int toml_find(struct str text, const char *const *path, struct toml_value *ret, struct err *e) {
        struct reader r = { .p = text.p, .end = text.p + text.n, .line = 1, .sought = path, .e = e };
        while (path[r.n_sought])
                r.n_sought++;
        if (take_document(&r) < 0)
                return -1;
        *ret = r.value;
        return 0;
}

int toml_bool(struct str text, const char *table, const char *key, bool *ret_there, bool *ret,
              struct err *e) {
        const char *const path[] = { table, key, NULL };
        struct toml_value v;
        if (toml_find(text, path, &v, e) < 0)
                return -1;
        if (v.kind != TOML_ABSENT && v.kind != TOML_BOOL)
                return err_set(e, ERR_INVALID, 0, "line %u: the setting is neither true nor false", v.line);
        *ret_there = v.kind == TOML_BOOL;
        *ret = v.truth;
        return 0;
}
