/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_kinds: decodes the kinds that only `doctor` reads. */
#pragma once

#include "api/kinds.h"
#include "base/json.h"
#include "kube/kube_object.h"

extern const struct kube_resource doctor_kinds_admission, doctor_kinds_bindings, doctor_kinds_cliques;

struct namespace_object {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
};
extern const struct jd_field namespace_object_fields[];

struct crd_version {
        const char *name;
        bool served;
        struct str properties; /* of the schema, as JSON */
};
struct crd_owner {
        const char *kind, *name;
};
struct crd_object {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
        struct crd_owner *owners;
        size_t n_owners;
        struct crd_version *versions;
        size_t n_versions;
        struct condition *conditions;
        size_t n_conditions;
};
extern const struct jd_field crd_object_fields[];
/* The first member of the table that the schema lacks; NULL: it has all of them. Schemas of an older version
 * lack members. A schema that is no JSON lacks the first one. */
const char *crd_object_lacks(const struct crd_version *x, const struct jd_field *table);

/* A ValidatingAdmissionPolicy, or a binding of one. */
struct admission_condition {
        const char *name, *expression;
};
struct admission_object {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
        struct admission_condition *conditions; /* spec.matchConditions */
        size_t n_conditions;
        const char *policy; /* only of a binding */
};
extern const struct jd_field admission_object_fields[];
/* The namespace of the account that a policy of the chart restricts: the driver's. NULL: the policy restricts
 * no account of the driver. *ret_controller: it is the account of the controller, not of the plugins. */
const char *admission_object_driver(const struct admission_object *x, struct arena *a, bool *ret_controller);

struct lease_object {
        struct kube_object o;
        const char *holder;
        int64_t seconds, renewed;
};
extern const struct jd_field lease_object_fields[];

/* A ComputeDomainClique of the Go driver. */
struct clique_object {
        struct kube_object o;
        const char *domain_uid;
};
extern const struct jd_field clique_object_fields[];
