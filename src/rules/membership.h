/* SPDX-License-Identifier: Apache-2.0 */
/* membership: describes the nodes of a ComputeDomain for its status. The module decides nothing: the
 * assignments are in the fabric objects of the partitions (rules/assignment). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/clique.h"
#include "model/domain.h"
#include "model/fabric.h"

/* A node with an allocated claim of the ComputeDomain, or with an assignment in it. */
struct member_facts {
        const char *name;
        const struct node *node; /* NULL: the Node does not exist */
        bool wanted;             /* a channel claim of the ComputeDomain is allocated here */
        const char *clique;      /* clique ID in the node's ResourceSlice; "": the node has no partition;
                                    NULL: there is no slice */
        const struct pod *pod;   /* Pod of the node's daemon, in any IMEX domain; NULL: none */
        bool occupied;           /* the node has no daemon of this driver, but the label of another
                                    ComputeDomain */
        const char *fabric;      /* clique ID of the partition whose fabric object lists the node; NULL: no
                                    fabric object lists it */
        const struct fabric_assignment *assignment; /* the node's assignment in that object; NULL: none */
        bool joined;                                /* its daemon reports exactly this assignment */
        bool seen;                                  /* its daemon has at least seen this assignment */
        bool busy;                                  /* its daemon is still in another IMEX domain */
        const char *other_boot; /* the boot ID in its daemon's report, if the Node has a different one; the
                                   node then gets no assignment (rules/assignment). NULL: both are equal */
        bool full;              /* the IMEX domain has no free index in the partition */
};

enum member_why {
        MEMBER_READY,
        MEMBER_STARTING, /* not ready yet; no problem so far */
        MEMBER_FAILING,  /* a person should look at the node */
        MEMBER_LOST,     /* the Node or its daemon does not answer */
        MEMBER_OCCUPIED, /* the daemon of another ComputeDomain uses the node */
        MEMBER_FULL,     /* no index is free */
        MEMBER_LEAVING,  /* no claim needs the node any more, and its daemon has not left yet; or only the
                            report  of its daemon brings it here */
};

struct member {
        struct domain_node entry; /* as status.nodes shows it */
        bool listed;              /* status.nodes shows the node, because it has an assignment or needs
                                     none */
        bool wanted;
        enum member_why why;
        const char *message;     /* for people; "": the node is ready */
        int64_t peers_connected; /* from its daemon's report; -1: unknown */
};

/* The members of a ComputeDomain in one partition. */
struct member_clique {
        const char *id;
        size_t n_listed;
};

struct membership {
        struct member *members; /* in the order of the facts */
        size_t n_members;
        struct member_clique *cliques; /* sorted by ID */
        size_t n_cliques;
        bool no_daemon; /* a member has no daemon Pod yet */
        const char *go; /* an explanation for people if the Go driver formed the ComputeDomain and its daemons
                           serve it; otherwise NULL */
};

/* The facts about a ComputeDomain that the Go driver formed. */
struct go_facts {
        const struct compute_domain *cd;
        const struct clique *const *cliques; /* empty: the Go driver's daemons write status.nodes
                                                themselves */
        size_t n_cliques;
        const struct pod *const *pods; /* the Pods of its daemons, without Pods that have ended */
        size_t n_pods;
};

/* Describes the members of a ComputeDomain; membership_make_go() does so for one that the Go driver formed.
 * `list` is sorted by name, without duplicates. The result is in the arena, or borrowed from the facts. */
void membership_make(const struct member_facts *list, size_t n, struct arena *a, struct membership *ret);
void membership_make_go(const struct go_facts *f, struct arena *a, struct membership *ret);
/* Returns whether the member is ready, and connected to all other nodes in its partition as far as its daemon
 * reports. A node without a partition has no peers. */
bool membership_connected(const struct membership *all, const struct member *m);
/* Returns the members in a partition; NULL: the ComputeDomain has no members there. */
const struct member_clique *membership_clique(const struct membership *m, const char *id);
