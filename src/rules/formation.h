/* SPDX-License-Identifier: Apache-2.0 */
/* formation: who belongs to a domain now, in which clique, with which index, and whether he is ready: the
 * heart of the controller, as a pure function of what is cached. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/domain.h"
#include "model/clique.h"
#include "rules/seat_facts.h"

/* What the last formation of a domain came to, one IMEX domain after the other: where nothing has changed it
 * is taken as it was, so that a change costs its own IMEX domain. The result is what it is without. */
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

#define FORMATION_NO_IMEX SIZE_MAX

/* A clique's object as it should be. */
struct formed_imex {
        struct imex_domain imex;  /* its seats sorted by index */
        const struct clique *old; /* NULL: to be created */
        size_t n_listed;          /* of the seats: those that status.nodes shows */
        bool adopted;             /* somebody in it runs with the Go driver's names */
        bool changed;             /* it differs from old */
        bool urgent;              /* a daemon waits for what changed */
};

struct formation {
        int64_t recheck_s; /* look again then though nothing happens; 0: no need */
        bool held;         /* somebody may stay only because a cache is stale: look again when none is */
        bool needs_lost;   /* a member has its index from a lost clique, and no entry yet that says so */
        struct formed_seat *members;
        size_t n_members;
        struct formed_imex *imex;
        size_t n_imex;
        const char
                *hint; /* where to look for what a member that is starting waits for, NULL: nothing to say */
        const char *adopted; /* value of CD_ANNOTATION_ADOPTED that the domain should have, NULL: none */
};

void formation_make(const struct formation_input *in, struct arena *a, struct formation *ret);
