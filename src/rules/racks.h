/* SPDX-License-Identifier: Apache-2.0 */
/* racks: when a rack has a ComputeDomain. Pure.
 *
 * One in the driver's namespace and in each namespace that is labelled for it, from the first Node on that
 * states the rack. A rack whose nodes reboot, or whose plugins are down, states nothing, but its Nodes are
 * there. So each ComputeDomain of a rack lists their names. Only the list and the name of the one in the
 * driver's namespace count: tenants can write those of the others. When the last of these Nodes is gone, each
 * ComputeDomain of the rack says since when. It is deleted a day later, or as soon as nobody uses it where
 * its namespace has lost the label. A copy that a person makes in another namespace belongs to the person. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/domain.h"
#include "base/mem.h"

enum { RACKS_EMPTY_S = 24 * 3600 };
/* More ComputeDomains of racks than this, in all namespaces together, are not made. */
enum { RACKS_MOST = 2000 };

/* Is it the ComputeDomain of a rack as we make them, and not one of a person who has set the label? */
bool racks_is_domain(const struct compute_domain *cd);

/* What is known of one Node that states the rack, or that its ComputeDomain lists. */
struct racks_node {
        const char *name;
        bool there;  /* there is such a Node */
        bool states; /* its ResourceSlice states this rack */
        bool moved;  /* it states another one */
};

struct racks_facts {
        const struct racks_node *nodes; /* sorted by name, each once */
        size_t n_nodes;
        bool wanted;    /* the namespace is the driver's, or labelled */
        bool lost;      /* the driver's namespace has no list of the rack's Nodes: some may be missing here */
        bool claimed;   /* a claim of its namespace has a channel of it */
        bool confirmed; /* none has, and the server itself has said so lately */
        bool stale;     /* a cache that these facts are from may miss something */
        int64_t now;    /* seconds since 1970 */
};

enum racks_step {
        RACKS_KEEP,
        RACKS_NOTE, /* write `nodes` and `empty_since` down */
        RACKS_ASK,  /* the server, whether a claim is there; then decide again */
        RACKS_HOLD, /* until the caches have caught up */
        RACKS_DELETE
};
struct racks_decision {
        enum racks_step step;
        const char *nodes;   /* value of CD_ANNOTATION_RACK_NODES: the Nodes of the rack, "a,b" */
        int64_t empty_since; /* of CD_ANNOTATION_RACK_EMPTY; 0: a Node is there, no annotation */
        int64_t recheck_s;   /* look again then though nothing happens; 0: no need */
};
void racks_decide(const struct compute_domain *cd, const struct racks_facts *f, struct arena *a,
                  struct racks_decision *ret);
