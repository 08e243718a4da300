/* SPDX-License-Identifier: Apache-2.0 */
/* formation: who belongs to a domain now, in which clique, with which index, and whether he is ready: the
 * heart of the controller, as a pure function of what is cached. */
#ifndef RULES_FORMATION_H
#define RULES_FORMATION_H

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/domain.h"
#include "model/fabric.h"

/* All that is known of one node with regard to one domain: what its seat there is judged by. */
struct seat_facts {
        const char *name;
        const struct node *node; /* NULL: there is no such Node */
        int64_t gone_since;      /* of a Node that is not there: when that was noticed; 0: only now */
        bool wanted;             /* a channel claim of the domain is allocated here */
        bool released; /* not wanted, and the server itself has said lately that no claim brings the node in
                        */
        const char *held_by; /* another domain carries the label ("ComputeDomain namespace/name", or what may
                                be said of it), NULL: none */
        const char *clique;  /* what the node's ResourceSlice states: "" without fabric, NULL when it states
                                nothing */
        const struct pod *pod; /* the domain's daemon pod here, the newest that has not ended; NULL: none */
        /* For the memory: another one whenever anything of the above, what it points to, or an entry of the
         * node in a clique of the domain may have changed. 0: not to be remembered. */
        uint64_t version;
};

/* What the last formation of a domain came to, fabric by fabric: where nothing has changed it is taken as it
 * was, so that a change costs its own fabric. The result is what it is without. */
struct formation_memory;
struct formation_memory *formation_memory_new(void);
void formation_memory_free(struct formation_memory *m);

struct formation_input {
        const struct compute_domain *cd;
        const struct seat_facts
                *nodes; /* sorted by name, each once: wanted, with a pod, or with an entry in a clique */
        size_t n_nodes;
        const struct clique *const *cliques;
        size_t n_cliques;
        const struct clique *const *lost; /* that somebody has deleted, as they were last, the latest first */
        size_t n_lost;
        int64_t max_nodes;
        bool dns_names;        /* gate IMEXDaemonsWithDNSNames */
        const char *infix;     /* of slot names, for cliques that do not have one yet */
        const char *daemonset; /* "namespace/name", for people */
        bool stale;  /* the caches of claims, Pods or Nodes may miss something: what they do not show frees no
                        index */
        int64_t now; /* seconds since 1970 */
        /* NULL: everything is found anew. Else the result's texts and lists live until the next formation
         * with this memory. */
        struct formation_memory *memory;
};

enum formation_why {
        FORMATION_READY,
        FORMATION_STARTING, /* on its way; nothing wrong so far */
        FORMATION_FAILING,  /* something a person should look at */
        FORMATION_LOST,     /* the node or its pod does not answer */
        FORMATION_HELD,     /* another domain has the node */
        FORMATION_FULL,     /* no index is left */
        FORMATION_LEAVING,  /* nobody wants it here any more and its daemon is ending: it only keeps its index
                               until that is gone */
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
        bool foreign;        /* its daemon is of the Go driver, which reports no peers */
        bool address_first;  /* it gets an index with its address, for daemons of the Go driver in its clique
                              */
        size_t of_fabric;    /* index into formation.fabrics, FORMATION_NO_FABRIC without one */
};
#define FORMATION_NO_FABRIC SIZE_MAX

/* A clique's object as it should be. */
struct formed_fabric {
        struct fabric fabric;     /* its seats sorted by index */
        const struct clique *old; /* NULL: to be created */
        size_t n_listed;          /* of the seats: those that status.nodes shows */
        bool adopted;             /* somebody in it runs with the Go driver's names */
        bool changed;             /* it differs from old */
        bool urgent;              /* a daemon waits for what changed */
};

/* A daemon pod that nothing fits for so long is worth a warning. */
enum { FORMATION_SCHEDULED_S = 10 };
/* A Node that has been gone for so long runs nothing any more: Kubernetes collects the Pods of a Node that is
 * gone after 40 s, and a kubelet that lives ends them within 10 s of that. */
enum { FORMATION_NODE_GONE_S = 60 };

struct formation {
        int64_t recheck_s; /* look again then though nothing happens; 0: no need */
        bool held;         /* somebody may stay only because a cache is stale: look again when none is */
        bool needs_lost;   /* a member has its index from a lost clique, and no entry yet that says so */
        struct formed_seat *members;
        size_t n_members;
        struct formed_fabric *fabrics;
        size_t n_fabrics;
        const char
                *hint; /* where to look for what a member that is starting waits for, NULL: nothing to say */
        const char *adopted; /* value of CD_ANNOTATION_ADOPTED that the domain should have, NULL: none */
};

void formation_make(const struct formation_input *in, struct arena *a, struct formation *ret);

/* printf into an arena. */
const char *formation_text(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
