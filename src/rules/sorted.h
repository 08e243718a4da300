/* SPDX-License-Identifier: Apache-2.0 */
/* sorted: asserts that the caller has sorted a list of structs, without duplicates. */
#pragma once

#include <string.h>

#include "base/stderr.h"

#define BUG_ON_UNSORTED(list, n, member)                                                                     \
        for (size_t sorted_i = 1; sorted_i < (n); sorted_i++)                                                \
        BUG_ON(strcmp((list)[sorted_i - 1].member, (list)[sorted_i].member) >= 0)
