/* SPDX-License-Identifier: Apache-2.0 */
/* rosters: which node has which seat in which IMEX domain of a fabric, where a resident agent on each node
 * runs nvidia-imex. Pure.
 *
 * A seat is told to its node by the object of the fabric. The node alone decides when it starts and ends
 * IMEX for it, so a seat that is not wanted any more is `leaving` until its agent has said that it has left
 * it, or nothing can run on the node. Until then nobody else gets its index, and its address is told to no
 * other domain: nvidia-imex blocks for good a pair of nodes that have met with different node lists.
 *
 * Each seat has an epoch, which no other seat of the fabric ever has. An agent that has said that it left an
 * epoch never takes it up again, whatever it is told: so a node that comes back later gets a new one, while
 * one that is wanted again before its agent has spoken goes on as if nothing had been.
 *
 * A domain that stands is the fabric's own: each node of the fabric is wanted in it, whatever ComputeDomains
 * use the node, and it is never ordered to end. How many places it has is written with its first node,
 * because all its daemons must have the same list of nodes, and holds until its last node has left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/fabric.h"

/* What an agent says on its own Pod. */
struct rosters_report {
        const char *domain; /* UID of the domain for which IMEX runs, or is about to; NULL: none */
        const char *infix;  /* of the names that it runs with */
        int64_t index, epoch;
        const int64_t *left; /* the epochs that it has left, of those that the fabric lists for its node */
        size_t n_left;
        int64_t seen; /* the highest epoch that it has ever been told */
};

/* What is known of a node. */
struct rosters_node {
        const char *name;
        const char *ip;      /* of its agent; "" while unknown */
        const char *boot_id; /* as its kubelet tells it; "" or NULL while unknown */
        const char *wanted;  /* UID of the domain that a claim brings it into; NULL: none */
        bool released;       /* nobody wants it, and that is known */
        bool quiet;          /* nothing of ours can run here: no agent's Pod, no Node, or out-of-service */
        bool ending;         /* its agent ends: it keeps the place that it has, and takes no other */
        struct rosters_report report;
};

/* A ComputeDomain whose IMEX agents run, or the fabric itself, of the domain that stands in it. */
struct rosters_domain {
        struct fabric_owner owner;
        const char *infix; /* of its names */
        bool stands;       /* it is the fabric's, and goes with its last node: nobody deletes it */
        bool gone;         /* it does not exist any more, and that is known */
        bool idle;         /* no node has had a place in it for ROSTERS_IDLE_S, and that is known */
        bool ending; /* it is being deleted, which is never taken back: its nodes leave even under grants */
};

/* A domain without a place is listed for so long yet, so that a node that comes back soon gets another index
 * than the one that was just left. Of so many domains the object has room; those without a place go first,
 * and then no further one is entered. */
enum { ROSTERS_IDLE_S = 60, ROSTERS_DOMAINS_MOST = 1000 };

/* A node's word about epochs counts so far beyond what the object has, and no further: whoever has a node's
 * token must not be able to use up all epochs. */
#define ROSTERS_EPOCHS_AHEAD (INT64_C(1) << 32)

struct rosters_input {
        const struct fabric_domain *old; /* as the object has them */
        size_t n_old;
        int64_t epoch;                    /* the last that was given, as the object has it */
        const struct rosters_node *nodes; /* sorted by name, each once */
        size_t n_nodes;
        const struct rosters_domain *domains; /* sorted by UID, each once */
        size_t n_domains;
        int64_t slots; /* of a domain that is new: how many nodes it can have */
        bool lost;     /* the object may not know all seats that are held: no new one is given */
};

struct rosters {
        struct fabric_domain *domains;
        size_t n_domains;
        int64_t epoch;
        bool changed;
        const char *
                *full; /* nodes that are wanted in the domain that stands, and for which no index is left */
        size_t n_full;
        int64_t slots; /* how many it has */
        size_t n_refused; /* domains that nodes are wanted in, and for which the object has no room */
};

/* In the arena, with strings of the input. A wanted node for which no index is left has no seat. */
void rosters_make(const struct rosters_input *in, struct arena *a, struct rosters *ret);

/* The port of nvidia-imex in a domain: another one for nearly each, so that what is late from a domain
 * before finds nobody who listens. Below those that the kernel gives to outgoing connections (32768 to
 * 60999): one that an agent's own connection to the API server has cannot be listened at. */
enum { ROSTERS_PORT_FIRST = 28000, ROSTERS_PORT_LAST = 32095 };
int64_t rosters_port(const char *infix);
