/* SPDX-License-Identifier: Apache-2.0 */
/* membership: how the nodes of a ComputeDomain are, for its status. Nothing is decided here: which node has
 * which assignment is in the objects of the partitions (rules/assignment). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/clique.h"
#include "model/domain.h"
#include "model/fabric.h"

/* A node that a claim brings into the domain, or that has an assignment in it. */
struct member_facts {
        const char *name;
        const struct node *node; /* NULL: there is no such Node */
        bool wanted;             /* a channel claim of the domain is allocated here */
        const char *clique;      /* what the node's ResourceSlice states: "" without fabric, NULL: nothing */
        const struct pod *pod;   /* of the node's daemon, whatever domain it is in; NULL: none */
        bool held;               /* the node has no daemon of ours, and the label of another domain */
        const char *fabric;      /* clique id of the partition whose object lists the node; NULL: none does */
        const struct fabric_assignment *assignment; /* there; NULL: none */
        bool joined;                                /* its daemon reports this very assignment */
        bool seen;                                  /* its daemon has seen this assignment, at least */
        bool busy;                                  /* its daemon is still in another domain */
        const char *other_boot; /* the boot ID that its daemon has reported, where the Node has another one:
                                   it gets no assignment (rules/assignment); NULL: they agree */
        bool full;              /* the domain has no free index in the partition */
};

enum member_why {
        MEMBER_READY,
        MEMBER_STARTING, /* on its way; nothing wrong so far */
        MEMBER_FAILING,  /* something a person should look at */
        MEMBER_LOST,     /* the node or its pod does not answer */
        MEMBER_HELD,     /* the daemon of another domain has the node */
        MEMBER_FULL,     /* no index is left */
        MEMBER_LEAVING,  /* no claim wants it here any more, and its daemon has yet to leave */
};

struct member {
        struct domain_node entry; /* as status.nodes shows it */
        bool listed;              /* status.nodes shows it: it has an assignment, or needs none */
        bool wanted;
        enum member_why why;
        const char *message;     /* for people, "" when ready */
        int64_t peers_connected; /* as its daemon reports them, -1: unknown */
};

/* The members of a domain in one partition. */
struct member_clique {
        const char *id;
        size_t n_listed;
};

struct membership {
        struct member *members; /* in the order of the facts */
        size_t n_members;
        struct member_clique *cliques;
        size_t n_cliques;
        bool no_daemon; /* a member waits for a daemon Pod */
        const char *go; /* the Go driver formed the domain, whose daemons serve it: what people should know;
                           NULL: it did not */
};

/* What is known of a domain that the Go driver formed. */
struct go_facts {
        const struct compute_domain *cd;
        const struct clique *const *cliques; /* none: its daemons write status.nodes themselves */
        size_t n_cliques;
        const struct pod *const *pods; /* of its daemons, that have not ended */
        size_t n_pods;
};

/* `list` sorted by name, each once. All is in the arena, or borrowed from the facts. */
void membership_make(const struct member_facts *list, size_t n, struct arena *a, struct membership *ret);
void membership_make_go(const struct go_facts *f, struct arena *a, struct membership *ret);
/* NULL: the domain has no members in this clique. */
const struct member_clique *membership_clique(const struct membership *m, const char *id);
