/* SPDX-License-Identifier: Apache-2.0 */
/* ld_cache: where the loader's cache (/etc/ld.so.cache, in the format of glibc since 2.2) says that a library
 * is. Pure; foreign bytes; fuzzed. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* The paths of a library, one for each call: *at is 0 at first. False: there are no more, or this is no such
 * cache. The path is absolute; it is borrowed from the cache. */
bool ld_cache_next(struct str cache, const char *name, size_t *at, struct str *ret_path);
