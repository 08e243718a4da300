/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the decisions that must never be wrong, as pure functions of lists. No I/O, no clock, no memory of
 * their own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/domain.h"
#include "model/grant.h"

/* The labelling rule: whose label the node should carry, NULL for nobody's. A grant counts here when its
 * domain exists in the claim's namespace and is not being deleted. The domain that holds the node keeps it
 * while it is justified; after that the one with the oldest claim gets it. The result points into `current`
 * or `claims`. */
const char *rules_label(const char *current, const struct grant *claims, size_t n);

/* What is known when a node carries the label of one domain and should carry another's, or none. */
struct rules_label_facts {
        bool ending;    /* its domain is being deleted, which is never taken back */
        bool claimed;   /* a claim is allocated here that would justify it, but the mode forbids the label */
        bool stale;     /* a cache that these facts are from may miss something */
        bool confirmed; /* the server itself has said lately that the domain, or the claim, is not there */
};
enum rules_label_step {
        RULES_LABEL_WRITE,
        RULES_LABEL_ASK, /* the server, whether it is so */
        RULES_LABEL_HOLD /* until the caches have caught up */
};
/* A label goes only when it is known, and not when a cache fails to show it, that nothing justifies it: its
 * daemon may be in use. One that comes where none is takes nothing away. */
enum rules_label_step rules_label_step(const char *current, const struct rules_label_facts *f);

/* What is known when the cache shows that a node's label has changed. */
struct rules_relabel_facts {
        const char *is, *right; /* the label now, and the one that the rules say; NULL: none */
        bool sending;           /* a write of ours is on its way */
        bool wrote;             /* we have written the label before: */
        const char *written;    /* so, the last time */
};
/* Did another client write it? Not where the label is right, nor where it is as we wrote it: what justified
 * it may have ended meanwhile. */
bool rules_relabelled(const struct rules_relabel_facts *f);

/* Does this claim template belong to the domain? Its workload template has the namespace and the name that
 * the domain says; its daemon template is in a namespace of ours. What else carries the label is somebody
 * else's business. Of a domain that does not exist (NULL) nobody knows the name: then what carries our
 * finalizer as well. */
bool rules_own_template(const struct compute_domain *cd, const char *const *namespaces, size_t n_namespaces,
                        const struct rct *r);

/* The node label GPU_CLIQUE_LABEL. `current` is its value, `ours` what we wrote last (both NULL when absent),
 * `clique` what the node's slice states, NULL when it states nothing. True: write *ret_label and *ret_ours,
 * where NULL removes. A value that somebody else wrote is never touched. */
bool rules_gpu_label(bool enabled, const char *current, const char *ours, const char *clique,
                     const char **ret_label, const char **ret_ours);

/* A node and its index; -1: none. */
struct rules_index {
        const char *node;
        int64_t index;
};
/* The index rule. `held` are the indices as they are, `freed` those that were used before, longest free
 * first, `members` the nodes that shall have an index, without duplicates. Fills ret_indices (n_members
 * elements, same order) and *ret_freed with the new list of freed indices (arena). An index of -1 says that
 * none is left. A node that holds an index keeps it, unless two hold the same one: then the first in `held`
 * does. */
void rules_indices(const struct rules_index *held, size_t n_held, const int64_t *freed, size_t n_freed,
                   const char *const *members, size_t n_members, int64_t max_nodes, struct arena *a,
                   struct rules_index *ret_indices, const int64_t **ret_freed, size_t *ret_n_freed);

/* The list of freed indices as objects have it, by comma: what is no number is left out; NULL: none. In the
 * arena. */
size_t rules_freed_parse(const char *freed, struct arena *a, int64_t **ret);
const char *rules_freed_render(const int64_t *freed, size_t n, struct arena *a);

/* Its container cannot be started, or has ended and is not started again yet. */
bool rules_is_down(const struct pod *p);
