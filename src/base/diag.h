/* SPDX-License-Identifier: Apache-2.0 */
/* diag: stderr for a program that must not wait for whoever reads it. Any thread. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stddef.h>

/* Writes as much of it as the other end takes at once, and returns how many bytes that was: a pipe that
 * nobody reads, or a closed one, takes none. The mode of the open file is left alone: others write to it
 * too. */
size_t diag_write(const char *p, size_t n);

/* Lets more lines wait for their reader: bursts are larger than the 64 KiB that a pipe has by itself. */
void diag_widen(void);

#endif
