/* SPDX-License-Identifier: Apache-2.0 */
/* imex_version: runs `nvidia-imex --version`, which shows that the program can start here: its libraries
 * exist and match. Retried until it answers, with pauses of 1 s growing to 60 s. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/str.h"

/* Of the text, including the terminator. */
enum { IMEX_VERSION_MAX = 40 };

struct imex_version;

/* `answered`: the version, or "" and `why` it is not known, for people; after "" it is retried. Never called
 * from inside this function. `path` is borrowed until imex_version_free(), and is looked up in PATH when it
 * contains no slash. */
struct imex_version *imex_version_new(uv_loop_t *loop, const char *path,
                                      void (*answered)(void *u, const char *version, const char *why),
                                      void *u);
/* Allowed inside `answered`; NULL is allowed. */
void imex_version_free(struct imex_version *v);

/* Parses "IMEX version is: 580.95.05" (nvidia-imex 580). False: there is no version in it. Pure. */
bool imex_version_parse(struct str text, char ret[static IMEX_VERSION_MAX]);
