/* SPDX-License-Identifier: Apache-2.0 */
/* ask: asks the kubectl plugin why a pod does not start. */
#pragma once

#include "base/str.h"
#include "cli/source.h"

enum { ASK_CAUSES = 8 };
struct ask_answer {
        const char *causes[ASK_CAUSES]; /* the certain ones; static */
        size_t n;
        bool unread; /* facts could not be read */
};
/* Appends the whole answer to `text`. */
void ask_why(struct source *s, const char *ns, const char *pod, struct ask_answer *ret, struct buf *text);
