/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_kinds.h"

#include <string.h>

#include "api/names.h"

const struct kube_resource doctor_kinds_admission = {
        "admissionregistration.k8s.io", "v1",  "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",    false, NULL
};
const struct kube_resource doctor_kinds_bindings = {
        "admissionregistration.k8s.io",     "v1",  "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding", false, NULL
};
const struct kube_resource doctor_kinds_cliques = { CD_GROUP,       "v1beta1", "computedomaincliques",
                                                    CD_CLIQUE_KIND, true,      NULL };

const struct jd_field namespace_object_fields[] = {
        JD_OBJ(struct namespace_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct namespace_object, "metadata>labels", labels),
        JD_END,
};

static const struct jd_field f_crd_version[] = {
        JD_STR(struct crd_version, "name", name),
        JD_BOOL(struct crd_version, "served", served),
        JD_RAW(struct crd_version, "schema>openAPIV3Schema>properties", properties),
        JD_END,
};
static const struct jd_field f_crd_owner[] = { JD_STR(struct crd_owner, "kind", kind),
                                               JD_STR(struct crd_owner, "name", name), JD_END };
const struct jd_field crd_object_fields[] = {
        JD_OBJ(struct crd_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct crd_object, "metadata>labels", labels),
        JD_LIST(struct crd_object, "metadata>ownerReferences", owners, struct crd_owner, f_crd_owner),
        JD_LIST(struct crd_object, "spec>versions", versions, struct crd_version, f_crd_version),
        JD_LIST(struct crd_object, "status>conditions", conditions, struct condition, condition_fields),
        JD_END,
};

/* Whether the properties have the member at the path "a>b>c". */
static bool properties_have(yyjson_val *properties, const char *path) {
        for (;;) {
                size_t n = strcspn(path, ">");
                yyjson_val *member = yyjson_obj_getn(properties, path, n);
                if (!member || !path[n])
                        return member;
                properties = yyjson_obj_get(member, "properties");
                path += n + 1;
        }
}

const char *crd_object_lacks(const struct crd_version *x, const struct jd_field *table) {
        struct err e;
        yyjson_doc *doc = json_parse(x->properties, 0, &e);
        const char *lacks = NULL;
        for (const struct jd_field *f = table; f->name && !lacks; f++)
                if (*f->name && !str_starts(f->name, "metadata") &&
                    !properties_have(yyjson_doc_get_root(doc), f->name))
                        lacks = f->name;
        yyjson_doc_free(doc);
        return lacks;
}

static const struct jd_field f_admission_condition[] = {
        JD_STR(struct admission_condition, "name", name),
        JD_STR(struct admission_condition, "expression", expression),
        JD_END,
};
const struct jd_field admission_object_fields[] = {
        JD_OBJ(struct admission_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct admission_object, "metadata>labels", labels),
        JD_LIST(struct admission_object, "spec>matchConditions", conditions, struct admission_condition,
                f_admission_condition),
        JD_STR(struct admission_object, "spec>policyName", policy),
        JD_END,
};

/* The chart names the conditions, and writes accounts as 'system:serviceaccount:NAMESPACE:NAME'. */
const char *admission_object_driver(const struct admission_object *x, struct arena *a, bool *ret_controller) {
        static const char account[] = "'system:serviceaccount:";
        *ret_controller = false;
        for (size_t i = 0; i < x->n_conditions; i++) {
                const struct admission_condition *c = &x->conditions[i];
                const char *at = c->expression ? strstr(c->expression, account) : NULL;
                *ret_controller = streq(c->name, "is-our-controller");
                if (!at || (!*ret_controller && !streq(c->name, "is-our-kubelet-plugin")))
                        continue;
                at += sizeof account - 1;
                const char *ns = arena_strndup(a, at, strcspn(at, ":'"));
                if (str_is_dns_label(ns))
                        return ns;
        }
        return NULL;
}

const struct jd_field lease_object_fields[] = {
        JD_OBJ(struct lease_object, "metadata", o.meta, kube_f_meta),
        JD_STR(struct lease_object, "spec>holderIdentity", holder),
        JD_INT(struct lease_object, "spec>leaseDurationSeconds", seconds),
        JD_TIME(struct lease_object, "spec>renewTime", renewed),
        JD_END,
};

const struct jd_field clique_object_fields[] = {
        JD_OBJ(struct clique_object, "metadata", o.meta, kube_f_meta),
        JD_STR(struct clique_object, "metadata>labels>" CD_LABEL, domain_uid),
        JD_END,
};
