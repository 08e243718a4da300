/* SPDX-License-Identifier: Apache-2.0 */
/* domain_node: a node of a ComputeDomain as objects list it: status.nodes of the ComputeDomain, and the
 * entries of the Go driver's ComputeDomainCliques. */
#pragma once

#include <stdint.h>

struct domain_node {
        const char *node;
        const char *ip;        /* "" while unknown; of an object, NULL when it has none */
        const char *clique_id; /* "" on a node without fabric, NULL while unknown */
        const char *status;    /* "Ready" or "NotReady" */
        int64_t index;         /* -1: none, because the node has no fabric or because none is left */
};
