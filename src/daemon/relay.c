/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/relay.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* A pipe is writable when it accepts PIPE_BUF bytes, 4096, at once; files and terminals always are. */
static bool relay_takes(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) && !(p.revents & POLLERR);
}

void relay_line(struct relay *r, struct str line) {
        char text[RELAY_LINE_MAX + 128];
        int n = 0;

        if (!relay_takes(r->fd)) {
                r->dropped++;
                return;
        }
        if (r->dropped)
                n = snprintf(text, sizeof text,
                             "%u line%s of nvidia-imex %s dropped, because nothing read %s\n", r->dropped,
                             r->dropped == 1 ? "" : "s", r->dropped == 1 ? "was" : "were",
                             r->dropped == 1 ? "it" : "them");
        n += snprintf(text + n, sizeof text - (size_t)n, "%.*s\n",
                      line.n < RELAY_LINE_MAX ? (int)line.n : RELAY_LINE_MAX, line.p);
        if (write(r->fd, text, (size_t)n) == n)
                r->dropped = 0;
        else
                r->dropped++;
}
