/* SPDX-License-Identifier: Apache-2.0 */
/* imex_version: runs `nvidia-imex --version`, to read the version and to check that the program can start
 * here: its libraries exist and match. Retries until the program prints its version, with pauses that grow
 * from 1 s to 60 s. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/str.h"

/* The size of the text, including the terminating NUL. */
enum { IMEX_VERSION_MAX = 40 };

struct imex_version;

/* Starts the query. Calls `answered` with the version, or with "" and the reason `why` for people; after ""
 * the query is retried. Never calls it from inside this function. `path` is borrowed until
 * imex_version_free(), and is looked up in PATH when it contains no slash. */
struct imex_version *imex_version_new(uv_loop_t *loop, const char *path,
                                      void (*answered)(void *u, const char *version, const char *why),
                                      void *u);
/* Stops the query. Allowed inside `answered`. NULL is allowed. */
void imex_version_free(struct imex_version *v);

/* Parses "IMEX version is: 580.95.05" (nvidia-imex 580). Returns false if the text contains no version.
 * Pure. */
bool imex_version_parse(struct str text, char ret[static IMEX_VERSION_MAX]);
