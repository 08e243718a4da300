/* SPDX-License-Identifier: Apache-2.0 */
/* racks: decides whether a rack has a ComputeDomain. Pure.
 *
 * As soon as the ResourceSlice of a node states a rack, the rack has one ComputeDomain in the driver's
 * namespace and one in each labelled namespace. While the nodes of a rack reboot or their plugins are down,
 * no ResourceSlice states the rack, although the Node objects still exist. So each ComputeDomain of a rack
 * lists the names of the rack's Nodes. The controller trusts only the list and the name of the ComputeDomain
 * in the driver's namespace, because tenants can change those in other namespaces. When the last of these
 * Nodes no longer exists, each ComputeDomain of the rack records the time, and the controller deletes it a
 * day later. If its namespace has lost the label, the controller deletes it as soon as no claim uses it. A
 * copy that a user makes in another namespace belongs to that user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/domain.h"
#include "base/mem.h"

enum { RACKS_EMPTY_S = 24 * 3600 };
/* The maximum number of ComputeDomains of racks, in all namespaces together. */
enum { RACKS_MAX = 2000 };
/* The maximum number of new racks that one node may state within RACKS_EMPTY_S, so that a node that changes
 * its rack again and again does not use up the racks of the others. */
enum { RACKS_PER_NODE = 8 };

/* Returns whether the controller created this ComputeDomain for a rack. The label alone is no evidence,
 * because a user can set it on any ComputeDomain. */
bool racks_is_domain(const struct compute_domain *cd);

/* A node whose ResourceSlice states the rack, or that the rack's ComputeDomain lists. */
struct racks_node {
        const char *name;
        bool there;  /* the Node exists */
        bool states; /* its ResourceSlice states this rack */
        bool moved;  /* its ResourceSlice states another rack */
};

struct racks_facts {
        const struct racks_node *nodes; /* sorted by name, without duplicates */
        size_t n_nodes;
        bool wanted;    /* the namespace is the driver's, or is labelled */
        bool lost;      /* the driver's namespace has no list of the rack's Nodes, so `nodes` may be
                           incomplete */
        bool claimed;   /* a claim in the namespace has a channel of the ComputeDomain */
        bool confirmed; /* the API server has confirmed lately that no claim has such a channel */
        bool stale;     /* a cache from which these facts come may be stale */
        int64_t now;    /* seconds since 1970 */
};

enum racks_step {
        RACKS_KEEP,
        RACKS_NOTE,  /* write `nodes` and `empty_since` */
        RACKS_ASK,   /* ask the API server whether a claim exists, then decide again */
        RACKS_PAUSE, /* wait until the caches are current */
        RACKS_DELETE
};
struct racks_decision {
        enum racks_step step;
        const char *nodes;   /* value of CD_ANNOTATION_RACK_NODES: the Nodes of the rack, "a,b" */
        int64_t empty_since; /* value of CD_ANNOTATION_RACK_EMPTY; 0: a Node exists, so there is no
                                annotation */
        int64_t recheck_s;   /* decide again after this time, even if nothing changes; 0: no need */
};
void racks_decide(const struct compute_domain *cd, const struct racks_facts *f, struct arena *a,
                  struct racks_decision *ret);

/* Checks the conditions of every deletion: the API server has confirmed that no claim uses the ComputeDomain;
 * no cache is stale; and the rack has had no Node for a day, or the namespace does not want the
 * ComputeDomain. Returns NULL if they hold, otherwise a static description of the violation. */
const char *racks_check(const struct racks_facts *f, const struct racks_decision *d);
