/* SPDX-License-Identifier: Apache-2.0 */
/* relay: passes the lines of nvidia-imex on to our own stderr, as they are.
 *
 * Whoever should read it may stand still, and then we must not: a line that would have to wait is dropped,
 * and the first one after it says how many were. */
#pragma once

#include "base/str.h"

/* Longer lines are cut: so much a pipe takes at once or not at all. */
enum { RELAY_LINE_MAX = 3072 };

struct relay {
        int fd; /* borrowed; may be in blocking mode */
        unsigned dropped;
};

void relay_line(struct relay *r, struct str line);
