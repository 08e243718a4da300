/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/stderr.h"

enum { JD_MAX_DEPTH = 64, JD_MAX_PATH = 256 };

/* The path to the present value, as a chain on the stack. It becomes text only for an error. */
struct where {
        const struct where *up;
        const char *name; /* member, or NULL: list element */
        size_t i;         /* bytes of the name, or number of the element */
};

static void where_add(const struct where *w, struct buf *b) {
        if (!w)
                return;
        where_add(w->up, b);
        if (!w->name)
                buf_addf(b, "[%zu]", w->i);
        else if (w->i)
                buf_addf(b, "%s%.*s", b->n ? "." : "", (int)w->i, w->name);
}

static int json_bad(const struct where *w, struct err *e, const char *what) {
        struct buf b = BUF_INIT(JD_MAX_PATH);
        where_add(w, &b);
        err_set(e, ERR_INVALID, 0, "%s%s%s", buf_str(&b), b.n ? ": " : "", what);
        buf_done(&b);
        return -1;
}

/* The same for all values of a document. */
struct decoding {
        bool strict;
        struct arena *a;
        struct err *e;
};

static int decode_element(const struct decoding *d, const struct jd_field *fields, yyjson_val *v,
                          const struct where *w, char *out);

static bool digits(const char *s, size_t n, int *ret) {
        *ret = 0;
        for (size_t i = 0; i < n; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return false;
                *ret = *ret * 10 + (s[i] - '0');
        }
        return true;
}

/* RFC 3339 to seconds since 1970. */
bool jd_time(const char *s, int64_t *ret) {
        int y, mo, d, h, mi, sec, oh = 0, om = 0;
        if (strlen(s) < 20 || !digits(s, 4, &y) || s[4] != '-' || !digits(s + 5, 2, &mo) || s[7] != '-' ||
            !digits(s + 8, 2, &d) || (s[10] != 'T' && s[10] != 't') || !digits(s + 11, 2, &h) ||
            s[13] != ':' || !digits(s + 14, 2, &mi) || s[16] != ':' || !digits(s + 17, 2, &sec))
                return false;
        const char *p = s + 19;
        if (*p == '.')
                for (p++; *p >= '0' && *p <= '9'; p++)
                        ;
        int sign = *p == '-' ? -1 : 1;
        if (*p == '+' || *p == '-') {
                if (strlen(p) != 6 || !digits(p + 1, 2, &oh) || p[3] != ':' || !digits(p + 4, 2, &om))
                        return false;
        } else if ((*p != 'Z' && *p != 'z') || p[1]) {
                return false;
        }
        struct tm tm = {
                .tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi, .tm_sec = sec
        };
        *ret = (int64_t)timegm(&tm) - sign * (oh * 3600 + om * 60);
        return true;
}

static int decode_raw(yyjson_val *v, const struct where *w, struct arena *a, struct str *out, struct err *e) {
        size_t n;
        char *text = yyjson_val_write(v, YYJSON_WRITE_NOFLAG, &n);
        if (!text)
                return json_bad(w, e, "cannot be kept as text");
        out->p = arena_strndup(a, text, n);
        out->n = n;
        free(text);
        return 0;
}

static int decode_map(yyjson_val *v, const struct where *w, struct arena *a, struct jd_pair **out,
                      size_t *count, struct err *e) {
        size_t i, max;
        yyjson_val *key, *val;
        if (!yyjson_is_obj(v))
                return json_bad(w, e, "not an object");
        struct jd_pair *list = arena_alloc(a, (yyjson_obj_size(v) + 1) * sizeof *list);
        yyjson_obj_foreach (v, i, max, key, val) {
                struct where at = { w, yyjson_get_str(key), yyjson_get_len(key) };
                if (!yyjson_is_str(val))
                        return json_bad(&at, e, "not a string");
                list[i].key = arena_strndup(a, yyjson_get_str(key), yyjson_get_len(key));
                list[i].value = arena_strndup(a, yyjson_get_str(val), yyjson_get_len(val));
        }
        *out = list;
        *count = yyjson_obj_size(v);
        return 0;
}

static int decode_list(const struct decoding *d, const struct jd_field *f, yyjson_val *v,
                       const struct where *w, char *out) {
        size_t i, max;
        yyjson_val *item;
        if (!yyjson_is_arr(v))
                return json_bad(w, d->e, "not a list");
        char *list = arena_alloc(d->a, (yyjson_arr_size(v) + 1) * f->size);
        yyjson_arr_foreach (v, i, max, item) {
                struct where at = { w, NULL, i };
                if (decode_element(d, f->sub, item, &at, list + i * f->size) < 0)
                        return -1;
        }
        *(void **)(void *)(out + f->off) = list;
        *(size_t *)(void *)(out + f->count_off) = yyjson_arr_size(v);
        return 0;
}

static bool has_nul(yyjson_val *text) {
        return strlen(yyjson_get_str(text)) != yyjson_get_len(text);
}

static int decode_value(const struct decoding *d, const struct jd_field *f, yyjson_val *v,
                        const struct where *w, char *out) {
        struct arena *a = d->a;
        struct err *e = d->e;
        void *to = out + f->off;
        size_t *count = (size_t *)(void *)(out + f->count_off);
        if (d->strict && yyjson_is_str(v) && has_nul(v))
                return json_bad(w, e, "a string with a NUL character");
        switch (f->type) {
        case JD_T_STR:
                if (!yyjson_is_str(v))
                        return json_bad(w, e, "not a string");
                *(const char **)to = arena_strndup(a, yyjson_get_str(v), yyjson_get_len(v));
                return 0;
        case JD_T_TEXT:
                if (!yyjson_is_str(v) || yyjson_get_len(v) >= f->size)
                        return json_bad(w, e, yyjson_is_str(v) ? "too long" : "not a string");
                memcpy(to, yyjson_get_str(v), yyjson_get_len(v) + 1);
                return 0;
        case JD_T_BOOL:
                if (!yyjson_is_bool(v))
                        return json_bad(w, e, "not a boolean");
                *(bool *)to = yyjson_get_bool(v);
                return 0;
        case JD_T_INT:
                if (!yyjson_is_int(v) || (yyjson_is_uint(v) && yyjson_get_uint(v) > INT64_MAX))
                        return json_bad(w, e, "not an integer");
                *(int64_t *)to = yyjson_get_sint(v);
                return 0;
        case JD_T_TIME:
                if (!yyjson_is_str(v) || !jd_time(yyjson_get_str(v), to))
                        return json_bad(w, e, "not a time");
                return 0;
        case JD_T_OBJ:
        case JD_T_INLINE:
                return decode_element(d, f->sub, v, w, to);
        case JD_T_OPTOBJ:
                *(void **)to = arena_alloc(a, f->size);
                return decode_element(d, f->sub, v, w, *(void **)to);
        case JD_T_LIST:
                return decode_list(d, f, v, w, out);
        case JD_T_MAP:
                return decode_map(v, w, a, to, count, e);
        case JD_T_RAW:
                return decode_raw(v, w, a, to, e);
        }
        return json_bad(w, e, "of a type unknown to its table");
}

static bool known(const struct jd_field *fields, const char *name) {
        for (const struct jd_field *f = fields; f->name; f++)
                if (f->type == JD_T_INLINE ? known(f->sub, name) : strcmp(f->name, name) == 0)
                        return true;
        return false;
}

/* The same text as Kubernetes, which users and tests of the Go driver know. */
static int not_strict(const struct where *w, const char *what, const char *name, struct err *e) {
        struct where at = { w, name, strlen(name) };
        struct buf b = BUF_INIT(4096);
        where_add(&at, &b);
        err_set(e, ERR_INVALID, 0, "strict decoding error: %s field \"%.100s\"", what, buf_str(&b));
        buf_done(&b);
        return -1;
}

static int check_strict(const struct jd_field *fields, yyjson_val *v, const struct where *w, struct err *e) {
        size_t i, max, j, max2;
        yyjson_val *key, *val, *other, *ignored;
        yyjson_obj_foreach (v, i, max, key, val) {
                const char *name = yyjson_get_str(key);
                if (has_nul(key) || !known(fields, name))
                        return not_strict(w, "unknown", name, e);
                yyjson_obj_foreach (v, j, max2, other, ignored)
                        if (j < i && yyjson_equals_strn(other, name, yyjson_get_len(key)))
                                return not_strict(w, "duplicate", name, e);
        }
        return 0;
}

static int decode_member(const struct decoding *d, const struct jd_field *f, const char *path, yyjson_val *v,
                         const struct where *w, void *out) {
        struct where at = { w, path, strcspn(path, ">") };
        yyjson_val *m = yyjson_obj_getn(v, path, at.i);
        bool last = !path[at.i];
        if (!m || yyjson_is_null(m))
                return last && f->required ? json_bad(&at, d->e, "missing") : 0;
        if (last)
                return decode_value(d, f, m, &at, out);
        if (!yyjson_is_obj(m))
                return json_bad(&at, d->e, "not an object");
        return decode_member(d, f, path + at.i + 1, m, &at, out);
}

static int decode_members(const struct decoding *d, const struct jd_field *fields, yyjson_val *v,
                          const struct where *w, char *out) {
        for (const struct jd_field *f = fields; f->name; f++)
                if ((f->type == JD_T_INLINE ? decode_members(d, f->sub, v, w, out + f->off)
                                            : decode_member(d, f, f->name, v, w, out)) < 0)
                        return -1;
        return 0;
}

static int decode_obj(const struct decoding *d, const struct jd_field *fields, yyjson_val *v,
                      const struct where *w, void *out) {
        if (!yyjson_is_obj(v))
                return json_bad(w, d->e, "not an object");
        if (d->strict && check_strict(fields, v, w, d->e) < 0)
                return -1;
        return decode_members(d, fields, v, w, out);
}

static int decode_element(const struct decoding *d, const struct jd_field *fields, yyjson_val *v,
                          const struct where *w, char *out) {
        return fields == jd_f_text ? decode_value(d, fields, v, w, out) : decode_obj(d, fields, v, w, out);
}

int jd_decode(const struct jd_field *fields, yyjson_val *v, const char *where, struct arena *a, void *out,
              struct err *e) {
        struct where root = { NULL, where, strlen(where) };
        return decode_obj(&(struct decoding){ .a = a, .e = e }, fields, v, &root, out);
}

static const char *copy_str(const char *s, const char *before, struct arena *a) {
        return !s ? NULL : before && strcmp(s, before) == 0 ? before : arena_strdup(a, s);
}

static void copy_obj(const struct jd_field *fields, const char *from, const char *before, struct arena *a,
                     char *to);

const struct jd_field jd_f_text[] = { { .name = "", .type = JD_T_STR }, JD_END };
const struct jd_field jd_f_pair[] = {
        JD_STR(struct jd_pair, "key", key),
        JD_STR(struct jd_pair, "value", value),
        JD_END,
};

static void json_copy_list(const struct jd_field *f, const char *from, struct arena *a, char *to) {
        const char *list = *(const char *const *)(const void *)(from + f->off);
        size_t n = *(const size_t *)(const void *)(from + f->count_off), size = f->size;
        size_t end = f->sub == jd_f_text; /* a NULL after the last one, also in an empty list */
        char *copy = list && n + end ? arena_alloc(a, (n + end) * size) : NULL;
        for (size_t i = 0; i < n; i++)
                copy_obj(f->sub, list + i * size, i ? copy + (i - 1) * size : NULL, a, copy + i * size);
        *(void **)(void *)(to + f->off) = copy;
        *(size_t *)(void *)(to + f->count_off) = n;
}

/* `before`: the copied previous element of the same list, or NULL. */
static void copy_value(const struct jd_field *f, const char *from, const char *before, struct arena *a,
                       char *to) {
        const void *at = from + f->off;
        switch (f->type) {
        case JD_T_STR: /* a member that can come from two places is in the table twice */
                if (!*(const char **)(void *)(to + f->off))
                        *(const char **)(void *)(to + f->off) = copy_str(
                                *(const char *const *)at,
                                before ? *(const char *const *)(const void *)(before + f->off) : NULL, a);
                return;
        case JD_T_TEXT:
                memcpy(to + f->off, at, f->size);
                return;
        case JD_T_BOOL:
                *(bool *)(to + f->off) = *(const bool *)at;
                return;
        case JD_T_INT:
        case JD_T_TIME:
                *(int64_t *)(void *)(to + f->off) = *(const int64_t *)at;
                return;
        case JD_T_OBJ:
        case JD_T_INLINE:
                copy_obj(f->sub, at, before ? before + f->off : NULL, a, to + f->off);
                return;
        case JD_T_OPTOBJ:
                if (!*(const void *const *)at)
                        return;
                *(void **)(void *)(to + f->off) = arena_alloc(a, f->size);
                copy_obj(f->sub, *(const char *const *)at, NULL, a, *(char **)(void *)(to + f->off));
                return;
        case JD_T_LIST:
        case JD_T_MAP:
                json_copy_list(f, from, a, to);
                return;
        case JD_T_RAW: {
                const struct str *raw = at;
                *(struct str *)(void *)(to + f->off) =
                        (struct str){ raw->p ? arena_strndup(a, raw->p, raw->n) : NULL, raw->n };
                return;
        }
        }
}

static void copy_obj(const struct jd_field *fields, const char *from, const char *before, struct arena *a,
                     char *to) {
        for (const struct jd_field *f = fields; f->name; f++)
                copy_value(f, from, before, a, to);
}

void jd_copy(const struct jd_field *fields, const void *from, struct arena *a, void *to) {
        copy_obj(fields, from, NULL, a, to);
}

bool jd_equal_list(const struct jd_field *fields, const void *a, size_t n_a, const void *b, size_t n_b,
                   size_t size) {
        bool equal = n_a == n_b;
        for (size_t i = 0; equal && i < n_a; i++)
                equal = jd_equal(fields, (const char *)a + i * size, (const char *)b + i * size);
        return equal;
}

static bool equal_value(const struct jd_field *f, const char *a, const char *b) {
        const void *x = a + f->off, *y = b + f->off;
        switch (f->type) {
        case JD_T_STR: {
                const char *s = *(const char *const *)x, *t = *(const char *const *)y;
                return f->required || f->omit_empty ? strcmp(str_or(s, ""), str_or(t, "")) == 0 : streq(s, t);
        }
        case JD_T_TEXT:
                return streq(x, y);
        case JD_T_BOOL:
                return *(const bool *)x == *(const bool *)y;
        case JD_T_INT:
        case JD_T_TIME:
                return *(const int64_t *)x == *(const int64_t *)y;
        case JD_T_OBJ:
        case JD_T_INLINE:
                return jd_equal(f->sub, x, y);
        case JD_T_OPTOBJ:
                x = *(const void *const *)x;
                y = *(const void *const *)y;
                return x && y ? jd_equal(f->sub, x, y) : x == y;
        case JD_T_LIST:
        case JD_T_MAP:
                return jd_equal_list(
                        f->sub, *(const void *const *)x, *(const size_t *)(const void *)(a + f->count_off),
                        *(const void *const *)y, *(const size_t *)(const void *)(b + f->count_off), f->size);
        case JD_T_RAW:
                return str_eq(*(const struct str *)x, *(const struct str *)y);
        }
        return false;
}

bool jd_equal(const struct jd_field *fields, const void *a, const void *b) {
        for (const struct jd_field *f = fields; f->name; f++)
                if (!f->not_compared && !equal_value(f, a, b))
                        return false;
        return true;
}

/* yyjson reads without recursion, but writing and our own walk of nested tables must not meet absurd input
 * either. */
static bool too_deep(const char *text, size_t n) {
        int depth = 0;
        bool in_string = false;
        for (size_t i = 0; i < n; i++) {
                char c = text[i];
                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                } else if (c == '"') {
                        in_string = true;
                } else if (c == '{' || c == '[') {
                        if (++depth > JD_MAX_DEPTH)
                                return true;
                } else if (c == '}' || c == ']') {
                        depth--;
                }
        }
        return false;
}

yyjson_doc *json_parse(struct str text, yyjson_read_flag flags, struct err *e) {
        yyjson_read_err why = { 0 };
        /* yyjson wants writable memory, but does not write to it without YYJSON_READ_INSITU. */
        yyjson_doc *doc =
                yyjson_read_opts((char *)(uintptr_t)text.p, text.n, flags & ~YYJSON_READ_INSITU, NULL, &why);
        if (!doc && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
                err_errno(e, ENOMEM, "read JSON");
        else if (!doc)
                err_set(e, ERR_INVALID, 0, "not JSON: %s at byte %zu", str_or(why.msg, "empty"), why.pos);
        return doc;
}

static int decode_text(const struct decoding *d, const struct jd_field *fields, struct str text,
                       const char *where, void *out) {
        if (too_deep(text.p, text.n))
                return err_set(d->e, ERR_INVALID, 0, "%s%sJSON nests deeper than %d", where,
                               *where ? ": " : "", JD_MAX_DEPTH);
        yyjson_doc *doc = json_parse(text, YYJSON_READ_NOFLAG, d->e);
        if (!doc)
                return *where ? err_wrap(d->e, "%s", where) : -1;
        struct where root = { NULL, where, strlen(where) };
        int r = decode_obj(d, fields, yyjson_doc_get_root(doc), &root, out);
        yyjson_doc_free(doc);
        return r;
}

int jd_decode_text(const struct jd_field *fields, struct str text, const char *where, struct arena *a,
                   void *out, struct err *e) {
        return decode_text(&(struct decoding){ .a = a, .e = e }, fields, text, where, out);
}

int jd_decode_strict(const struct jd_field *fields, struct str text, struct arena *a, void *out,
                     struct err *e) {
        return decode_text(&(struct decoding){ true, a, e }, fields, text, "", out);
}

const char *jd_pair_get(const struct jd_pair *p, size_t n, const char *key) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(p[i].key, key) == 0)
                        return p[i].value;
        return NULL;
}

/* U+FFFD, as Go writes it, instead of each byte that is not valid UTF-8: other readers reject such a text,
 * and so does ours. */
#define REPLACEMENT "\xef\xbf\xbd"

/* Which writers escape or check a byte: 1: all, 2: only those that escape as Go does. */
static const unsigned char is_special[256] = {
        [0 ... 0x1f] = 3, ['"'] = 3, ['\\'] = 3, ['<'] = 2, ['>'] = 2, ['&'] = 2, [0x80 ... 0xff] = 3,
};

/* Appends the character at s.p[i], which is not plain. Returns the number of its last byte. */
static size_t add_special(struct jw *w, struct str s, size_t i) {
        static const char special[] = "\"\\\n\r\t\b\f", letter[] = "\"\\nrtbf"; /* the last two: Go only */
        struct buf *b = w->out;
        unsigned char c = (unsigned char)s.p[i];
        const char *at = memchr(special, c, w->go_escape ? 7 : 5);
        if (at) {
                buf_add(b, (const char[]){ '\\', letter[at - special] }, 2);
        } else if (c < 0x80) {
                buf_addf(b, "\\u%04x", c);
        } else if (w->go_escape && c == 0xe2 && i + 2 < s.n && (unsigned char)s.p[i + 1] == 0x80 &&
                   ((unsigned char)s.p[i + 2] | 1) == 0xa9) {
                buf_addf(b, "\\u202%c", (unsigned char)s.p[i + 2] == 0xa8 ? '8' : '9');
                return i + 2;
        } else {
                size_t n = str_utf8_char((struct str){ s.p + i, s.n - i });
                if (n)
                        buf_add(b, s.p + i, n);
                else
                        buf_adds(b, REPLACEMENT);
                return i + (n ? n - 1 : 0);
        }
        return i;
}

static void json_add_escaped(struct jw *w, struct str s) {
        const unsigned char mask = w->go_escape ? 2 : 1;
        struct buf *b = w->out;
        buf_addc(b, '"');
        for (size_t i = 0; i < s.n; i++) {
                size_t plain = i;
                while (plain < s.n && !(is_special[(unsigned char)s.p[plain]] & mask))
                        plain++;
                buf_add(b, s.p + i, plain - i);
                i = plain < s.n ? add_special(w, s, plain) : plain;
        }
        buf_addc(b, '"');
}

static void json_begin(struct jw *w, const char *key) {
        uint64_t bit = UINT64_C(1) << w->depth;
        if (w->not_first & bit)
                buf_addc(w->out, ',');
        w->not_first |= bit;
        if (key) {
                json_add_escaped(w, str_from(key));
                buf_addc(w->out, ':');
        }
}

static void open_level(struct jw *w, const char *key, char c) {
        json_begin(w, key);
        buf_addc(w->out, c);
        BUG_ON(w->depth >= 63);
        w->depth++;
        w->not_first &= ~(UINT64_C(1) << w->depth);
}

static void close_level(struct jw *w, char c) {
        BUG_ON(w->depth == 0);
        w->depth--;
        buf_addc(w->out, c);
}

void jw_obj(struct jw *w, const char *key) {
        open_level(w, key, '{');
}

void jw_arr(struct jw *w, const char *key) {
        open_level(w, key, '[');
}

void jw_end_obj(struct jw *w) {
        close_level(w, '}');
}

void jw_end_arr(struct jw *w) {
        close_level(w, ']');
}

void jw_strn(struct jw *w, const char *key, struct str val) {
        json_begin(w, key);
        json_add_escaped(w, val);
}

void jw_str(struct jw *w, const char *key, const char *val) {
        if (val)
                jw_strn(w, key, str_from(val));
        else
                jw_null(w, key);
}

void jw_strf(struct jw *w, const char *key, const char *fmt, ...) {
        struct buf b = BUF_INIT(w->out->limit);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        w->out->failed |= b.failed;
        jw_strn(w, key, (struct str){ buf_str(&b), b.n });
        buf_done(&b);
}

void jw_int(struct jw *w, const char *key, int64_t val) {
        char digits[24];
        size_t at = sizeof digits;
        uint64_t rest = val < 0 ? -(uint64_t)val : (uint64_t)val;
        do
                digits[--at] = (char)('0' + rest % 10);
        while (rest /= 10);
        if (val < 0)
                digits[--at] = '-';
        json_begin(w, key);
        buf_add(w->out, digits + at, sizeof digits - at);
}

void jw_bool(struct jw *w, const char *key, bool val) {
        json_begin(w, key);
        buf_adds(w->out, val ? "true" : "false");
}

void jw_null(struct jw *w, const char *key) {
        json_begin(w, key);
        buf_adds(w->out, "null");
}

void jw_raw(struct jw *w, const char *key, struct str json) {
        json_begin(w, key);
        buf_add(w->out, json.p, json.n);
}

void jw_map(struct jw *w, const char *key, const struct jd_pair *p, size_t n) {
        jw_obj(w, key);
        for (size_t i = 0; i < n; i++)
                jw_str(w, p[i].key, p[i].value);
        jw_end_obj(w);
}

static char *add_digits(char *to, int n, unsigned value) {
        for (int i = n; i-- > 0; value /= 10)
                to[i] = (char)('0' + value % 10);
        return to + n;
}

static void add_time(struct jw *w, const char *key, int64_t unix_s, int64_t us) {
        char text[64], *to = text;
        struct tm tm;
        time_t t = (time_t)unix_s;
        gmtime_r(&t, &tm);
        json_begin(w, key);
        if (tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
                buf_addf(w->out, "\"%04d-%02d-%02dT%02d:%02d:%02dZ\"", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
                return;
        }
        *to++ = '"';
        to = add_digits(to, 4, (unsigned)tm.tm_year + 1900);
        *to++ = '-';
        to = add_digits(to, 2, (unsigned)tm.tm_mon + 1);
        *to++ = '-';
        to = add_digits(to, 2, (unsigned)tm.tm_mday);
        *to++ = 'T';
        to = add_digits(to, 2, (unsigned)tm.tm_hour);
        *to++ = ':';
        to = add_digits(to, 2, (unsigned)tm.tm_min);
        *to++ = ':';
        to = add_digits(to, 2, (unsigned)tm.tm_sec);
        if (us >= 0) {
                *to++ = '.';
                to = add_digits(to, 6, (unsigned)us);
        }
        *to++ = 'Z';
        *to++ = '"';
        buf_add(w->out, text, (size_t)(to - text));
}

void jw_time(struct jw *w, const char *key, int64_t unix_s) {
        add_time(w, key, unix_s, -1);
}

void jw_time_micro(struct jw *w, const char *key, int64_t unix_us) {
        add_time(w, key, unix_us / 1000000, unix_us % 1000000);
}

static bool left_out(const struct jd_field *f, const char *from) {
        const void *at = from + f->off;
        switch (f->type) {
        case JD_T_STR: {
                const char *s = *(const char *const *)at;
                return s ? f->omit_empty && !*s : !f->required;
        }
        case JD_T_TEXT:
                return f->omit_empty && !*(const char *)at;
        case JD_T_BOOL:
                return f->omit_empty && !*(const bool *)at;
        case JD_T_INT:
                return f->omit_empty && !*(const int64_t *)at;
        case JD_T_TIME:
                return !*(const int64_t *)at;
        case JD_T_OPTOBJ:
                return !*(const void *const *)at;
        case JD_T_RAW:
                return !((const struct str *)at)->n;
        case JD_T_LIST:
        case JD_T_MAP:
                return f->omit_empty && !*(const size_t *)(const void *)(from + f->count_off);
        case JD_T_OBJ:
        case JD_T_INLINE:
                break;
        }
        return false;
}

static void encode_members(const struct jd_field *fields, const char *from, struct jw *w);

static void encode_value(const struct jd_field *f, const char *from, struct jw *w) {
        const void *at = from + f->off;
        const size_t *n = (const size_t *)(const void *)(from + f->count_off);
        switch (f->type) {
        case JD_T_STR:
                jw_str(w, f->name, str_or(*(const char *const *)at, ""));
                return;
        case JD_T_TEXT:
                jw_str(w, f->name, at);
                return;
        case JD_T_BOOL:
                jw_bool(w, f->name, *(const bool *)at);
                return;
        case JD_T_INT:
                jw_int(w, f->name, *(const int64_t *)at);
                return;
        case JD_T_TIME:
                jw_time(w, f->name, *(const int64_t *)at);
                return;
        case JD_T_OBJ:
                jd_encode(f->sub, at, w, f->name);
                return;
        case JD_T_INLINE:
                encode_members(f->sub, at, w);
                return;
        case JD_T_OPTOBJ:
                jd_encode(f->sub, *(const void *const *)at, w, f->name);
                return;
        case JD_T_LIST:
                jd_encode_list(f->sub, *(const void *const *)at, *n, f->size, w, f->name);
                return;
        case JD_T_MAP:
                jw_map(w, f->name, *(const struct jd_pair *const *)at, *n);
                return;
        case JD_T_RAW:
                jw_raw(w, f->name, *(const struct str *)at);
                return;
        }
}

static void encode_members(const struct jd_field *fields, const char *from, struct jw *w) {
        for (const struct jd_field *f = fields; f->name; f++) {
                BUG_ON(strchr(f->name, '>'));
                if (!left_out(f, from))
                        encode_value(f, from, w);
        }
}

void jd_encode(const struct jd_field *fields, const void *from, struct jw *w, const char *key) {
        jw_obj(w, key);
        encode_members(fields, from, w);
        jw_end_obj(w);
}

void jd_encode_list(const struct jd_field *fields, const void *list, size_t n, size_t size, struct jw *w,
                    const char *key) {
        jw_arr(w, key);
        for (size_t i = 0; i < n; i++)
                if (fields == jd_f_text)
                        jw_str(w, NULL, ((const char *const *)list)[i]);
                else
                        jd_encode(fields, (const char *)list + i * size, w, NULL);
        jw_end_arr(w);
}
