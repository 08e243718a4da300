/* SPDX-License-Identifier: Apache-2.0 */
/* watches: those that are open at both servers, and what they told. */
#pragma once

#include "../simulate/server.h"
#include "real.h"

/* Begins one at both. `q` is that of the simulated server, and taken; `text` is for people. */
void watches_open(uv_loop_t *loop, struct real *r, const struct real_request *to_real, struct asked *q,
                  const char *text, long timeout_s, struct buf *out);
/* Takes what has happened from both and compares it: adds a line for each difference. Those that have ended
 * go.
 */
void watches_settle(struct buf *out);
/* The same, and all go. */
void watches_close(struct buf *out);
bool watches_full(void);

struct watches_counts {
        unsigned long opened, events, bookmarks, expired, ended;
};
extern struct watches_counts watches_counts;
