/* SPDX-License-Identifier: Apache-2.0 */
/* imex_links: determines which peers of nvidia-imex are lost, that is, not connected. Pure.
 *
 * The facts are the answers of nvidia-imex to `-N -j`, and its log, which reports a change at once.
 * nvidia-imex restarts all connections on SIGUSR1, so one fact makes a peer that was connected only suspect,
 * and a second one makes it lost: a line of the log, an answer, or an answer that does not arrive, for
 * example because `-N` waits for the lost node. A peer that has never been connected is lost after
 * IMEX_LINKS_PATIENCE_MS, because it may still be starting. Only active peers count: their address is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "imex/imex_ctl.h"
#include "imex/imex_members.h"

enum {
        IMEX_LINKS_PATIENCE_MS = 30000,
        IMEX_LOST_MAX = 1024, /* enough for all peers of 250 nodes */
};

struct imex_links {
        bool answered; /* nvidia-imex has answered since its start */
        uint8_t link[IMEX_SLOTS_MAX];
        uint64_t since_ms[IMEX_SLOTS_MAX]; /* since when the peer is active, or nvidia-imex runs; 0: not
                                              active */
};

/* Empties the links, for a new process with these members. Times are milliseconds of one clock, and never 0.
 */
void imex_links_begin(struct imex_links *l, const struct imex_members *m, uint64_t now_ms);
/* Notes a change of the members. If another node has the index of a peer now, the peer is new. `was` may be
 * NULL. */
void imex_links_note_members(struct imex_links *l, const struct imex_members *was,
                             const struct imex_members *m, uint64_t now_ms);
/* Notes a line of the log. Returns whether it reports that a peer is connected, or no longer is: then query
 * the connections. */
bool imex_links_note_line(struct imex_links *l, struct str line);
/* Notes the entry of this node in an answer; NULL: there was no answer with such an entry. Returns whether a
 * peer is suspect: then query the connections again. */
bool imex_links_note_answer(struct imex_links *l, const struct imex_ctl_node *own, uint64_t now_ms);
/* Returns whether nvidia-imex has answered and is connected to all active peers. */
bool imex_links_complete(const struct imex_links *l);
/* Sets `ret` to the indices of the lost peers, comma-separated and ascending; indices that do not fit are
 * left out. Returns whether the lost peers are known. */
bool imex_links_lost(const struct imex_links *l, char ret[static IMEX_LOST_MAX]);
/* Returns whether the index is in such a list. */
bool imex_links_lists(const char *lost, int64_t index);
