/* SPDX-License-Identifier: Apache-2.0 */
/* seat: a node's place in an IMEX domain, as the entries of a ComputeDomainClique have it, as status.nodes of
 * the ComputeDomain repeats it for people, and as the rules give it. */
#pragma once

#include <stdint.h>

struct seat {
        const char *node;
        const char *ip;        /* "" while unknown; of an object, NULL when it has none */
        const char *clique_id; /* "" on a node without fabric, NULL while unknown */
        const char *status;    /* "Ready" or "NotReady" */
        int64_t index;         /* -1: none, because the node has no fabric or because none is left */
        const char *boot_id;   /* of the node, as its kubelet tells it; "" or NULL while unknown, and in
                                  status.nodes */
};
