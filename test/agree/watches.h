/* SPDX-License-Identifier: Apache-2.0 */
/* watches: the watches that are open at both servers, and their events. */
#pragma once

#include "../simulate/server.h"
#include "real.h"

/* Begins a watch at both servers. Takes `q`, the request for the simulated server. `text` is for messages. */
void watches_open(uv_loop_t *loop, struct real *r, const struct real_request *to_real, struct asked *q,
                  const char *text, long timeout_s, struct buf *out);
/* Compares the events of both servers, and adds a line for each difference. Watches that have ended are
 * removed. */
void watches_settle(struct buf *out);
/* As watches_settle(), and removes all watches. */
void watches_close(struct buf *out);
bool watches_full(void);

struct watches_counts {
        unsigned long opened, events, bookmarks, expired, ended;
};
extern struct watches_counts watches_counts;
