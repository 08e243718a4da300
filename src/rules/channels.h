/* SPDX-License-Identifier: Apache-2.0 */
/* channels: who has which IMEX channel of a fabric. Pure.
 *
 * A ComputeDomain has a channel of its own from its first claim on a fabric on. The id is equal on all nodes,
 * and is given to nobody else as long as anything may still hold it:
 *
 * - What a node holds wins: what a plugin reports and the table does not have is entered.
 * - An object is believed when it names itself as the one that its table was begun in (`table_of`): a copy
 * that somebody puts back does not, so neither plugins nor we believe its entries.
 * - A table that may have been lost (it was a copy, is younger than a claim on its nodes or by far than a
 *   node that does not report, or a report names another object) assigns nothing until each Node has reported
 *   to it, is gone or is out of service. What is reported is confirmed at once. A fabric that is new waits
 * for no report.
 * - A new table assigns and frees nothing for a minute after a Node was deleted: containers may still run
 * there with channels that no report names, and the Node is no member of the new table. If nobody remembers
 * the table before it, nobody knows which Nodes were deleted, and a table of Nodes that are older waits for
 * its first minute.
 * - An entry whose owner is gone, or is needed no more where none is free, is `releasing` first: plugins
 * refuse it. It goes when a minute is over, no claim names the owner, which the server itself has said, and
 * each node has reported without it and has shown life since (its kubelet renewed its Lease between two lists
 *   that were begun then), or is gone or out of service. That a Node is called Ready proves nothing: it is
 *   called so for a while after it is cut off.
 * - Ids are given in turn, so that each comes again as late as can be, and not in the write that frees them.
 *
 * Where this cannot be known, an id stays where it is: ids are many. Times are seconds since 1970 by the
 * clock of the controller that decides, and count from when it saw something first: the clocks of nodes, of
 * the API server and of other controllers may be wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/channel_report.h"
#include "model/fabric.h"
#include "rules/assignment.h"

enum {
        CHANNELS_QUARANTINE_S = 60,
        CHANNELS_LIFE_S = 30, /* a Lease shows life that was renewed so long after the mark, which the plugin
                                 has read by then */
        /* A plugin reports within a second of its start; before that its Pod says what it held before. */
        CHANNELS_SETTLED_S = 30,
        CHANNELS_RETRY_S = 60, /* until the Leases are looked at again */
        CHANNELS_EMPTY_S = 24 * 3600,
        CHANNELS_NEW_S =
                60 /* at most between the slice of a new fabric's first node and the fabric's object */
};

/* A node that states the fabric or is marked as its member, that the table lists, or of which a plugin
 * reports something about it. */
struct channels_node {
        const char *name;
        bool gone;      /* nothing can run on it: no such Node for a minute, or out of service */
        bool states;    /* its ResourceSlice states this fabric */
        int64_t stated; /* when that was created, 0: unknown */
        bool moved;     /* it states another one, or none */
        bool marked;    /* the annotation CD_ANNOTATION_CLIQUE of the Node names this fabric */
        bool is_ready;  /* the Node, as far as that says anything: whether a look at its Lease is worth it */
        const char *rack; /* as its devices state it, NULL: none */
        /* What the kubelet plugin on it reports; of several Pods the newest, but for what they hold, which
         * counts together. */
        bool reported;   /* there is a report that can be read */
        bool settled;    /* and its Pod has been Ready for CHANNELS_SETTLED_S */
        const char *uid; /* of the fabric's object that it sees, NULL: it says nothing about this fabric */
        int64_t count;   /* of its channels, -1: not told */
        const char *imex, *withheld; /* the version of its IMEX; why it offers no devices; NULL: not told */
        const struct report_hold *held; /* of this fabric */
        size_t n_held;
        int64_t alive_after; /* its kubelet renewed its Lease after this, 0: nobody knows */
};

/* A ComputeDomain that has an entry, or an allocated claim on a node of the fabric. */
struct channels_owner {
        const char *uid;
        const char *ns, *name; /* NULL: unknown */
        bool lives;            /* it is there, is not being deleted and was formed in this mode */
        bool ends;             /* it is there, and is being deleted: that is never taken back */
        bool claimed;   /* a claim of it is allocated on one of the nodes, or where no fabric is known */
        bool wants;     /* one is on a node that states the fabric */
        int64_t oldest; /* when the oldest of those was created, 0: none */
        bool confirmed; /* the server itself has said lately that it is gone, if it does not live, and has
                           no claim on the nodes */
};

struct channels_facts {
        const char *fabric;                      /* clique id */
        const struct compute_domain_fabric *old; /* NULL: there is none */
        /* What the object had that somebody has deleted, until another one has its table. */
        const struct fabric_channel *remembered;
        size_t n_remembered;
        int64_t known_since;            /* when this controller saw the object first; 0: there is none */
        const int64_t *releasing_since; /* the same of the entries of `old` that are being released */
        bool remembers;                 /* that object is known, had it entries or not, or there was none */
        int64_t vanished_s; /* so long containers may still run on Nodes that have gone lately; 0: none */
        const struct channels_node *nodes; /* sorted by name, each once */
        size_t n_nodes;
        const struct channels_owner *owners; /* sorted by uid, each once */
        size_t n_owners;
        /* The IMEX domains that daemons of ours run there, NULL: they run none. */
        const struct assignment *assignments;
        const char *recount_why; /* why no node gets an assignment, for people; NULL: each does */
        const char *full_why;    /* which nodes get none in the domain that stands; NULL: each does */
        bool stale;              /* a cache that these facts are from may miss something */
        /* When the Leases were listed last, and before that; 0: never. */
        int64_t leases_at, leases_before;
        int64_t now;
};

enum channels_step { CHANNELS_KEEP, CHANNELS_CREATE, CHANNELS_PATCH, CHANNELS_DELETE };

struct channels_decision {
        enum channels_step step;
        bool urgent;     /* somebody waits for it */
        bool hold;       /* something should go, and stays because a cache is stale */
        bool ask_leases; /* of the nodes; then decide again */
        /* Of these owners the server is to be asked whether they are gone and have no claim. */
        const struct channels_owner **ask;
        size_t n_ask;
        struct fabric_channel *assigned; /* entries of `fabric` that are new */
        size_t n_assigned;
        int64_t recheck_s; /* look again then though nothing happens; 0: no need */
        size_t waiting;    /* ComputeDomains that want a channel and get none */
        size_t releasing;
        struct compute_domain_fabric
                fabric; /* as it should be; strings are those of the facts, or from the arena */
};

/* For how many seconds yet containers may run on a Node that was deleted, with channels that a new or
 * restored table does not list. 0: none may. */
int64_t channels_untold_s(const struct channels_facts *f);

void channels_decide(const struct channels_facts *f, struct arena *a, struct channels_decision *ret);
