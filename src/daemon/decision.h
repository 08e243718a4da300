/* SPDX-License-Identifier: Apache-2.0 */
/* decision: the next step of the daemon of a node with its assignment: one domain at a time. Pure.
 *
 * The fabric object of the partition may start IMEX. It stops IMEX only when no claim on the node uses it, or
 * when the ComputeDomain is deleted. While a claim of the domain is prepared, nothing else stops it: not a
 * missing, restored or emptied fabric object, not another index, and not SIGTERM.
 *
 * An epoch that the daemon has reported as left does not run here, and never will: the controller reuses the
 * index after that report. So the daemon accepts only an assignment for its own claim and its own boot, with
 * an epoch above all that it has left (`closed`), and remembers that before it reports it.
 *
 * When etcd was restored, a controller that does not know it may assign an epoch and an index again, although
 * a node that cannot report has them. A daemon that has seen a later version of the fabric object notices.
 * Until there is a recount, it accepts no assignment, and reports that it has seen a later epoch than the
 * object's. Then the controller begins a recount. */
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

/* Input from outside becomes a path, and is written to files. Needs domain and infix. */
bool decision_assignment_valid(const struct decision_assignment *x);

/* What the daemon remembers, also when its container restarts. */
struct decision_memory {
        struct decision_assignment
                now;     /* with which it runs IMEX, or is about to, or which it is about to leave */
        bool ready;      /* IMEX has been READY in it: other nodes may map this node's memory */
        int64_t closed;  /* no epoch up to this one is accepted (again). Only `now` may still run with one */
        int64_t seen;    /* the highest epoch that it has seen in the fabric object */
        int64_t recount; /* the last recount that it has seen in the fabric object; 0: none */
        const int64_t *left; /* epochs of the node that the fabric object lists and that never run again */
        size_t n_left;       /* at most DAEMON_REPORT_LEFT_MAX */
};

enum decision_imex {
        DECISION_IMEX_NONE,   /* it does not run, and was not stopped in this process */
        DECISION_IMEX_RUNS,   /* it is not READY */
        DECISION_IMEX_READY,  /* it is READY */
        DECISION_IMEX_FAILS,  /* it ends again and again, and is restarted after a pause */
        DECISION_IMEX_STOPS,  /* after LEAVE or PAUSE; this is final */
        DECISION_IMEX_ENDED,  /* it ended cleanly, so its peers know that */
        DECISION_IMEX_KILLED, /* SIGTERM was not enough, so its peers do not know that it ended */
};

struct decision_input {
        const struct compute_domain_fabric *fabric; /* as last seen; NULL: never, or it does not count */
        bool current;                               /* the fabric object is known to be current */
        bool restored; /* it is older than one seen before, and no recount has begun since */
        const char *node, *claim, *boot_id; /* the daemon's own */
        const struct decision_memory *memory;
        bool inherited; /* memory.now belongs to an earlier Pod of this node */
        enum decision_imex imex;
        bool paused;    /* it was stopped by PAUSE, not LEAVE */
        bool withdrawn; /* the state file does not show readiness, or the plugin ignores it. It was so before
                           `use` was read */
        enum imex_use use; /* use of memory.now's domain by claims of this node */
        bool terminating;  /* SIGTERM: the Pod is deleted */
        bool moved;        /* the node is in another partition now */
        bool outdated;     /* a new container would get other device nodes or files of the node */
};

enum decision_step {
        DECISION_STAY,     /* keep memory.now, if any; IMEX's readiness is shown */
        DECISION_ENTER,    /* accept `assignment`: remember it as memory.now, then START */
        DECISION_START,    /* start IMEX with memory.now, also again after it was killed */
        DECISION_WITHDRAW, /* withdraw readiness, or keep it withdrawn; then read `use` and decide again */
        DECISION_LEAVE,    /* withdraw readiness and stop IMEX, because the node leaves the domain */
        DECISION_PAUSE,    /* the same, but memory.now stays: for a new container, or the next daemon */
        DECISION_FORGET,   /* memory.now has ended: clear its folder, then remember decision_left() */
        DECISION_EXIT
};

struct decision {
        enum decision_step step;
        struct decision_assignment assignment; /* for ENTER; its strings are the fabric object's */
        const char
                *why; /* for STAY without an assignment, or against the fabric object; otherwise ""; static */
        const char
                *waits_for; /* what keeps the node in a domain that it should leave; otherwise ""; static */
        /* To be saved before any action or report; in the arena. With ENTER, `now` is still the earlier
         * one. */
        struct decision_memory memory;
};

void decision_make(const struct decision_input *in, struct arena *a, struct decision *ret);

/* The other nodes in the IMEX domain of `now`, in the arena, with the fabric object's strings. A leaving node
 * may map the memory of the others until it has left, and so may a node whose index is reserved. Neither has
 * an address. False: the object lists none. */
bool decision_peers(const struct compute_domain_fabric *f, const char *node,
                    const struct decision_assignment *now, struct arena *a, struct imex_peer **ret,
                    size_t *ret_n);

/* The memory after `now` has ended for good. In the arena. */
void decision_left(const struct decision_memory *m, struct arena *a, struct decision_memory *ret);
