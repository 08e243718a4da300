/* SPDX-License-Identifier: Apache-2.0 */
/* ld_cache: finds a library in the loader's cache (/etc/ld.so.cache, in the format of glibc since 2.2). Pure.
 * Parses untrusted bytes; fuzzed. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* Returns the next path of a library of this name in *ret_path. *at must be 0 at the first call. Returns
 * false if there are no more paths, or if the bytes are not such a cache. The path is absolute and borrowed
 * from the cache. */
bool ld_cache_next(struct str cache, const char *name, size_t *at, struct str *ret_path);
