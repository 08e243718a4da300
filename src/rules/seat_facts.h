/* SPDX-License-Identifier: Apache-2.0 */
/* seat_facts: what a seat is judged by, and what it comes to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "model/seat.h"

/* All that is known of one node with regard to one domain: what its seat there is judged by. */
struct seat_facts {
        const char *name;
        const struct node *node; /* NULL: there is no such Node */
        int64_t gone_since;      /* of a Node that is not there: when that was noticed; 0: only now */
        bool wanted;             /* a channel claim of the domain is allocated here */
        bool released;           /* not wanted, and the server itself has said lately that no claim brings the
                                    node in, and, where no daemon pod is seen, that there is none */
        const char *held_by; /* another domain carries the label ("ComputeDomain namespace/name", or what may
                                be said of it), NULL: none */
        const char *clique;  /* what the node's ResourceSlice states: "" without fabric, NULL when it states
                                nothing */
        const struct pod *pod; /* the domain's daemon pod here, the newest that has not ended; NULL: none */
        /* For the memory: another one whenever anything of the above, what it points to, or an entry of the
         * node in a clique of the domain may have changed. 0: not to be remembered. */
        uint64_t version;
};

enum formation_why {
        FORMATION_READY,
        FORMATION_STARTING, /* on its way; nothing wrong so far */
        FORMATION_FAILING,  /* something a person should look at */
        FORMATION_LOST,     /* the node or its pod does not answer */
        FORMATION_HELD,     /* another domain has the node */
        FORMATION_FULL,     /* no index is left */
        FORMATION_LEAVING,  /* nobody wants it here any more and its daemon is ending: it only keeps its index
                               until that is gone, and the server has said so, and that no claim wants it */
};

/* What a node of the domain comes to, in the order of the input. */
struct formed_seat {
        struct seat seat; /* as it shall be */
        int64_t written;  /* the index that its clique says, which others have seen; -1: none (yet) */
        bool listed;      /* it appears in status.nodes: it has an entry, or needs none */
        enum formation_why why;
        const char *message;                  /* for people, "" when ready */
        int64_t peers_connected, peers_known; /* as its daemon reports them, -1 unknown */
        bool wanted;
        bool unconfirmed;   /* it stays only until the server has said that nothing is there: to be asked */
        bool foreign;       /* its daemon is of the Go driver, which reports no peers */
        bool address_first; /* it gets an index with its address, for daemons of the Go driver in its clique
                             */
        size_t of_imex;     /* index into formation.imex, FORMATION_NO_IMEX without one */
};

/* A daemon pod that nothing fits for so long is worth a warning. */
enum { FORMATION_SCHEDULED_S = 10 };
/* A Node that has been gone for so long runs nothing any more: Kubernetes collects the Pods of a Node that is
 * gone after 40 s, and a kubelet that lives ends them within 10 s of that. */
enum { FORMATION_NODE_GONE_S = 60 };
