/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placement.h"

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

static bool matches_labels(const struct pod_object *p, const struct node_object *n) {
        static const struct node_object none;
        const struct node_object *x = n ? n : &none;
        return node_selector_matches(&p->selector, x->node.o.meta.name, x->labels, x->n_labels, true);
}

enum placement placement_judge(const struct pod_object *p, const struct node_object *n) {
        return placement_taint(p, n)   ? PLACEMENT_TAINT
               : !matches_labels(p, n) ? PLACEMENT_LABELS
                                       : PLACEMENT_ALLOWED;
}
