/* SPDX-License-Identifier: Apache-2.0 */
/* rules: decides the labels and indices of nodes, and which claim templates belong to a ComputeDomain. These
 * decisions must never be wrong, so they are pure functions of lists: they do no I/O, use no clock and
 * remember nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/kinds.h"
#include "base/mem.h"
#include "model/domain.h"
#include "model/allocation.h"

/* The labelling rule: returns the UID of the ComputeDomain whose label the node should carry, or NULL for no
 * label. A claim counts only if its ComputeDomain exists in the claim's namespace and is not being deleted.
 * The ComputeDomain in the present label keeps the node as long as it has such a claim. After that, the
 * ComputeDomain with the oldest claim gets the node. The result points into `current` or `claims`. */
const char *rules_label(const char *current, const struct allocation *claims, size_t n);

/* The facts about a node that carries the label of one ComputeDomain and should carry another label, or
 * none. */
struct rules_label_facts {
        bool ending;    /* its ComputeDomain is being deleted, which cannot be revoked */
        bool claimed;   /* an allocated claim would justify the label, but the mode forbids it */
        bool stale;     /* a cache from which these facts come may be stale */
        bool confirmed; /* the API server has confirmed lately that the ComputeDomain, or the claim, does not
                           exist */
};
enum rules_label_step {
        RULES_LABEL_WRITE,
        RULES_LABEL_ASK,  /* ask the API server for the confirmation, then decide again */
        RULES_LABEL_PAUSE /* wait until the caches are current */
};
/* Decides whether the label of a node may be changed now. A label is removed only when the controller knows
 * that nothing justifies it, because the daemon on the node may be in use. A cache that does not show a claim
 * is not enough. A node without a label can get a new one at once. */
enum rules_label_step rules_label_step(const char *current, const struct rules_label_facts *f);
/* Checks the conditions of every label that the controller writes: a claim justifies the new label, and the
 * present label is replaced only if it is known that no claim justifies it any more. Returns NULL if they
 * hold, otherwise a static description of the violation. */
const char *rules_label_check(const char *current, const char *right, const struct allocation *claims,
                              size_t n, const struct rules_label_facts *f);

/* The facts when the cache shows that the label of a node has changed. */
struct rules_relabel_facts {
        const char *is, *right; /* the present label, and the label by the rules; NULL: none */
        bool sending;           /* a write of this controller is under way */
        bool wrote;             /* this controller has written the label before */
        const char *written;    /* the label that this controller wrote last */
};
/* Returns whether another client wrote the label. Returns false if the label is right, or if this controller
 * wrote it: the reason for that label may have ended since then. */
bool rules_relabelled(const struct rules_relabel_facts *f);

/* Returns whether this claim template belongs to the ComputeDomain. A workload template belongs to it if it
 * has the namespace of the ComputeDomain and one of the two names in its spec. A daemon template belongs to
 * it if it is in a namespace of the driver. Other templates with the label belong to somebody else. If the
 * ComputeDomain does not exist (`cd` NULL), its spec is unknown. In this case, a workload template belongs to
 * it if the template has the driver's finalizer. */
bool rules_own_template(const struct compute_domain *cd, const char *const *namespaces, size_t n_namespaces,
                        const struct rct *r);

/* Decides the value of the node label GPU_CLIQUE_LABEL. `current` is its present value, and `ours` the value
 * that the controller wrote last (both NULL when absent). `clique` is the clique ID in the node's
 * ResourceSlice; NULL: there is no slice. Returns true if *ret_label and *ret_ours must be written; NULL in
 * one of them removes the label or the annotation. The controller never changes a value that another writer
 * set. */
bool rules_gpu_label(bool enabled, const char *current, const char *ours, const char *clique,
                     const char **ret_label, const char **ret_ours);

/* A node and its index; -1: none. */
struct rules_index {
        const char *node;
        int64_t index;
};
struct rules_indices_input {
        const struct rules_index *held; /* the present indices */
        size_t n_held;
        const int64_t *freed; /* the indices that were used before; the index that has been free the longest
                                 is first */
        size_t n_freed;
        const char *const *members; /* the nodes that need an index, without duplicates */
        size_t n_members;
        int64_t max_nodes; /* all indices are below this number */
};
/* Assigns the indices of the members. Fills ret_indices (n_members elements in the order of `members`), where
 * -1 means that no index is free, and *ret_freed with the new list of freed indices (arena). A node that
 * holds an index keeps it. If two nodes hold the same index, the first in `held` keeps it. */
void rules_indices(const struct rules_indices_input *in, struct arena *a, struct rules_index *ret_indices,
                   const int64_t **ret_freed, size_t *ret_n_freed);

/* Parses and renders the comma-separated list of freed indices in an object. Items that are not numbers are
 * skipped. `freed` NULL: the list is empty. The results are in the arena. */
size_t rules_freed_parse(const char *freed, struct arena *a, int64_t **ret);
const char *rules_freed_render(const int64_t *freed, size_t n, struct arena *a);

/* Returns whether a container of the Pod cannot start, or has failed and has not been restarted yet. */
bool rules_is_down(const struct pod *p);
