/* SPDX-License-Identifier: Apache-2.0 */
/* diag: stderr for a program that must not wait for whoever reads it. Any thread. */
#pragma once

#include <stddef.h>

/* Writes as much of it as the other end takes at once, and returns how many bytes that was: a pipe that
 * nobody reads, or a closed one, takes none. The mode of the open file is left alone: others write to it
 * too. */
size_t diag_write(const char *p, size_t n);

/* Lets more lines wait for their reader: bursts are larger than the 64 KiB that a pipe has by itself. */
void diag_widen(void);

/* Ends the process with a message when cond holds: for our own bugs only, never for input. On in release too.
 */
#define BUG_ON(cond)                                                                                         \
        do {                                                                                                 \
                if (__builtin_expect(!!(cond), 0))                                                           \
                        diag_bug(__FILE__, __LINE__, #cond);                                                 \
        } while (0)

_Noreturn void diag_bug(const char *file, int line, const char *cond);
