/* SPDX-License-Identifier: Apache-2.0 */
/* err: an error as a value in the caller's stack frame.
 *
 * Functions that can fail return 0 or -1 and take `struct err *e` as the last parameter. They write *e only
 * on failure. An error owns no memory, so it cannot leak and also works when memory is out. `kind` states
 * what the caller can do about the error. `code` is the original number (errno, HTTP status or gRPC status).
 * `msg` is a sentence fragment for people, and err_wrap() adds context in front of it: "claim 'a/b': open
 * '/x': No such file". If a text is too long for `msg`, its middle is cut out, between UTF-8 characters,
 * because the source of the error is at the beginning, and the cause and the remedy are at the end. */
#pragma once

enum err_kind {
        ERR_NONE,      /* no error */
        ERR_RETRY,     /* transient: the same call may succeed later */
        ERR_INVALID,   /* the input is wrong: the same call can never succeed */
        ERR_NOT_FOUND, /* the object or file does not exist */
        ERR_CONFLICT,  /* another writer was first: read again, then retry */
        ERR_DENIED,    /* permission or policy forbids it */
        ERR_GONE,      /* the server no longer keeps the requested history: list again */
        ERR_INTERNAL,  /* anything else: a bug in this program or a broken machine */
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

/* Like err_set(), for a failed system call: derives kind and code from `errnum`, and appends ": <strerror>".
 */
int err_errno(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts context in front of e->msg ("context: msg") and returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the word for a kind, for logs and metrics: "retry", "invalid", ... */
const char *err_kind_name(enum err_kind kind);
