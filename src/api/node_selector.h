/* SPDX-License-Identifier: Apache-2.0 */
/* node_selector: determines on which Nodes a Pod may run, from the nodeSelector and the required node
 * affinity of its spec. Pure. Source: k8s.io/api/core/v1, NodeSelector; k8s.io/component-helpers,
 * scheduling/corev1/nodeaffinity. */
#pragma once

#include "kube/kube_object.h"

/* A Node with its labels, for a cache. */
struct labelled_node {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
};
extern const struct jd_field labelled_node_fields[];

struct node_requirement {
        const char *key, *op; /* `op` is In, NotIn, Exists, DoesNotExist, Gt or Lt */
        const char **values;
        size_t n_values;
};

struct node_term {
        struct node_requirement *expressions; /* all must match */
        size_t n_expressions;
        struct node_requirement *fields; /* all must match; the only field is metadata.name */
        size_t n_fields;
};

struct node_selector {
        struct jd_pair *labels; /* nodeSelector; all must match */
        size_t n_labels;
        struct node_term *terms; /* one must match; without terms, every Node matches */
        size_t n_terms;
};
/* Decodes the spec of a Pod. */
extern const struct jd_field node_selector_spec_fields[];

/* Reads {"nodeSelector": {...}, "nodeSelectorTerms": [...]}. The data that *ret points to is in the arena. */
int node_selector_parse(const char *text, struct arena *a, struct node_selector *ret, struct err *e);
/* Judges the Node with this name and these labels; name NULL: unknown. A later version of Kubernetes may have
 * operators and fields that this version does not know: `unknown` is the result of such a requirement. */
bool node_selector_matches(const struct node_selector *s, const char *node, const struct jd_pair *labels,
                           size_t n_labels, bool unknown);
