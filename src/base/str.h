/* SPDX-License-Identifier: Apache-2.0 */
/* str: looking at bytes (struct str), building text (struct buf), and small string tests. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes owned by somebody else, not terminated. */
struct str {
        const char *p;
        size_t n;
};

#define STR(lit) ((struct str){ (lit), sizeof(lit) - 1 })
struct str str_from(const char *s); /* NULL gives an empty str */
bool str_eq(struct str a, struct str b);
struct str str_trim(struct str s); /* without white space at both ends */
/* Is it in "a, b,c"? White space around the fields does not count. */
bool str_lists(const char *list, const char *field);
bool str_next_line(struct str *rest,
                   struct str *ret_line); /* cuts the next line off *rest, without its \n; false at the end */
bool str_next_field(struct str *rest, char sep,
                    struct str *ret_field);  /* cuts at sep; false when *rest is exhausted */
bool str_to_i64(struct str s, int64_t *ret); /* whole string, decimal, no white space */
bool str_to_bool(struct str s, bool *ret);   /* in the spellings that Go's strconv.ParseBool takes */

bool streq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
static inline const char *str_or(const char *s, const char *otherwise) {
        return s && *s ? s : otherwise;
}

/* Bytes of the character of valid UTF-8 at the beginning of s, 0 when there is none or its end is missing:
 * overlong forms, surrogates and what is beyond U+10FFFF are none (RFC 3629). */
size_t str_utf8_char(struct str s);
/* How many of the bytes of s, at most n, can be kept without cutting inside a character. */
size_t str_utf8_cut(struct str s, size_t n);

/* A UUID in canonical lower or upper case text form, and nothing else: what Kubernetes uses as UID. */
bool str_is_uuid(const char *s);
/* What Kubernetes accepts as a namespace (up to 63 characters), and as the name of most objects (up to 253).
 * NULL is neither. */
bool str_is_dns_label(const char *s);
bool str_is_dns_subdomain(const char *s);

/* Text under construction. `limit` is the largest size it may reach; a write beyond it, or any earlier
 * failure, makes `failed` true and all later writes no-ops, so it is checked once at the end. p is always
 * terminated when not NULL. */
struct buf {
        char *p;
        size_t n, cap, limit;
        bool failed;
};

#define BUF_INIT(max) ((struct buf){ .limit = (max) })
void buf_done(struct buf *b); /* frees; the buf is empty and usable again */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_clear(struct buf *b);             /* empty, keeps the memory, clears failed */
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
const char *buf_str(const struct buf *b);  /* "" when empty */
char *buf_steal(struct buf *b);            /* caller frees; never NULL; buf is empty after */

/* FNV-1a, 64 bit. */
uint64_t str_fnv64(const void *p, size_t n);
