/* SPDX-License-Identifier: Apache-2.0 */
/* relay: copies the lines of nvidia-imex to our own stderr, unchanged.
 *
 * The daemon must not wait for the reader of stderr. A line that would have to wait is dropped, and the next
 * line that is written reports how many were dropped. */
#pragma once

#include "base/str.h"

/* Longer lines are cut, because a pipe accepts a line of up to this size completely or not at all. */
enum { RELAY_LINE_MAX = 3072 };

struct relay {
        int fd; /* borrowed; may be in blocking mode */
        unsigned dropped;
};

void relay_line(struct relay *r, struct str line);
