/* SPDX-License-Identifier: Apache-2.0 */
/* version: which one this is, of the whole project. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#include <stdbool.h>

extern const char version[]; /* "0.1.0" */

/* "--version" and nothing else on the command line: prints "<program> <version>", and main() ends with
 * success. It needs no flag that is required otherwise, and no environment. */
bool version_asked(int argc, char **argv, const char *program);

#endif
