/* SPDX-License-Identifier: Apache-2.0 */
/* elf_soname: reads the name by which programs load a library (DT_SONAME). Parses untrusted bytes; fuzzed. */
#pragma once

#include "base/err.h"

enum { ELF_SONAME_SIZE = 256 };

/* Reads the name from the file `fd`. `ret` is "" if the library has no such name. ERR_INVALID: the file is
 * not a shared library of a little-endian machine, or the name is not valid as a file name. */
int elf_soname(int fd, char ret[static ELF_SONAME_SIZE], struct err *e);
