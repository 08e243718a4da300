/* SPDX-License-Identifier: Apache-2.0 */
/* decision: what the daemon of a node does next with its assignment: one domain at a time. Pure.
 *
 * The object of the partition may start IMEX. It stops IMEX only when no claim on the node uses it, or when
 * the ComputeDomain is deleted: an object that is missing, restored or emptied, another index, and SIGTERM
 * change nothing while a claim of the domain is prepared.
 *
 * An epoch that the daemon has reported as left does not run here, and never will: the controller reuses the
 * index after that report. So the daemon takes only an assignment for its own claim and its own boot with an
 * epoch above all that it has left (`closed`), and remembers that before it reports it.
 *
 * When etcd was restored, a controller that does not know of it may give an epoch and an index again that a
 * node has which cannot report. A daemon that has seen a later version of the object knows: until there is a
 * recount it takes nothing that is listed for it, and reports that it has seen a later epoch than the
 * object's, which makes the controller begin one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "imex/imex_files.h"
#include "imex/imex_grants.h"
#include "model/fabric.h"

struct decision_assignment {
        const char *domain; /* UID; NULL: none */
        const char *infix;
        int64_t index, epoch, port, slots;
};

/* What the daemon remembers, also after its container was restarted. */
struct decision_memory {
        struct decision_assignment now; /* that it runs IMEX with, or is about to, or is about to leave */
        bool ready;                     /* IMEX has been READY in it: others may map this node's memory */
        int64_t closed;      /* no epoch up to this one is taken (again). Only `now` may still run with one */
        int64_t seen;        /* the highest epoch of the object that it has seen */
        int64_t recount;     /* the last recount of the object that it has seen; 0: none */
        const int64_t *left; /* epochs of the node that the object lists and that never run again */
        size_t n_left;       /* at most DAEMON_REPORT_LEFT_MAX */
};

enum decision_imex {
        DECISION_IMEX_NONE,   /* it does not run, and was not stopped in this process */
        DECISION_IMEX_RUNS,   /* it is not READY */
        DECISION_IMEX_READY,  /* it is READY */
        DECISION_IMEX_FAILS,  /* it ends again and again, and is started again after a pause */
        DECISION_IMEX_STOPS,  /* after LEAVE or PAUSE; this is not taken back */
        DECISION_IMEX_ENDED,  /* in order, so that its peers know of it */
        DECISION_IMEX_KILLED, /* SIGTERM was not enough, so its peers do not know of its end */
};

struct decision_input {
        const struct compute_domain_fabric
                *fabric; /* as it was seen last; NULL: never, or it does not count */
        bool current;    /* it is known to be so now */
        bool restored;   /* it is older than the one seen before, and no recount has begun since */
        const char *node, *claim, *boot_id; /* the daemon's own */
        const struct decision_memory *memory;
        bool inherited; /* memory.now is of an earlier Pod of this node */
        enum decision_imex imex;
        bool paused;       /* what stopped it was PAUSE, not LEAVE */
        bool withdrawn;    /* the state file does not show readiness, or nobody believes it. It was so before
                              `use` was looked at */
        enum imex_use use; /* of memory.now's domain, by claims of this node */
        bool terminating;  /* SIGTERM: the Pod is deleted */
        bool moved;        /* the node is in another partition now */
        bool outdated;     /* a container that starts now gets something else of the node */
};

enum decision_step {
        DECISION_STAY,     /* with memory.now, if any; IMEX's readiness is shown */
        DECISION_ENTER,    /* take `assignment`: remember it as memory.now, then START */
        DECISION_START,    /* start IMEX with memory.now, also again after it was killed */
        DECISION_WITHDRAW, /* withdraw readiness, or keep it withdrawn; then look at `use` and decide again */
        DECISION_LEAVE,    /* withdraw readiness and stop IMEX, because the node leaves the domain */
        DECISION_PAUSE,    /* the same, but memory.now stays: for a new container, or the next daemon */
        DECISION_FORGET,   /* memory.now is left: clear its folder, then remember decision_left() */
        DECISION_EXIT
};

struct decision {
        enum decision_step step;
        struct decision_assignment assignment; /* to be entered; its strings are the object's */
        const char *why;  /* of STAY without an assignment, or against the object; "" else; static */
        const char *held; /* what keeps it in a domain that it should leave; "" else; static */
        /* To be remembered before anything is done or reported; in the arena. With ENTER `now` is still the
         * earlier one. */
        struct decision_memory memory;
};

void decision_make(const struct decision_input *in, struct arena *a, struct decision *ret);

/* The other nodes in the IMEX domain of `now`, in the arena, with the object's strings. One that leaves may
 * map the memory of those that stay until it has left, and so may one whose index is reserved; neither has an
 * address. False: the object does not list any. */
bool decision_peers(const struct compute_domain_fabric *f, const char *node,
                    const struct decision_assignment *now, struct arena *a, struct imex_peer **ret,
                    size_t *ret_n);

/* What is remembered when `now` has been left for good. In the arena. */
void decision_left(const struct decision_memory *m, struct arena *a, struct decision_memory *ret);
