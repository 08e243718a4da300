/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Formatted text is cut at its end only beyond TEXT_MAX; a piece of it is rarely longer than `msg`. */
enum { TEXT_MAX = 4096, HEAD = ERR_MSG_SIZE / 3 };

/* Puts the text into e->msg, without its middle when it is too long. */
static void fit(struct err *e, const char *text) {
        static const char gap[] = " ... ";
        struct str s = str_from(text);
        if (s.n < sizeof e->msg) {
                memcpy(e->msg, text, s.n + 1);
                return;
        }
        size_t head = str_utf8_cut(s, HEAD), room = sizeof e->msg - 1 - head - (sizeof gap - 1);
        struct str tail = { s.p + s.n - room, room };
        while (tail.n && ((unsigned char)tail.p[0] & 0xc0) == 0x80)
                tail = (struct str){ tail.p + 1, tail.n - 1 };
        char *to = e->msg;
        memcpy(to, s.p, head);
        memcpy(to + head, gap, sizeof gap - 1);
        memcpy(to + head + sizeof gap - 1, tail.p, tail.n);
        to[head + sizeof gap - 1 + tail.n] = '\0';
}

/* Formats e->msg and appends ": <behind>", which always fits. */
static void __attribute__((format(printf, 3, 0)))
format(struct err *e, const char *behind, const char *fmt, va_list ap) {
        char text[TEXT_MAX];
        size_t room = TEXT_MAX - (behind ? strlen(behind) + 2 : 0);
        int n = vsnprintf(text, room, fmt, ap);
        size_t used = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
        text[used] = '\0';
        if (behind)
                snprintf(text + used, TEXT_MAX - used, ": %s", behind);
        fit(e, text);
}

int err_set(struct err *e, enum err_kind kind, int code, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        format(e, NULL, fmt, ap);
        va_end(ap);
        e->kind = kind;
        e->code = code;
        return -1;
}

static enum err_kind kind_of_errno(int errnum) {
        static const struct {
                enum err_kind kind;
                int errnum[16]; /* 0 after the last */
        } kinds[] = {
                { ERR_NOT_FOUND, { ENOENT, ENOTDIR } },
                { ERR_DENIED, { EACCES, EPERM, EROFS } },
                { ERR_RETRY,
                  { EAGAIN, EINTR, ENOMEM, ENOSPC, EDQUOT, EMFILE, ENFILE, EBUSY, ETIMEDOUT, ECONNREFUSED,
                    ECONNRESET } },
                { ERR_CONFLICT, { EEXIST } },
                { ERR_INVALID, { ELOOP, ENAMETOOLONG, EISDIR } },
        };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                for (const int *n = kinds[i].errnum; *n; n++)
                        if (*n == errnum)
                                return kinds[i].kind;
        return ERR_INTERNAL;
}

/* glibc returns the text, and other C libraries a number (strerror(3)). */
static const char *errno_text(int errnum, char *text, size_t n) {
#ifdef __GLIBC__
        return strerror_r(errnum, text, n);
#else
        return strerror_r(errnum, text, n) == 0 ? text : "unknown error";
#endif
}

int err_errno(struct err *e, int errnum, const char *fmt, ...) {
        char reason[128];
        va_list ap;
        va_start(ap, fmt);
        format(e, errno_text(errnum, reason, sizeof reason), fmt, ap);
        va_end(ap);
        e->kind = kind_of_errno(errnum);
        e->code = errnum;
        return -1;
}

int err_wrap(struct err *e, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        format(e, e->msg, fmt, ap);
        va_end(ap);
        return -1;
}

const char *err_kind_name(enum err_kind kind) {
        static const char *const names[] = {
                [ERR_NONE] = "none",           [ERR_RETRY] = "retry",       [ERR_INVALID] = "invalid",
                [ERR_NOT_FOUND] = "not_found", [ERR_CONFLICT] = "conflict", [ERR_DENIED] = "denied",
                [ERR_GONE] = "gone",           [ERR_INTERNAL] = "internal",
        };
        return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}
