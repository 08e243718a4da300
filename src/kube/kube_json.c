/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_json.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"

enum { ESCAPE = 6 }; /* length of \uXXXX */

/* The code unit of the escape \uXXXX at the beginning of s; -1: there is none. */
static int code_unit(struct str s) {
        int ret = 0;
        if (s.n < ESCAPE || s.p[0] != '\\' || s.p[1] != 'u')
                return -1;
        for (size_t i = 2; i < ESCAPE; i++) {
                char c = s.p[i];
                if (c >= '0' && c <= '9')
                        ret = ret * 16 + (c - '0');
                else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
                        ret = ret * 16 + ((c | 0x20) - 'a' + 10);
                else
                        return -1;
        }
        return ret;
}

static bool is_high(int unit) {
        return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit) {
        return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Replaces the invalid escape or character at the beginning of p, which is in a string. Returns the length of
 * what is there now. */
static size_t repair(char *p, size_t n) {
        size_t length = str_utf8_char((struct str){ p, n });
        if (!length)
                *p = '?';
        if (*p != '\\')
                return length ? length : 1;
        int unit = code_unit((struct str){ p, n });
        if (unit < 0)
                return n > 1 ? 2 : 1;
        if (is_high(unit) && is_low(code_unit((struct str){ p + ESCAPE, n - ESCAPE })))
                return 2 * (size_t)ESCAPE;
        if (is_high(unit) || is_low(unit))
                memcpy(p + 2, "fffd", 4);
        return ESCAPE;
}

yyjson_doc *kube_json_read(struct str text, struct err *e) {
        yyjson_doc *doc = json_parse(text, YYJSON_READ_NOFLAG, e);
        if (doc || e->kind != ERR_INVALID || !text.n)
                return doc;
        _cleanup_(freep) char *copy = xmalloc(text.n);
        memcpy(copy, text.p, text.n);
        bool in_string = false;
        for (size_t i = 0; i < text.n;) {
                if (copy[i] == '"')
                        in_string = !in_string;
                i += in_string && copy[i] != '"' ? repair(copy + i, text.n - i) : 1;
        }
        return json_parse((struct str){ copy, text.n }, YYJSON_READ_NOFLAG, e);
}
