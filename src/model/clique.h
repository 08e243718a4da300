/* SPDX-License-Identifier: Apache-2.0 */
/* clique: the IMEX domain that a ComputeDomain has of its own in an NVLink partition, and its object, the
 * ComputeDomainClique (reference section 2.3). The partition itself is model/fabric. */
#pragma once

#include "base/json.h"
#include "kube/kube_object.h"
#include "model/seat.h"

struct imex_domain {
        const char *clique_id;
        struct seat *seats;
        size_t n_seats;
        /* To the byte as the annotations of the object have them, NULL without: */
        const char *freed; /* the indices that were used before, longest free first, by comma */
        const char *infix; /* of the names by which daemons find each other; NULL: the Go driver's names */
        const char *num_nodes; /* how many nodes the ComputeDomain asks for */
};

struct clique_owner {
        const char *uid;
};

/* A ComputeDomainClique. */
struct clique {
        struct kube_object o;
        const char *domain_uid; /* label; so is the clique's id */
        struct imex_domain imex;
        struct clique_owner *owners; /* present: written by the Go driver */
        size_t n_owners;
};
extern const struct jd_field clique_fields[];

/* Name of the clique object: "<domain uid>.<clique id>". */
void clique_object_name(const char *domain_uid, const char *clique_id, struct buf *out);
