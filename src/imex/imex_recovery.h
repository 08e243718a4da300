/* SPDX-License-Identifier: Apache-2.0 */
/* imex_recovery: decides when to restart an nvidia-imex that waits for the nodes that had mapped its memory.
 *
 * After an unclean end nvidia-imex reports WAITING_FOR_RECOVERY until each node that had imported memory has
 * connected again (IMEX guide, "Connections, Quorum, and Clean up"). nvidia-imex keeps the list of these
 * nodes in /var/run/nvidia-imex/persist.dat, whose format is private, so this module does not parse it. The
 * module knows only the nodes in the domain, and to which of them nvidia-imex has connected since its start.
 * A node that has not connected again may still map this node's memory, until the node has rebooted or is not
 * a member any longer. A node is removed from the members only when no process of the domain can run on it
 * (rules/assignment.h), so this rule covers a deleted or out-of-service node.
 *
 * A boot ID proves a reboot only if it differs from an earlier boot ID that was current after our IMEX had
 * ended. Boot IDs are passed from the other node's kubelet through the controller. So the members count as
 * current only if both the wait and the owner's current information have lasted for limit_ms. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "imex/imex_members.h"

struct imex_recovery_facts {
        uint64_t waited_ms; /* time in WAITING_FOR_RECOVERY since the process started */
        /* For how long the members have been known to be current; 0: they may be old. */
        uint64_t informed_ms;
        uint64_t limit_ms; /* the patience: see above */
        const struct imex_members *now;
        const struct imex_members *before; /* the members for which `settled` was returned; NULL: not yet */
        const char *const *seen;           /* nodes that were connected since the process started */
        size_t n_seen;
};

enum { IMEX_AWAITED_MAX = 160 };

struct imex_recovery_verdict {
        bool settled;     /* the caller must keep `now` as `before` */
        bool restart;     /* no node can map our memory any longer: start without the remembered nodes */
        size_t n_awaited; /* after limit_ms: how many nodes still have to connect */
        char awaited[IMEX_AWAITED_MAX]; /* their names, for people: "a, b, c and 2 more"; "" for none */
        uint64_t again_ms;              /* evaluate again then, even if no fact changes; 0: no need */
};

/* Decides from the facts whether to restart nvidia-imex. Pure. */
void imex_recovery_evaluate(const struct imex_recovery_facts *f, struct imex_recovery_verdict *ret);

/* The state of one wait for a recovery. Embedded in its owner, and zero while there is no wait. All times are
 * milliseconds of one clock, and never 0. */
struct imex_recovery {
        uint64_t since_ms; /* 0: no wait */
        struct arena *a;
        const struct imex_members *before;
        const char **seen;
        size_t n_seen;
};

void imex_recovery_begin(struct imex_recovery *r, uint64_t now_ms); /* no effect if the wait has begun */
void imex_recovery_end(struct imex_recovery *r);
/* Records that nvidia-imex is connected to `node`. */
void imex_recovery_connected(struct imex_recovery *r, const char *node);
/* Evaluates the present wait, and keeps the settled members. informed_since_ms 0: the members may be old. */
void imex_recovery_update(struct imex_recovery *r, const struct imex_members *members, uint64_t now_ms,
                          uint64_t informed_since_ms, uint64_t limit_ms, struct imex_recovery_verdict *ret);

/* Removes the saved state of nvidia-imex: everything in its folder, including subfolders, because the format
 * is private. Links are removed and not followed. The folder itself may be a mount, and is not removed. A
 * missing folder is success. */
int imex_recovery_forget(const char *run_dir, struct err *e);
