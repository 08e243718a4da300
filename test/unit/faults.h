/* SPDX-License-Identifier: Apache-2.0 */
/* faults: the n-th system or library call fails, for all n.
 *
 * The linker redirects our own calls of the functions in faults.c through a counter (--wrap). Calls between
 * libraries are not affected. A call that fails is not made, and returns a suitable error: EMFILE for open,
 * ENOSPC for write, ENOMEM for a library's allocation. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct faults {
        /* Returns 0, or -1 with *e. It runs many times. It must undo its own success, or the next run must
         * replace the result. It must wait until libuv has closed its handles. */
        int (*op)(void *u, struct err *e);
        /* Called after each round: checks what must hold whether op succeeded or not. NULL: no check. */
        void (*check)(void *u, const char *call, bool worked);
        void *u;
        const char *names; /* a text that each error must contain: the path, the address, the program; NULL:
                              none */
        const char *dir; /* a folder that must have the same number of entries after a failure; NULL: none */
        const char *survives; /* "open64 unlink ": calls, each followed by a space, without which op may still
                                 succeed; "*": all; NULL: none */
};

/* Runs op without a failure, then with the first call failing, the second, ... Each failure must make op
 * fail, except those of `survives`. It may leave no descriptor and no file; LeakSanitizer checks memory.
 * Returns how many calls were made to fail. */
unsigned faults_each(const struct faults *f);

/* For tests of a single moment: from now on, the n-th call with this name fails; none when n is 0.
 * faults_off() returns true when that has happened, faults_calls() the number of calls. */
void faults_at(const char *call, unsigned n);
/* The same with this errno. `always`: the later calls fail, too. */
void faults_at_with(const char *call, unsigned n, int errnum, bool always);
/* Like kill -9 before the n-th call of any kind: for a child of the test. */
void faults_kill_at(unsigned n);
bool faults_off(void);
unsigned faults_calls(void);

/* Like a disk that hangs: each call with this name waits until faults_release(), in any thread. In the test's
 * own thread it fails the test, because it would have stopped the loop. */
void faults_hold(const char *call);
bool faults_held(void); /* a call is waiting */
void faults_release(void);

/* For a test's own wrappers, of libraries that not all tests have. True: this call must fail; errno is
 * set. */
bool faults_hit(const char *call, int errnum);
#define FAULTS_WRAP(type, failure, errnum, name, params, args)                                               \
        type __real_##name params;                                                                           \
        type __wrap_##name params;                                                                           \
        type __wrap_##name params {                                                                          \
                return faults_hit(#name, errnum) ? (failure) : __real_##name args;                           \
        }
