/* SPDX-License-Identifier: Apache-2.0 */
/* faults: the n-th system or library call fails, for all n.
 *
 * The linker leads our own calls of what faults.c lists through a count (--wrap); libraries call each other
 * as ever. A call that fails does not happen, and says so with an error of its own kind: EMFILE for open,
 * ENOSPC for write, ENOMEM for a library's allocation. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct faults {
        /* 0, or -1 with *e. Runs again and again; what a success made it undoes itself, or the next one
         * replaces it. Must wait until libuv has closed what it closes. */
        int (*op)(void *u, struct err *e);
        /* After each round: what holds whether op worked or not. NULL: nothing. */
        void (*check)(void *u, const char *call, bool worked);
        void *u;
        const char *names;    /* what each error's text must have: the path, the address, the program; NULL:
                                 nothing */
        const char *dir;      /* a folder that has as many entries after a failure as before; NULL: none */
        const char *survives; /* "open64 unlink ": calls, each followed by a space, without which op may work
                                 as well; "*": all; NULL: none */
};

/* Runs op with no failure, then with the first call failing, the second, ... Each failure must make op fail,
 * but for `survives`, and may leave no descriptor and no file behind; what it leaves in memory is
 * LeakSanitizer's. Returns how many calls were made to fail. */
unsigned faults_each(const struct faults *f);

/* For tests that look at one moment only: the n-th call of this name from now on fails; none when n is 0.
 * faults_off() returns true when that has happened, faults_calls() how many there were. */
void faults_at(const char *call, unsigned n);
/* As kill -9 before the n-th call, whatever it is: for a child of the test. */
void faults_kill_at(unsigned n);
bool faults_off(void);
unsigned faults_calls(void);

/* As a disk that hangs: each call of this name waits until faults_release(), in whatever thread it is made
 * but the test's own, where it fails the test: there it would have stopped the loop. */
void faults_hold(const char *call);
bool faults_held(void); /* one is waiting */
void faults_release(void);

/* For wrappers of a test's own, of libraries that not all tests have: true when this call is to fail; errno
 * is set. */
bool faults_hit(const char *call, int errnum);
#define FAULTS_WRAP(type, failure, errnum, name, params, args)                                               \
        type __real_##name params;                                                                           \
        type __wrap_##name params;                                                                           \
        type __wrap_##name params {                                                                          \
                return faults_hit(#name, errnum) ? (failure) : __real_##name args;                           \
        }
