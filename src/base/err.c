#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_set(struct err *e, enum err_kind kind, int code, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        e->kind = kind;
        e->code = code;
        vsnprintf(e->msg, sizeof e->msg, fmt, ap);
        va_end(ap);
        return -1;
}

static enum err_kind kind_of_errno(int errnum) {
        switch (errnum) {
        case ENOENT:
        case ENOTDIR:
                return ERR_NOT_FOUND;
        case EACCES:
        case EPERM:
        case EROFS:
                return ERR_DENIED;
        case EAGAIN:
        case EINTR:
        case ENOMEM:
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case EBUSY:
        case ETIMEDOUT:
        case ECONNREFUSED:
        case ECONNRESET:
                return ERR_RETRY;
        case EEXIST:
                return ERR_CONFLICT;
        case ELOOP:
        case ENAMETOOLONG:
        case EISDIR:
                return ERR_INVALID;
        default:
                return ERR_INTERNAL;
        }
}

int err_errno(struct err *e, int errnum, const char *fmt, ...) {
        char reason[128];
        va_list ap;
        va_start(ap, fmt);
        e->kind = kind_of_errno(errnum);
        e->code = errnum;
        int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof e->msg)
                snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s",
                         strerror_r(errnum, reason, sizeof reason));
        return -1;
}

int err_wrap(struct err *e, const char *fmt, ...) {
        char cause[sizeof e->msg];
        va_list ap;
        memcpy(cause, e->msg, sizeof cause);
        va_start(ap, fmt);
        int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof e->msg)
                snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", cause);
        return -1;
}

const char *err_kind_name(enum err_kind kind) {
        static const char *const names[] = {
                [ERR_NONE] = "none",           [ERR_RETRY] = "retry",       [ERR_INVALID] = "invalid",
                [ERR_NOT_FOUND] = "not_found", [ERR_CONFLICT] = "conflict", [ERR_DENIED] = "denied",
                [ERR_GONE] = "gone",           [ERR_INTERNAL] = "internal",
        };
        return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

void err_bug(const char *file, int line, const char *cond) {
        fprintf(stderr, "BUG at %s:%d: %s\n", file, line, cond);
        abort();
}
