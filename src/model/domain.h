/* SPDX-License-Identifier: Apache-2.0 */
/* domain: decodes a ComputeDomain, with the members that the controller and the plugin cache. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "kube/kube_object.h"
#include "model/domain_node.h"

struct cd_condition {
        const char *type, *status, *reason, *message;
        int64_t last_transition, observed_generation;
};
extern const struct jd_field cd_condition_fields[];

struct cd_channel {
        const char *template_name, *allocation_mode; /* name and allocation mode of the claim template for
                                                        workloads; either may be NULL */
        const char *claim_name;           /* the claim that pods on several nodes share; NULL: none */
        const char *shared_template_name; /* the claim template for such claims; NULL: none */
};

struct compute_domain {
        struct kube_object o;
        const char **finalizers;
        size_t n_finalizers;
        int64_t num_nodes;
        const struct cd_channel *channel; /* NULL: the object has no spec.channel, which only an old schema
                                             admits */
        const char *status;               /* of an enum domain_status, NULL: none written yet */
        const char *mode;                 /* annotation CD_ANNOTATION_MODE, NULL: none */
        const char *rack;                 /* label CD_LABEL_RACK, NULL: none */
        const char *start_gate;           /* annotation CD_ANNOTATION_START_GATE, NULL: none */
        /* annotations CD_ANNOTATION_RACK_UID, _NODES and _EMPTY, NULL: none */
        const char *rack_uid, *rack_nodes, *rack_empty;
        struct domain_node *nodes;
        size_t n_nodes;
        struct cd_condition *conditions;
        size_t n_conditions;
        int64_t nodes_ready, nodes_wanted, cliques;
};
extern const struct jd_field compute_domain_fields[], cd_node_fields[];

/* Returns whether pods of a ComputeDomain with this value of CD_ANNOTATION_START_GATE wait for a decision of
 * the controller. A value that is neither "true" nor "false" is an error, for which they wait, too. */
bool domain_is_gated(const char *start_gate);
/* Returns whether the ComputeDomain asks for a claim, or a template of claims, for the shared device. */
bool domain_shares(const struct compute_domain *cd);
/* Returns whether this finalizer belongs to another controller. The garbage collector's finalizers "orphan"
 * and "foregroundDeletion" do not count: they only choose how an object is deleted (k8s.io/apimachinery,
 * meta/v1/types.go). */
bool domain_finalizer_is_foreign(const char *finalizer);
/* Returns whether the ComputeDomain must end: it is being deleted, and no finalizer of another controller
 * remains. The result never changes back to false, because the API server adds no finalizer to an object that
 * is being deleted. */
bool domain_ends(const struct compute_domain *cd);
/* Returns whether a claim may bring a node into the ComputeDomain. `current` is the UID of the ComputeDomain
 * that the node is in now; NULL: it is in none. While the finalizer of another controller keeps a deleted
 * ComputeDomain, its nodes stay in it, and no other nodes join. */
bool domain_takes(const struct compute_domain *cd, const char *current);
