/* SPDX-License-Identifier: Apache-2.0 */
/* node_selector: which Nodes a DaemonSet's Pods are for, by the nodeSelector and the required node affinity
 * of their spec. Pure. Source: k8s.io/api/core/v1, NodeSelector; k8s.io/component-helpers,
 * scheduling/corev1/nodeaffinity. */
#pragma once

#include "base/json.h"

struct node_requirement {
        const char *key, *op; /* In, NotIn, Exists, DoesNotExist, Gt, Lt */
        const char **values;
        size_t n_values;
};

struct node_term {
        struct node_requirement *expressions; /* all of them */
        size_t n_expressions;
        struct node_requirement *fields; /* of which there is one: metadata.name */
        size_t n_fields;
};

struct node_selector {
        struct jd_pair *labels; /* nodeSelector: all of them */
        size_t n_labels;
        struct node_term *terms; /* any of them; none: they demand nothing */
        size_t n_terms;
};

/* Reads {"nodeSelector": {...}, "nodeSelectorTerms": [...]}; what it points to is in the arena. */
int node_selector_parse(const char *text, struct arena *a, struct node_selector *ret, struct err *e);
bool node_selector_matches(const struct node_selector *s, const char *node, const struct jd_pair *labels,
                           size_t n_labels);
