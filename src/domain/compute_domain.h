/* compute_domain: the two API kinds as we cache them (reference sections 2.2 and 2.3). */
#ifndef DOMAIN_COMPUTE_DOMAIN_H
#define DOMAIN_COMPUTE_DOMAIN_H

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"

struct cd_node {
        const char *name, *ip, *clique_id, *status; /* status "Ready" or "NotReady" */
        int64_t index;                              /* -1 on a node without fabric */
};

struct cd_condition {
        const char *type, *status, *reason, *message;
        int64_t last_transition, observed_generation;
};

struct compute_domain {
        struct kube_object o;
        const char **finalizers;
        size_t n_finalizers;
        int64_t num_nodes;
        bool has_channel;               /* spec.channel is present */
        const char *template_name, *allocation_mode;
        const char *status;             /* NULL: none written yet */
        struct cd_node *nodes;
        size_t n_nodes;
        struct cd_condition *conditions;
        size_t n_conditions;
        int64_t nodes_ready, nodes_wanted, cliques;
};
extern const struct jd_field compute_domain_fields[];

struct clique_daemon {
        const char *node, *ip, *clique_id, *status;
        int64_t index;
};

struct clique {
        struct kube_object o;
        const char *domain_uid, *clique_id; /* from the labels */
        struct jd_pair *annotations;
        size_t n_annotations;
        bool has_owners;                    /* ownerReferences present: written by the Go driver */
        struct clique_daemon *daemons;
        size_t n_daemons;
};
extern const struct jd_field clique_fields[];

#endif
