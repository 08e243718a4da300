/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of one node. */
#include "controller/labels.h"

#include "rules/rules.h"

enum { MAX_BODY = 64 << 10 };

/* The claims that justify a label here. */
struct justified {
        const struct controller *c;
        const char *current;
        struct grant *list;
        size_t n, cap;
};

static void add_justified(void *u, const struct grant *x) {
        struct justified *j = u;
        const struct compute_domain *cd = records_domain(j->c, x->domain_uid);
        if (!cd || cd->o.meta.deleted || !streq(cd->o.meta.ns, x->ns))
                return;
        if (!mode_labels_node(j->c->mode, records_other_mode(j->c, cd), streq(x->domain_uid, j->current)))
                return;
        if (j->n == j->cap) {
                j->cap = j->cap ? 2 * j->cap : 4;
                j->list = xrealloc(j->list, j->cap * sizeof *j->list);
        }
        j->list[j->n++] = *x;
}

const char *labels_of(const struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        struct justified j = { .c = c, .current = n ? n->domain_uid : NULL };
        placements_on_node(c->placements, name, add_justified, &j);
        const char *uid = rules_label(j.current, j.list, j.n);
        free(j.list);
        return uid;
}

struct claimed {
        const struct compute_domain *cd;
        bool is;
};

static void look_at_claim(void *u, const struct grant *x) {
        struct claimed *k = u;
        k->is = k->is || (streq(x->domain_uid, k->cd->o.meta.uid) && streq(x->ns, k->cd->o.meta.ns));
}

/* May the label be written that the rules say, where it takes another's away? */
static bool may_write_label(struct controller *c, const struct node *n, const char *key) {
        const char *name = n->o.meta.name, *uid = n->domain_uid;
        const struct compute_domain *cd = records_domain(c, uid);
        struct claimed claimed = { .cd = cd };
        if (cd)
                placements_on_node(c->placements, name, look_at_claim, &claimed);
        struct rules_label_facts facts = { .ending = cd && cd->o.meta.deleted,
                                           .claimed = claimed.is,
                                           .stale = records_stale(c) != NULL };
        enum rules_label_step step = rules_label_step(uid, &facts);
        if (step == RULES_LABEL_ASK) {
                _cleanup_(buf_done) struct buf claim = BUF_INIT(1024);
                confirm_claim_key(uid, name, &claim);
                facts.confirmed =
                        cd ? confirm_absent(c->confirm, CONFIRM_CLAIM, cd->o.meta.ns, buf_str(&claim), key)
                           : confirm_absent(c->confirm, CONFIRM_DOMAIN, NULL, uid, key);
                step = rules_label_step(uid, &facts);
        }
        if (step == RULES_LABEL_HOLD)
                records_hold(c, key);
        return step == RULES_LABEL_WRITE;
}

void labels_reconcile(struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        struct objects_node_patch p = { 0 };
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "n/%s", name);
        if (n) {
                p.domain_uid = labels_of(c, name);
                p.set_domain = !streq(p.domain_uid, n->domain_uid) && may_write_label(c, n, buf_str(&key));
                p.set_gpu_clique =
                        rules_gpu_label(c->config->gpu_clique_label, n->gpu_clique, n->gpu_clique_ours,
                                        records_node_clique(c, name), &p.gpu_clique, &p.gpu_clique_ours);
        }
        if (p.set_domain || p.set_gpu_clique) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
                objects_node(&n->o.meta, &p, &b);
                writes_try(c->writes, &(struct writes_request){
                                              .requester = buf_str(&key),
                                              .verb = KUBE_MERGE_PATCH,
                                              .res = &kube_nodes,
                                              .name = name,
                                              .body = { buf_str(&b), b.n },
                                              .cache = c->nodes,
                                      });
        } else {
                writes_forget(c->writes, buf_str(&key));
        }
}
