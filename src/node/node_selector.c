/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_selector.h"

#include <string.h>

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
static const struct jd_field fields[] = {
        JD_MAP(struct node_selector, "nodeSelector", labels),
        JD_LIST(struct node_selector, "nodeSelectorTerms", terms, struct node_term, term_fields),
        JD_END,
};

int node_selector_parse(const char *text, struct arena *a, struct node_selector *ret, struct err *e) {
        *ret = (struct node_selector){ 0 };
        return jd_decode_text(fields, str_from(text), "node selector", a, ret, e);
}

/* `value` NULL: the Node has no such label. */
static bool meets(const struct node_requirement *r, const char *value) {
        int64_t have, want;
        bool listed = false;
        for (size_t i = 0; i < r->n_values; i++)
                listed = listed || streq(value, r->values[i]);
        if (streq(r->op, "In"))
                return value && listed;
        if (streq(r->op, "NotIn"))
                return !value || !listed;
        if (streq(r->op, "Exists"))
                return value;
        if (streq(r->op, "DoesNotExist"))
                return !value;
        if (r->n_values != 1 || !value || !str_to_i64(str_from(value), &have) ||
            !str_to_i64(str_from(r->values[0]), &want))
                return false;
        return streq(r->op, "Gt") ? have > want : streq(r->op, "Lt") && have < want;
}

static bool meets_term(const struct node_term *t, const char *node, const struct jd_pair *labels,
                       size_t n_labels) {
        bool is = t->n_expressions + t->n_fields > 0; /* an empty term matches no Node */
        for (size_t i = 0; i < t->n_expressions; i++)
                is = is && meets(&t->expressions[i], jd_pair_get(labels, n_labels, t->expressions[i].key));
        for (size_t i = 0; i < t->n_fields; i++)
                is = is && streq(t->fields[i].key, "metadata.name") && meets(&t->fields[i], node);
        return is;
}

bool node_selector_matches(const struct node_selector *s, const char *node, const struct jd_pair *labels,
                           size_t n_labels) {
        for (size_t i = 0; i < s->n_labels; i++)
                if (!streq(jd_pair_get(labels, n_labels, s->labels[i].key), s->labels[i].value))
                        return false;
        bool any = !s->n_terms;
        for (size_t i = 0; i < s->n_terms; i++)
                any = any || meets_term(&s->terms[i], node, labels, n_labels);
        return any;
}
