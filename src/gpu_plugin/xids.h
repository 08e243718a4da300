/* SPDX-License-Identifier: Apache-2.0 */
/* xids: lists the XIDs that are errors of programs. After such an error the GPU still works. Pure. */
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

/* Adds a comma-separated list of numbers, the value of --additional-xids-to-ignore. True: all words are
 * valid. Otherwise *ret_bad is the first word that is not a number or exceeds the limit, and the others are
 * added, as with the Go driver. */
bool xids_add(struct xids *x, const char *list, struct str *ret_bad);
/* True for an XID that NVIDIA's documentation calls an error of applications, and for an added one. */
bool xids_of_programs(const struct xids *x, uint64_t xid);
