/* SPDX-License-Identifier: Apache-2.0 */
/* imex_recovery: when an nvidia-imex that waits for the nodes that had mapped its memory is started anew.
 *
 * After an unclean end nvidia-imex says WAITING_FOR_RECOVERY until each node that had imported memory has
 * connected again (IMEX guide, "Connections, Quorum, and Clean up"). It keeps them in
 * /var/run/nvidia-imex/persist.dat, whose format is its own and is not read here: what can be known is which
 * nodes are in the domain, and which of them nvidia-imex has connected to since its start. One that has not
 * been seen again may map this node's memory still, until it has rebooted or is a member no more. A node
 * leaves the members only when nothing of the domain can run on it (rules/assignment.h), so that covers a
 * node that is gone or out-of-service.
 *
 * A boot id proves a reboot only by differing from an earlier one that was true after our IMEX had ended.
 * News travel from the other node's kubelet over the controller, so the members count as they are when two
 * things have lasted for the whole patience: the wait, and being told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "imex/imex_members.h"

struct imex_recovery_facts {
        uint64_t waited_ms; /* in WAITING_FOR_RECOVERY, in this life of the process */
        /* For so long the members have been known to be those of now; 0: they may be old. */
        uint64_t informed_ms;
        uint64_t patience_ms;
        const struct imex_members *now;
        const struct imex_members *before; /* what `settled` was said of; NULL: not yet */
        const char *const *seen;           /* nodes that were connected at some time in this life */
        size_t n_seen;
};

enum { IMEX_AWAITED_MAX = 160 };

struct imex_recovery_verdict {
        bool settled;     /* `now` is to be kept as `before` */
        bool anew;        /* nobody can map our memory any more: start with nothing remembered */
        size_t n_awaited; /* after the patience: who has to be waited for still */
        char awaited[IMEX_AWAITED_MAX]; /* their names, for people: "a, b, c and 2 more"; "" for none */
        uint64_t again_ms;              /* judge again then, though no fact changes; 0: no need */
};

/* Pure. */
void imex_recovery_judge(const struct imex_recovery_facts *f, struct imex_recovery_verdict *ret);

/* One wait. Embedded in its owner, and zero while nobody waits. Times are of one clock of milliseconds, and
 * never 0. */
struct imex_recovery {
        uint64_t since_ms; /* 0: nobody waits */
        struct arena *a;
        const struct imex_members *before;
        const char **seen;
        size_t n_seen;
};

void imex_recovery_begin(struct imex_recovery *r, uint64_t now_ms); /* again: goes on */
void imex_recovery_end(struct imex_recovery *r);
/* nvidia-imex is connected to that node. */
void imex_recovery_saw(struct imex_recovery *r, const char *node);
/* Judges the wait as it is now, and keeps what was settled. informed_since_ms 0: the members may be old. */
void imex_recovery_look(struct imex_recovery *r, const struct imex_members *members, uint64_t now_ms,
                        uint64_t informed_since_ms, uint64_t patience_ms, struct imex_recovery_verdict *ret);

/* Removes what nvidia-imex remembers: all that is in its folder, also folders, because the format is its own.
 * Links are removed and not followed. The folder itself may be a mount and stays; one that is not there holds
 * nothing. */
int imex_recovery_forget(const char *run_dir, struct err *e);
