/* SPDX-License-Identifier: Apache-2.0 */
/* err: an error as a value in the caller's stack frame.
 *
 * Functions that can fail return 0 or -1 and take `struct err *e` as the last parameter; *e is written only
 * on failure. There is nothing to release, so an error can neither leak nor fail for want of memory. `kind`
 * is what the caller may do about it, `code` is the number it came from (errno, HTTP status or gRPC status)
 * and `msg` is a sentence fragment for people, widened by err_wrap() on its way up: "claim 'a/b': open '/x':
 * No such file". What is longer than `msg` loses its middle, between characters of UTF-8: who says it stands
 * at the beginning, and what it was and what helps at the end. */
#pragma once

enum err_kind {
        ERR_NONE,      /* no error */
        ERR_RETRY,     /* transient: the same call may succeed later */
        ERR_INVALID,   /* the input is wrong: the same call can never succeed */
        ERR_NOT_FOUND, /* the object or file does not exist */
        ERR_CONFLICT,  /* somebody else wrote first: read again, then retry */
        ERR_DENIED,    /* permission or policy forbids it */
        ERR_GONE,      /* the history asked for is no longer kept: list again */
        ERR_INTERNAL,  /* anything else: our bug or a broken machine */
};

enum { ERR_MSG_SIZE = 1024 };

struct err {
        enum err_kind kind;
        int code;
        char msg[ERR_MSG_SIZE];
};

/* Fills *e and returns -1, so that `return err_set(...)` is a whole error path. */
int err_set(struct err *e, enum err_kind kind, int code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* err_set() for a failed system call: kind and code follow from `errnum`, and ": <strerror>" is appended. */
int err_errno(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts context in front of e->msg ("context: msg") and returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The word for a kind, for logs and metrics: "retry", "invalid", ... */
const char *err_kind_name(enum err_kind kind);
