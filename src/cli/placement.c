/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placement.h"

#include <string.h>

/* ---- labels ---- */

static bool is_greater(const char *label, const struct node_requirement *r, bool less) {
        int64_t x, limit;
        if (!label || r->n_values != 1 || !str_to_i64(str_from(label), &x) ||
            !str_to_i64(str_from(r->values[0]), &limit))
                return false;
        return less ? x < limit : x > limit;
}

static bool requirement_holds(const struct node_requirement *r, const char *value) {
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
                return is_greater(value, r, *r->op == 'L');
        return true;
}

/* A term without requirements matches no node. The only field is metadata.name. */
static bool matches_term(const struct node_term *t, const struct node_object *n) {
        for (size_t i = 0; i < t->n_labels; i++)
                if (!requirement_holds(&t->labels[i],
                                       n ? jd_pair_get(n->labels, n->n_labels, t->labels[i].key) : NULL))
                        return false;
        for (size_t i = 0; i < t->n_fields; i++)
                if (streq(t->fields[i].key, "metadata.name") &&
                    !requirement_holds(&t->fields[i], n ? n->node.o.meta.name : NULL))
                        return false;
        return t->n_labels || t->n_fields;
}

static bool matches_labels(const struct pod_object *p, const struct node_object *n) {
        for (size_t i = 0; i < p->n_node_selector; i++)
                if (!n || !streq(jd_pair_get(n->labels, n->n_labels, p->node_selector[i].key),
                                 p->node_selector[i].value))
                        return false;
        for (size_t i = 0; i < p->n_node_terms; i++)
                if (matches_term(&p->node_terms[i], n))
                        return true;
        return p->n_node_terms == 0;
}

/* ---- taints ---- */

static bool is_for_state(const struct node_taint *t) {
        static const char *const keys[] = { "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
                                            "node.kubernetes.io/unschedulable" };
        return has_string(keys, ARRAY_LEN(keys), t->key);
}

/* Without a key, the operator Exists tolerates each taint. Without an effect, a toleration is for each. */
static bool tolerates(const struct toleration *x, const struct node_taint *t) {
        const char *op = str_or(x->op, "Equal");
        if (x->effect && *x->effect && !streq(x->effect, t->effect))
                return false;
        if (x->key && *x->key && !streq(x->key, t->key))
                return false;
        return streq(op, "Equal") ? streq(str_or(x->value, ""), str_or(t->value, "")) : true;
}

const struct node_taint *placement_taint(const struct pod_object *p, const struct node_object *n) {
        for (size_t i = 0; n && i < n->n_all_taints; i++) {
                const struct node_taint *t = &n->all_taints[i];
                bool tolerated = is_for_state(t) ||
                                 (!streq(t->effect, "NoSchedule") && !streq(t->effect, "NoExecute"));
                for (size_t k = 0; !tolerated && k < p->n_tolerations; k++)
                        tolerated = tolerates(&p->tolerations[k], t);
                if (!tolerated)
                        return t;
        }
        return NULL;
}

enum placement placement_judge(const struct pod_object *p, const struct node_object *n) {
        return placement_taint(p, n)   ? PLACEMENT_TAINT
               : !matches_labels(p, n) ? PLACEMENT_LABELS
                                       : PLACEMENT_ALLOWED;
}
