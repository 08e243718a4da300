/* SPDX-License-Identifier: Apache-2.0 */
/* json: decodes JSON into structs, as described by tables of fields (with yyjson), and writes JSON.
 *
 * Each type is a struct with a table of its fields. The same table decodes, encodes, copies and compares the
 * struct. The decoder reports errors with the path of the field:
 * "status.allocation.devices.results[1].request: not a string". It copies strings and lists into the arena,
 * so the document can be freed at once. Members that the table does not name are ignored; jd_decode_strict()
 * rejects them.
 *
 *     struct result { const char *request, *driver; };
 *     static const struct jd_field f_result[] = {
 *             JD_STR(struct result, "request", request, .required = true),
 *             JD_STR(struct result, "driver", driver), JD_END };
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum jd_type {
        JD_T_STR,    /* const char * ; absent or null leaves NULL */
        JD_T_TEXT,   /* char[size]; a text that does not fit is an error */
        JD_T_BOOL,   /* bool */
        JD_T_INT,    /* int64_t */
        JD_T_OBJ,    /* embedded struct (`sub` table) */
        JD_T_INLINE, /* the same, but its members are members of this object */
        JD_T_OPTOBJ, /* struct * (`sub` table), NULL when absent */
        JD_T_LIST,   /* struct * + size_t count (`sub` table, `size`), or with jd_f_text as the table
                        const char ** + size_t count, and NULL after the last */
        JD_T_MAP, /* struct jd_pair * + size_t count: an object whose values are strings, in document order */
        JD_T_RAW, /* struct str: the value as compact JSON text, key order kept */
        JD_T_TIME, /* int64_t seconds since 1970 from RFC 3339 text; 0 when absent or null */
};

struct jd_pair {
        const char *key, *value;
};

struct jd_field {
        const char *name; /* or a path: "metadata>labels" is the member "labels" of "metadata", if "metadata"
                             exists; not for strict decoding */
        enum jd_type type;
        size_t off, count_off;      /* offsets of the member and of its size_t count */
        const struct jd_field *sub; /* table of the element or embedded struct */
        size_t size;                /* size of one element */
        bool required;
        bool not_compared; /* jd_equal() ignores the member */
        bool omit_empty;   /* absent and empty mean the same: jd_encode() leaves out "", 0, false, and lists
                              and maps without elements */
};

extern const struct jd_field jd_f_text[], jd_f_pair[]; /* tables for the elements of JD_STRS and JD_MAP */

#define JD_FIELD_(t, n, kind, m, ...)                                                                        \
        { .name = (n), .type = (kind), .off = offsetof(t, m), __VA_ARGS__ }
#define JD_STR(t, n, m, ...) JD_FIELD_(t, n, JD_T_STR, m, __VA_ARGS__)
#define JD_TEXT(t, n, m, ...) JD_FIELD_(t, n, JD_T_TEXT, m, .size = sizeof(((t *)0)->m), __VA_ARGS__)
#define JD_BOOL(t, n, m, ...) JD_FIELD_(t, n, JD_T_BOOL, m, __VA_ARGS__)
#define JD_INT(t, n, m, ...) JD_FIELD_(t, n, JD_T_INT, m, __VA_ARGS__)
#define JD_TIME(t, n, m, ...) JD_FIELD_(t, n, JD_T_TIME, m, __VA_ARGS__)
#define JD_RAW(t, n, m, ...) JD_FIELD_(t, n, JD_T_RAW, m, __VA_ARGS__)
#define JD_OBJ(t, n, m, table, ...) JD_FIELD_(t, n, JD_T_OBJ, m, .sub = (table), __VA_ARGS__)
#define JD_INLINE(t, m, table, ...) JD_FIELD_(t, "", JD_T_INLINE, m, .sub = (table), __VA_ARGS__)
#define JD_OPTOBJ(t, n, m, st, table, ...)                                                                   \
        JD_FIELD_(t, n, JD_T_OPTOBJ, m, .sub = (table), .size = sizeof(st), __VA_ARGS__)
/* the member with the count is named n_<member> */
#define JD_COUNTED_(t, n, kind, m, ...) JD_FIELD_(t, n, kind, m, .count_off = offsetof(t, n_##m), __VA_ARGS__)
#define JD_LIST(t, n, m, st, table, ...)                                                                     \
        JD_COUNTED_(t, n, JD_T_LIST, m, .sub = (table), .size = sizeof(st), __VA_ARGS__)
#define JD_STRS(t, n, m, ...)                                                                                \
        JD_COUNTED_(t, n, JD_T_LIST, m, .sub = jd_f_text, .size = sizeof(char *), __VA_ARGS__)
#define JD_MAP(t, n, m, ...)                                                                                 \
        JD_COUNTED_(t, n, JD_T_MAP, m, .sub = jd_f_pair, .size = sizeof(struct jd_pair), __VA_ARGS__)
#define JD_END                                                                                               \
        { .name = NULL }

/* Parses a text into a document, which the caller frees. Returns NULL with ERR_INVALID ("not JSON: ... at
 * byte 7"), or with ERR_RETRY if memory is out; then the text may still be valid. */
yyjson_doc *json_parse(struct str text, yyjson_read_flag flags, struct err *e);

/* Fills *out (zeroed by the caller) from an object. `where` is put in front of the path in errors; "" for the
 * root. */
int jd_decode(const struct jd_field *fields, yyjson_val *v, const char *where, struct arena *a, void *out,
              struct err *e);

/* Parses a text and decodes it like jd_decode(). ERR_INVALID, with the position, also if the text is not JSON
 * or nests deeper than 64 levels. */
int jd_decode_text(const struct jd_field *fields, struct str text, const char *where, struct arena *a,
                   void *out, struct err *e);

/* Like jd_decode_text() at the root. ERR_INVALID also if a member is not in the table (strict decoding error:
 * unknown field "a.x") or a key occurs twice. */
int jd_decode_strict(const struct jd_field *fields, struct str text, struct arena *a, void *out,
                     struct err *e);

/* Copies only the members that the table names into *to (zeroed by the caller), and everything that these
 * members point to into the arena. If two neighbours in a list have the same string, it is stored once. */
void jd_copy(const struct jd_field *fields, const void *from, struct arena *a, void *to);

/* Compares the members that the table names, except those with not_compared. Strings, lists and optional
 * objects are compared by content, lists and maps in their order. An optional object that is NULL equals only
 * NULL, and so does a string, unless it is `required` or has omit_empty: then NULL equals "". An absent list
 * or map equals an empty one. */
bool jd_equal(const struct jd_field *fields, const void *a, const void *b);
/* Compares two lists of structs of `size` bytes, with n_a and n_b elements. */
bool jd_equal_list(const struct jd_field *fields, const void *a, size_t n_a, const void *b, size_t n_b,
                   size_t size);

/* Converts RFC 3339 text to seconds since 1970. Returns false if the text is not valid. */
bool jd_time(const char *s, int64_t *ret);

/* Returns the value of a key in a JD_MAP, or NULL. */
const char *jd_pair_get(const struct jd_pair *p, size_t n, const char *key);

/* Writing: the caller calls the functions in document order; they add commas and escapes. `key` is NULL
 * inside arrays and at the root. With go_escape, they also escape < > & U+2028 U+2029, as Go's encoding/json
 * does (needed where a checksum covers the text). */
struct jw {
        struct buf *out;
        bool go_escape;
        uint32_t depth;
        uint64_t not_first; /* one bit for each level: a comma is needed before the next member */
};

#define JW(b) ((struct jw){ .out = (b) })
void jw_obj(struct jw *w, const char *key);
void jw_arr(struct jw *w, const char *key);
void jw_end_obj(struct jw *w);
void jw_end_arr(struct jw *w);
void jw_str(struct jw *w, const char *key, const char *val); /* NULL writes null */
void jw_strn(struct jw *w, const char *key, struct str val);
void jw_strf(struct jw *w, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void jw_int(struct jw *w, const char *key, int64_t val);
void jw_bool(struct jw *w, const char *key, bool val);
void jw_null(struct jw *w, const char *key);
void jw_raw(struct jw *w, const char *key, struct str json); /* valid JSON text, written unchanged */
void jw_map(struct jw *w, const char *key, const struct jd_pair *p, size_t n);
void jw_time(struct jw *w, const char *key, int64_t unix_s); /* RFC 3339, UTC, seconds */
void jw_time_micro(struct jw *w, const char *key,
                   int64_t unix_us); /* RFC 3339 with 6 decimals: the Lease's MicroTime */

/* Writes a struct as an object, with the members in the order of the table, so that jd_decode() returns an
 * equal struct. A string or optional object that is NULL, an empty JD_RAW and the time 0 are left out, but a
 * string that is `required` is written as "". The table must have no paths. */
void jd_encode(const struct jd_field *fields, const void *from, struct jw *w, const char *key);
/* Writes a list of `n` structs of `size` bytes. */
void jd_encode_list(const struct jd_field *fields, const void *list, size_t n, size_t size, struct jw *w,
                    const char *key);
