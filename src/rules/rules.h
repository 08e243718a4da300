/* SPDX-License-Identifier: Apache-2.0 */
/* rules: decisions that must never be wrong, as pure functions of lists. They do no I/O, use no clock and
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
 * label. A grant counts here if its ComputeDomain exists in the claim's namespace and is not being deleted.
 * The ComputeDomain in the present label keeps the node as long as it has such a grant. After that, the
 * ComputeDomain with the oldest claim gets the node. The result points into `current` or `claims`. */
const char *rules_label(const char *current, const struct allocation *claims, size_t n);

/* What is known when a node carries the label of one ComputeDomain and should carry another label, or
 * none. */
struct rules_label_facts {
        bool ending;    /* its ComputeDomain is being deleted, which cannot be revoked */
        bool claimed;   /* an allocated claim would justify the label, but the mode forbids it */
        bool stale;     /* a cache that these facts are from may be stale */
        bool confirmed; /* the API server has confirmed lately that the ComputeDomain, or the claim, does not
                           exist */
};
enum rules_label_step {
        RULES_LABEL_WRITE,
        RULES_LABEL_ASK,  /* ask the API server to confirm it */
        RULES_LABEL_PAUSE /* wait until the caches are current */
};
/* A label is removed only when it is known that nothing justifies it, because its daemon may be in use. A
 * cache that does not show a claim is not enough. A new label on a node without one can be written at
 * once. */
enum rules_label_step rules_label_step(const char *current, const struct rules_label_facts *f);
/* What must hold of every label that is written: a claim justifies the new one, and the present one is
 * replaced only if no claim justifies it and its end is known. NULL: it holds. Otherwise what does not;
 * static. */
const char *rules_label_check(const char *current, const char *right, const struct allocation *claims,
                              size_t n, const struct rules_label_facts *f);

/* What is known when the cache shows that the label of a node has changed. */
struct rules_relabel_facts {
        const char *is, *right; /* the present label, and the label by the rules; NULL: none */
        bool sending;           /* a write of this controller is under way */
        bool wrote;             /* this controller has written the label before */
        const char *written;    /* the label that it wrote last */
};
/* Did another client write the label? No, if the label is right. No, if it is the label that this controller
 * wrote: its justification may have ended since. */
bool rules_relabelled(const struct rules_relabel_facts *f);

/* Does this claim template belong to the ComputeDomain? A workload template belongs to it if it has the
 * namespace and name in the spec of the ComputeDomain. A daemon template belongs to it if it is in a
 * namespace of the driver. Other templates with the label belong to somebody else. If the ComputeDomain does
 * not exist (NULL), its spec is unknown: then a workload template belongs to it if it has the driver's
 * finalizer. */
bool rules_own_template(const struct compute_domain *cd, const char *const *namespaces, size_t n_namespaces,
                        const struct rct *r);

/* The node label GPU_CLIQUE_LABEL. `current` is its value, and `ours` the value that the controller wrote
 * last (both NULL when absent). `clique` is the clique ID in the node's ResourceSlice; NULL: there is no
 * slice. Returns true if *ret_label and *ret_ours must be written, where NULL removes. A value that another
 * writer set is never changed. */
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
        const int64_t *freed; /* the indices that were used before, the longest free first */
        size_t n_freed;
        const char *const *members; /* the nodes that need an index, without duplicates */
        size_t n_members;
        int64_t max_nodes; /* indices are below it */
};
/* The index rule. Fills ret_indices (n_members elements in the order of `members`), where -1 means that no
 * index is free, and *ret_freed with the new list of freed indices (arena). A node that holds an index keeps
 * it. If two nodes hold the same index, the first in `held` keeps it. */
void rules_indices(const struct rules_indices_input *in, struct arena *a, struct rules_index *ret_indices,
                   const int64_t **ret_freed, size_t *ret_n_freed);

/* Parses and renders the comma-separated list of freed indices in an object. Items that are no number are
 * skipped. NULL: none. The results are in the arena. */
size_t rules_freed_parse(const char *freed, struct arena *a, int64_t **ret);
const char *rules_freed_render(const int64_t *freed, size_t n, struct arena *a);

/* Is a container of the Pod unable to start, or ended and not restarted yet? */
bool rules_is_down(const struct pod *p);
