/* SPDX-License-Identifier: Apache-2.0 */
/* decision: decides the next step of a node's daemon with its assignment, one IMEX domain at a time. Pure.
 *
 * An assignment in the fabric object of the partition starts IMEX. The fabric object stops IMEX only if no
 * claim on the node uses the domain, or if the ComputeDomain is deleted. While a claim of the domain is
 * prepared, nothing else stops IMEX: not a missing, restored or emptied fabric object, not another index, and
 * not SIGTERM.
 *
 * The controller reuses an index after the daemon has reported its epoch as left. So IMEX never runs again in
 * an epoch that was reported as left: the daemon accepts only an assignment for its own claim and its own
 * boot, with an epoch above all epochs that it has left (`closed`), and saves `closed` before it reports a
 * left epoch.
 *
 * If etcd was restored, a controller that does not know about the restore may assign an epoch and an index a
 * second time, although a node that cannot report has them. A daemon that has seen a later version of the
 * fabric object detects this. Until a recount begins, the daemon accepts no assignment, and reports that it
 * has seen a later epoch than the fabric object contains. This report makes the controller begin
 * a recount. */
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
        int64_t index, epoch;
        struct imex_domain imex;
};

/* Returns whether the assignment is valid. The check is needed because the domain's UID becomes part of a
 * path and the other fields are written to files. Domain must be set. */
bool decision_assignment_valid(const struct decision_assignment *x);

/* The state that the daemon saves, so that it survives a restart of the container. */
struct decision_memory {
        /* The assignment in which IMEX runs, or that is about to start or end. */
        struct decision_assignment now;
        bool ready;      /* IMEX has been READY in `now`: other nodes may map this node's memory */
        int64_t closed;  /* no epoch up to this one is accepted (again); only `now` may still have one */
        int64_t seen;    /* the highest epoch that the daemon has seen in the fabric object */
        int64_t recount; /* the last recount that the daemon has seen in the fabric object; 0: none */
        const int64_t *left; /* epochs of this node in the fabric object in which IMEX never runs again */
        size_t n_left;       /* at most DAEMON_REPORT_LEFT_MAX */
};

enum decision_imex {
        DECISION_IMEX_NONE,   /* IMEX does not run, and was not stopped by this process */
        DECISION_IMEX_RUNS,   /* IMEX runs and is not READY */
        DECISION_IMEX_READY,  /* IMEX is READY */
        DECISION_IMEX_FAILS,  /* IMEX ends repeatedly, and is restarted after a pause */
        DECISION_IMEX_STOPS,  /* IMEX is being stopped after LEAVE or PAUSE; this is final */
        DECISION_IMEX_ENDED,  /* IMEX ended cleanly, so its peers know that it ended */
        DECISION_IMEX_KILLED, /* IMEX was killed or crashed after SIGTERM, so its peers do not know that it
                                 ended */
};

struct decision_input {
        const struct compute_domain_fabric *fabric; /* as last seen; NULL: never seen, or it does not count */
        /* The object exists, and its watch has not failed. If only silence shows that the connection is dead,
         * that takes up to 130 s (kube/kube_freshness.h). */
        bool current;
        bool restored; /* the fabric object is older than one seen before, and no recount has begun since */
        const char *node, *claim, *boot_id; /* the daemon's own node, claim and boot ID */
        const struct decision_memory *memory;
        bool inherited; /* memory.now belongs to an earlier Pod of this node */
        enum decision_imex imex;
        bool paused;    /* IMEX was stopped by PAUSE, not by LEAVE */
        bool withdrawn; /* the state file does not show readiness, or the plugin ignores the file; this was
                           already true before `use` was read */
        enum imex_use use; /* how claims on this node use the domain of memory.now */
        bool terminating;  /* the daemon has received SIGTERM, because the Pod is deleted */
        bool moved;        /* the node is in another partition now */
        bool outdated;     /* a new container would get other device nodes or files of the node */
};

enum decision_step {
        DECISION_STAY,     /* keep memory.now, if any, and show IMEX's readiness */
        DECISION_ENTER,    /* accept `assignment`: save it as memory.now, then START */
        DECISION_START,    /* start IMEX with memory.now, or restart it after it was killed */
        DECISION_WITHDRAW, /* withdraw readiness, or keep it withdrawn; then read `use` and decide again */
        DECISION_LEAVE,    /* withdraw readiness and stop IMEX, because the node leaves the domain */
        DECISION_PAUSE,    /* like LEAVE, but keep memory.now for a new container or the next daemon */
        DECISION_FORGET,   /* memory.now has ended: clear its folder, then save decision_left() */
        DECISION_EXIT
};

struct decision {
        enum decision_step step;
        struct decision_assignment assignment; /* for ENTER; borrows the strings of the fabric object */
        /* The reason to STAY without assignment, or against the fabric object; else "". Static. */
        const char *why;
        bool needs_reboot; /* `why` advises to reboot the node, also while IMEX runs */
        /* The reason why the node stays in a domain that it should leave; else "". Static. */
        const char *waits_for;
        /* The caller must save this memory before any action or report. Allocated in the arena. With ENTER,
         * memory.now is still the earlier assignment. */
        struct decision_memory memory;
};

void decision_make(const struct decision_input *in, struct arena *a, struct decision *ret);

/* Returns the other nodes in the IMEX domain of `now`, in the arena, with the fabric object's strings. The
 * list includes leaving nodes, which may map the memory of the others until they have left, and nodes whose
 * index is reserved, which may do so, too. Both are listed without an address. False: the fabric object lists
 * no other nodes. */
bool decision_peers(const struct compute_domain_fabric *f, const char *node,
                    const struct decision_assignment *now, struct arena *a, struct imex_peer **ret,
                    size_t *ret_n);

/* Returns the memory after `now` has ended for good, allocated in the arena. If `left` is full, the lowest
 * epoch is dropped: decision_make() adds it again when there is room, if the fabric object still contains
 * it. */
void decision_left(const struct decision_memory *m, struct arena *a, struct decision_memory *ret);
