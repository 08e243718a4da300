/* SPDX-License-Identifier: Apache-2.0 */
/* stderr: writes to stderr without waiting for the reader. Any thread. */
#pragma once

#include <stddef.h>

/* Writes as many bytes as the other end accepts at once, and returns how many that was: a full pipe, or a
 * closed one, accepts none. Does not change the mode of the open file: other processes write to it, too. */
size_t stderr_write(const char *p, size_t n);

/* Lets more lines wait for their reader: bursts can exceed a pipe's default 64 KiB. */
void stderr_widen_pipe(void);

/* Ends the process with a message when cond holds. For our own bugs only, never for input. Also on in
 * releases. */
#define BUG_ON(cond)                                                                                         \
        do {                                                                                                 \
                if (__builtin_expect(!!(cond), 0))                                                           \
                        stderr_bug(__FILE__, __LINE__, #cond);                                               \
        } while (0)

_Noreturn void stderr_bug(const char *file, int line, const char *cond);
