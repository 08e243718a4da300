/* SPDX-License-Identifier: Apache-2.0 */
/* imex_version: asks `nvidia-imex --version`, which shows that the program can be started here: its libraries
 * are there and fit. Asked until it answers, with pauses of 1 s growing to 60 s. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/str.h"

/* Of the text, with the end. */
enum { IMEX_VERSION_MAX = 40 };

struct imex_version;

/* `answered`: the version, or "" and `why` it is not known, for people; after "" it is asked again. Never
 * from inside this call. `path` is borrowed until imex_version_free(), and is looked up in PATH when it holds
 * no slash. */
struct imex_version *imex_version_new(uv_loop_t *loop, const char *path,
                                      void (*answered)(void *u, const char *version, const char *why),
                                      void *u);
/* Allowed inside `answered`; NULL is allowed. */
void imex_version_free(struct imex_version *v);

/* "IMEX version is: 580.95.05" (nvidia-imex 580). False: it says no version. Pure. */
bool imex_version_parse(struct str text, char ret[static IMEX_VERSION_MAX]);
