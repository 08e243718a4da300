/* SPDX-License-Identifier: Apache-2.0 */
/* stderr: writes to stderr without waiting for the reader. May be called from any thread. */
#pragma once

#include <stddef.h>

/* Writes as many bytes as the other end accepts at once, and returns their number. A full or closed pipe
 * accepts none. Does not change the mode of the open file, because other processes write to it, too. */
size_t stderr_write(const char *p, size_t n);

/* Enlarges the pipe's buffer, because bursts of log lines can exceed the default 64 KiB. */
void stderr_widen_pipe(void);

/* Ends the process with a message if cond is true. Use it only for bugs of the program, never for invalid
 * input. It stays active in releases. */
#define BUG_ON(cond)                                                                                         \
        do {                                                                                                 \
                if (__builtin_expect(!!(cond), 0))                                                           \
                        stderr_bug(__FILE__, __LINE__, #cond);                                               \
        } while (0)

_Noreturn void stderr_bug(const char *file, int line, const char *cond);
