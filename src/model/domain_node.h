/* SPDX-License-Identifier: Apache-2.0 */
/* domain_node: describes a node in status.nodes of a ComputeDomain, or in a ComputeDomainClique of the Go
 * driver. */
#pragma once

#include <stdint.h>

/* The status of a ComputeDomain and of its nodes. */
enum domain_status {
        DOMAIN_STATUS_NONE,
        DOMAIN_STATUS_OTHER,
        DOMAIN_NOT_READY,
        DOMAIN_READY,
        DOMAIN_STATUSES
};
/* Returns DOMAIN_STATUS_NONE for NULL and "", and DOMAIN_STATUS_OTHER for an unknown name. */
enum domain_status domain_status_decode(const char *name);
const char *domain_status_name(enum domain_status s);

struct domain_node {
        const char *node;
        const char *ip;        /* "" while it is unknown; NULL: the object has no address */
        const char *clique_id; /* "" on a node without a partition, NULL while unknown */
        const char *status;    /* the name of an enum domain_status */
        int64_t index;         /* -1: the node has none, because it has no partition or because no index is
                                  free */
};
