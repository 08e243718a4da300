/* SPDX-License-Identifier: Apache-2.0 */
#include "api/node_selector.h"

#include "api/kinds.h"

const struct jd_field labelled_node_fields[] = {
        JD_OBJ(struct labelled_node, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct labelled_node, "metadata>labels", labels),
        JD_END,
};

static const struct jd_field requirement_fields[] = {
        JD_STR(struct node_requirement, "key", key, .required = true),
        JD_STR(struct node_requirement, "operator", op, .required = true),
        JD_STRS(struct node_requirement, "values", values),
        JD_END,
};
static const struct jd_field term_fields[] = {
        JD_LIST(struct node_term, "matchExpressions", expressions, struct node_requirement,
                requirement_fields),
        JD_LIST(struct node_term, "matchFields", fields, struct node_requirement, requirement_fields),
        JD_END,
};
const struct jd_field node_selector_spec_fields[] = {
        JD_MAP(struct node_selector, "nodeSelector", labels),
        JD_LIST(struct node_selector,
                "affinity>nodeAffinity>requiredDuringSchedulingIgnoredDuringExecution>nodeSelectorTerms",
                terms, struct node_term, term_fields),
        JD_END,
};
static const struct jd_field text_fields[] = {
        JD_MAP(struct node_selector, "nodeSelector", labels),
        JD_LIST(struct node_selector, "nodeSelectorTerms", terms, struct node_term, term_fields),
        JD_END,
};

int node_selector_parse(const char *text, struct arena *a, struct node_selector *ret, struct err *e) {
        *ret = (struct node_selector){ 0 };
        return jd_decode_text(text_fields, str_from(text), "node selector", a, ret, e);
}

/* Gt, and Lt if `less`. */
static bool is_beyond(const struct node_requirement *r, const char *value, bool less) {
        int64_t have, limit;
        if (!value || r->n_values != 1 || !str_to_i64(str_from(value), &have) ||
            !str_to_i64(str_from(r->values[0]), &limit))
                return false;
        return less ? have < limit : have > limit;
}

/* `value` NULL: the Node has no such label. */
static bool meets(const struct node_requirement *r, const char *value, bool unknown) {
        bool listed = value && has_string(r->values, r->n_values, value);
        if (streq(r->op, "In"))
                return listed;
        if (streq(r->op, "NotIn"))
                return !listed;
        if (streq(r->op, "Exists"))
                return value;
        if (streq(r->op, "DoesNotExist"))
                return !value;
        if (streq(r->op, "Gt") || streq(r->op, "Lt"))
                return is_beyond(r, value, streq(r->op, "Lt"));
        return unknown;
}

bool node_selector_matches(const struct node_selector *s, const char *node, const struct jd_pair *labels,
                           size_t n_labels, bool unknown) {
        for (size_t i = 0; i < s->n_labels; i++)
                if (!streq(jd_pair_get(labels, n_labels, s->labels[i].key), s->labels[i].value))
                        return false;
        bool any = !s->n_terms;
        for (size_t i = 0; i < s->n_terms; i++) {
                const struct node_term *t = &s->terms[i];
                bool all = t->n_expressions + t->n_fields > 0; /* an empty term matches no Node */
                for (size_t k = 0; k < t->n_expressions; k++)
                        all = all && meets(&t->expressions[k],
                                           jd_pair_get(labels, n_labels, t->expressions[k].key), unknown);
                for (size_t k = 0; k < t->n_fields; k++)
                        all = all &&
                              (streq(t->fields[k].key, "metadata.name") ? meets(&t->fields[k], node, unknown)
                                                                        : unknown);
                any = any || all;
        }
        return any;
}
