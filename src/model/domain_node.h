/* SPDX-License-Identifier: Apache-2.0 */
/* domain_node: describes a node in status.nodes of a ComputeDomain, or in a ComputeDomainClique of the Go
 * driver. */
#pragma once

#include <stdint.h>

struct domain_node {
        const char *node;
        const char *ip;        /* "" while it is unknown; NULL: the object has no address */
        const char *clique_id; /* "" on a node without a partition, NULL while unknown */
        const char *status;    /* "Ready" or "NotReady" */
        int64_t index;         /* -1: the node has none, because it has no partition or because no index is
                                  free */
};
