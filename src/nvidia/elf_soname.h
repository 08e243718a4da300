/* SPDX-License-Identifier: Apache-2.0 */
/* elf_soname: the name by which programs ask for a library (DT_SONAME). Foreign bytes; fuzzed. */
#pragma once

#include "base/err.h"

enum { ELF_SONAME_SIZE = 256 };

/* ret is "" when the library has none. ERR_INVALID: it is no shared library of a little-endian machine, or
 * its name could not be that of a file. */
int elf_soname(int fd, char ret[static ELF_SONAME_SIZE], struct err *e);
