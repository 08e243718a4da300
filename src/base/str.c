/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

struct str str_from(const char *s) {
        return s ? (struct str){ s, strlen(s) } : (struct str){ "", 0 };
}

bool str_eq(struct str a, struct str b) {
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool is_space(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s) {
        while (s.n && is_space(s.p[0]))
                s.p++, s.n--;
        while (s.n && is_space(s.p[s.n - 1]))
                s.n--;
        return s;
}

bool str_next_field(struct str *rest, char sep, struct str *ret_field) {
        if (!rest->p)
                return false;
        const char *end = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
        if (!end) {
                *ret_field = *rest;
                *rest = (struct str){ NULL, 0 };
                return true;
        }
        *ret_field = (struct str){ rest->p, (size_t)(end - rest->p) };
        rest->n -= ret_field->n + 1;
        rest->p = end + 1;
        return true;
}

bool str_next_line(struct str *rest, struct str *ret_line) {
        if (!rest->n)
                return false;
        const char *end = memchr(rest->p, '\n', rest->n);
        size_t n = end ? (size_t)(end - rest->p) : rest->n;
        *ret_line = (struct str){ rest->p, n };
        n += end != NULL;
        *rest = (struct str){ rest->p + n, rest->n - n };
        return true;
}

bool str_to_bool(struct str s, bool *ret) {
        static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
        static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };
        for (size_t i = 0; i < 6; i++)
                if (str_eq(s, str_from(yes[i])) || str_eq(s, str_from(no[i]))) {
                        *ret = str_eq(s, str_from(yes[i]));
                        return true;
                }
        return false;
}

void str_time(int64_t unix_s, char ret[static 32]) {
        time_t t = (time_t)unix_s;
        struct tm tm;

        *ret = '\0';
        if (gmtime_r(&t, &tm))
                strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

bool str_to_i64(struct str s, int64_t *ret) {
        bool negative = s.n && s.p[0] == '-';
        uint64_t v = 0;
        size_t i = negative ? 1 : 0;
        if (i == s.n)
                return false;
        for (; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                uint64_t digit = (uint64_t)(s.p[i] - '0');
                if (v > ((uint64_t)INT64_MAX - digit) / 10)
                        return false;
                v = v * 10 + digit;
        }
        *ret = negative ? -(int64_t)v : (int64_t)v;
        return true;
}

bool str_ends(const char *s, const char *suffix) {
        size_t n = s ? strlen(s) : 0, k = strlen(suffix);
        return s && n >= k && memcmp(s + n - k, suffix, k) == 0;
}

bool str_is_uuid(const char *s) {
        if (!s)
                return false;
        for (size_t i = 0; i < 36; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                char c = s[i];
                bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
                if (dash ? c != '-' : !hex)
                        return false;
        }
        return s[36] == '\0';
}

static bool is_lower_or_digit(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *p, size_t n) {
        if (n == 0 || !is_lower_or_digit(p[0]) || !is_lower_or_digit(p[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++) {
                if (!is_lower_or_digit(p[i]) && p[i] != '-')
                        return false;
        }
        return true;
}

bool str_is_dns_label(const char *s) {
        size_t n = s ? strlen(s) : 0;
        return n <= 63 && is_label(s, n);
}

bool str_is_dns_subdomain(const char *s) {
        if (!s || strlen(s) > 253)
                return false;
        for (;;) {
                size_t n = strcspn(s, ".");
                if (!is_label(s, n))
                        return false;
                if (!s[n])
                        return true;
                s += n + 1;
        }
}

size_t str_utf8_char(struct str s) {
        uint32_t cp = s.n ? (unsigned char)s.p[0] : 0x80;
        size_t n;
        if (cp < 0x80)
                return 1;
        if (cp >= 0xc2 && cp <= 0xdf) {
                n = 2;
                cp &= 0x1f;
        } else if ((cp & 0xf0) == 0xe0) {
                n = 3;
                cp &= 0x0f;
        } else if (cp >= 0xf0 && cp <= 0xf4) {
                n = 4;
                cp &= 0x07;
        } else {
                return 0;
        }
        if (n > s.n)
                return 0;
        for (size_t i = 1; i < n; i++) {
                unsigned char c = (unsigned char)s.p[i];
                if ((c & 0xc0) != 0x80)
                        return 0;
                cp = cp << 6 | (c & 0x3fU);
        }
        bool valid = n == 2 || (n == 3 && cp >= 0x800 && (cp < 0xd800 || cp > 0xdfff)) ||
                     (n == 4 && cp >= 0x10000 && cp <= 0x10ffff);
        return valid ? n : 0;
}

size_t str_utf8_cut(struct str s, size_t n) {
        if (n >= s.n)
                return s.n;
        /* A character has at most three bytes after its first one. */
        size_t first = n;
        while (first > 0 && n - first < 3 && ((unsigned char)s.p[first] & 0xc0) == 0x80)
                first--;
        return str_utf8_char((struct str){ s.p + first, s.n - first }) > n - first ? first : n;
}

void buf_done(struct buf *b) {
        free(b->p);
        *b = BUF_INIT(b->limit);
}

static void buf_grow(struct buf *b, size_t n) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < b->n + n + 1)
                cap *= 2;
        b->p = xrealloc(b->p, cap);
        b->cap = cap;
}

/* Room for n more bytes and the terminator. */
static inline bool buf_reserve(struct buf *b, size_t n) {
        if (b->failed || n > b->limit || b->n > b->limit - n) {
                b->failed = true;
                return false;
        }
        if (b->n + n + 1 > b->cap)
                buf_grow(b, n);
        return true;
}

void buf_add(struct buf *b, const void *p, size_t n) {
        if (!buf_reserve(b, n))
                return;
        if (n)
                memcpy(b->p + b->n, p, n);
        b->n += n;
        b->p[b->n] = '\0';
}

void buf_adds(struct buf *b, const char *s) {
        buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c) {
        if (!buf_reserve(b, 1))
                return;
        b->p[b->n++] = c;
        b->p[b->n] = '\0';
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap) {
        va_list again;
        size_t room = b->p ? b->cap - b->n : 0; /* usually enough */
        va_copy(again, ap);
        int n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
        if (n < 0)
                b->failed = true;
        else if (buf_reserve(b, (size_t)n)) {
                if ((size_t)n >= room)
                        vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
                b->n += (size_t)n;
        }
        if (b->p)
                b->p[b->n] = '\0'; /* also if the text did not fit */
        va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(b, fmt, ap);
        va_end(ap);
}

void buf_clear(struct buf *b) {
        b->n = 0;
        b->failed = false;
        if (b->p)
                b->p[0] = '\0';
}

void buf_consume(struct buf *b, size_t n) {
        size_t left = n < b->n ? b->n - n : 0;
        if (!b->p)
                return;
        memmove(b->p, b->p + b->n - left, left + 1);
        b->n = left;
}

const char *buf_str(const struct buf *b) {
        return b->p ? b->p : "";
}

char *buf_steal(struct buf *b) {
        char *p = b->p ? b->p : xstrdup("");
        *b = BUF_INIT(b->limit);
        return p;
}

uint64_t str_fnv64(const void *p, size_t n) {
        const unsigned char *c = p;
        uint64_t h = 14695981039346656037U;
        for (size_t i = 0; i < n; i++)
                h = (h ^ c[i]) * 1099511628211U;
        return h;
}

bool str_lists(const char *list, const char *field) {
        struct str rest = str_from(list), part;
        while (str_next_field(&rest, ',', &part))
                if (str_eq(str_trim(part), str_from(field)))
                        return true;
        return false;
}
