/* SPDX-License-Identifier: Apache-2.0 */
/* xids: decides which XIDs are errors of programs, after which the GPU still works. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { XIDS_ADDED_MAX = 256 };

struct xids {
        uint64_t added[XIDS_ADDED_MAX];
        size_t n;
};

/* Adds a comma-separated list of numbers, the value of --additional-xids-to-ignore. Returns true if all words
 * are valid. Otherwise sets *ret_bad to the first word that is not a number or exceeds the limit, and adds
 * the other words, as the Go driver does. */
bool xids_add(struct xids *x, const char *list, struct str *ret_bad);
/* Returns true for an XID that NVIDIA's documentation calls an error of applications, and for an added
 * XID. */
bool xids_of_programs(const struct xids *x, uint64_t xid);
