/* SPDX-License-Identifier: Apache-2.0 */
/* xids: which XIDs are errors of programs, after which a GPU is as good as before. Pure. */
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

/* Adds a list of numbers with commas between them, as --additional-xids-to-ignore has it. The first word that
 * is no number, or one too many, comes in *ret_bad, and the others count all the same, as with the Go driver;
 * true: there is none. */
bool xids_add(struct xids *x, const char *list, struct str *ret_bad);
/* Those that NVIDIA's documentation calls errors of applications, or added ones. */
bool xids_of_programs(const struct xids *x, uint64_t xid);
