/* SPDX-License-Identifier: Apache-2.0 */
/* str: provides views of bytes (struct str), growing text buffers (struct buf), and small string tests. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes without a terminating NUL. */
struct str {
        const char *p;
        size_t n;
};

#define STR(lit) ((struct str){ (lit), sizeof(lit) - 1 })
struct str str_from(const char *s); /* NULL gives an empty str */
bool str_eq(struct str a, struct str b);
struct str str_trim(struct str s); /* without white space at both ends */
/* Returns whether `field` is in a list such as "a, b,c". White space around the fields is ignored. */
bool str_lists(const char *list, const char *field);
bool str_next_line(struct str *rest,
                   struct str *ret_line); /* cuts the next line off *rest, without its \n; false at the end */
bool str_next_field(struct str *rest, char sep,
                    struct str *ret_field);  /* cuts at sep; false when *rest is exhausted */
/* Writes a time, in seconds since 1970, as RFC 3339 text in UTC. */
void str_time(int64_t unix_s, char ret[static 32]);
bool str_to_i64(struct str s, int64_t *ret); /* the whole string must be decimal, without white space */
bool str_to_bool(struct str s, bool *ret);   /* accepts the spellings of Go's strconv.ParseBool */

/* NULL equals only NULL. */
static inline bool streq(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}
static inline bool str_starts(const char *s, const char *prefix) {
        return s && strncmp(s, prefix, strlen(prefix)) == 0;
}
bool str_ends(const char *s, const char *suffix);
static inline const char *str_or(const char *s, const char *otherwise) {
        return s && *s ? s : otherwise;
}

/* Returns the length in bytes of the UTF-8 character at the beginning of s; 0 if it is invalid or incomplete.
 * Overlong forms, surrogates and values beyond U+10FFFF are invalid (RFC 3629). */
size_t str_utf8_char(struct str s);
/* Returns how many bytes of s, at most n, can be kept without cutting a character. */
size_t str_utf8_cut(struct str s, size_t n);

/* Returns whether s is exactly a UUID in canonical text form, lower or upper case, as Kubernetes uses for
 * UIDs. */
bool str_is_uuid(const char *s);
/* Return whether Kubernetes accepts s as a namespace (label: up to 63 characters), or as the name of most
 * objects (subdomain: up to 253). False for NULL. */
bool str_is_dns_label(const char *s);
bool str_is_dns_subdomain(const char *s);

/* A growing text. `limit` is its largest size. A write that exceeds the limit or fails sets `failed`, and all
 * later writes then do nothing, so one check at the end is enough. The text ends with a NUL byte if p is not
 * NULL. */
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
void buf_clear(struct buf *b);             /* empties the buf, keeps the memory, clears failed */
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
const char *buf_str(const struct buf *b);  /* "" when empty */
char *buf_steal(struct buf *b);            /* the caller frees it; never NULL; the buf is empty afterwards */

/* Returns the 64-bit FNV-1a hash. */
uint64_t str_fnv64(const void *p, size_t n);
