/* SPDX-License-Identifier: Apache-2.0 */
/* seated: what a ComputeDomain whose IMEX agents run comes to, in the terms of a formation, so that its
 * status says what it says of one with daemon Pods. Nothing is decided here: who has which place is in the
 * objects of the fabrics (rules/rosters). Pure. */
#pragma once

#include "model/fabric.h"
#include "rules/formation.h"

/* A node that a claim brings into the domain, or that has a place in it. */
struct seated_facts {
        /* Its `pod` is that of the node's agent, whatever domain it is in. */
        struct seat_facts node;
        const char *fabric;             /* clique id of the fabric that lists the node; NULL: none does */
        const struct fabric_seat *seat; /* its place; NULL: none */
        bool leaving;                   /* it has to give the place up */
        bool joined;                    /* its agent reports this very place */
        bool told;                      /* its agent has seen this place, at least */
        bool busy;                      /* its agent is in another domain yet */
        bool full;                      /* the domain has no place left on its fabric */
};

/* `list` sorted by name, each once. `daemonset`: "namespace name" of the agents', for people. */
void seated_make(const struct seated_facts *list, size_t n, const char *daemonset, int64_t now,
                 struct arena *a, struct formation *ret);
