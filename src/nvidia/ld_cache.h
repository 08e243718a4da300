/* SPDX-License-Identifier: Apache-2.0 */
/* ld_cache: finds a library in the loader's cache (/etc/ld.so.cache, in the format of glibc since 2.2). Pure.
 * Parses untrusted bytes; fuzzed. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* Each call returns one path of a library. *at is 0 at first. False: there are no more paths, or the bytes
 * are not such a cache. The path is absolute and borrowed from the cache. */
bool ld_cache_next(struct str cache, const char *name, size_t *at, struct str *ret_path);
