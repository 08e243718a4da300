/* SPDX-License-Identifier: Apache-2.0 */
/* racks: decides whether a rack has a ComputeDomain. Pure.
 *
 * A rack has one ComputeDomain in the driver's namespace, and one in each namespace that is labelled for it,
 * as soon as a Node states the rack. While the nodes of a rack reboot, or their plugins are down, no node
 * states the rack, but its Nodes exist. So each ComputeDomain of a rack lists the names of its Nodes. Only
 * the list and the name of the ComputeDomain in the driver's namespace count, because tenants can write those
 * of the others. When the last of these Nodes no longer exists, each ComputeDomain of the rack records the
 * time. It is deleted a day later. If its namespace has lost the label, it is deleted as soon as no claim
 * uses it. A copy that a person makes in another namespace belongs to that person. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/domain.h"
#include "base/mem.h"

enum { RACKS_EMPTY_S = 24 * 3600 };
/* The limit of ComputeDomains of racks, in all namespaces together. */
enum { RACKS_MAX = 2000 };

/* Is this the ComputeDomain of a rack that the controller made, and not one of a person who has set the
 * label? */
bool racks_is_domain(const struct compute_domain *cd);

/* What is known of one Node that states the rack, or that the rack's ComputeDomain lists. */
struct racks_node {
        const char *name;
        bool there;  /* the Node exists */
        bool states; /* its ResourceSlice states this rack */
        bool moved;  /* it states another rack */
};

struct racks_facts {
        const struct racks_node *nodes; /* sorted by name, each once */
        size_t n_nodes;
        bool wanted;    /* the namespace is the driver's, or is labelled */
        bool lost;      /* the driver's namespace has no list of the rack's Nodes, so `nodes` may be
                           incomplete */
        bool claimed;   /* a claim in its namespace has a channel of it */
        bool confirmed; /* the API server has confirmed lately that no claim has one */
        bool stale;     /* a cache that these facts are from may be stale */
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
        int64_t empty_since; /* value of CD_ANNOTATION_RACK_EMPTY; 0: a Node exists, no annotation */
        int64_t recheck_s;   /* decide again after this time, even if nothing changes; 0: no need */
};
void racks_decide(const struct compute_domain *cd, const struct racks_facts *f, struct arena *a,
                  struct racks_decision *ret);

/* What must hold of every deletion: no claim uses the ComputeDomain, as the API server has confirmed; no
 * cache is stale; and the rack has had no Node for a day, or the namespace does not want it. NULL: it holds.
 * Otherwise what does not; static. */
const char *racks_check(const struct racks_facts *f, const struct racks_decision *d);
