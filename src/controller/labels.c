/* The labels of one node. */
#include "controller/controller.h"
#include "domain/rules.h"

enum { MAX_BODY = 64 << 10 };

/* The claims that justify a label here. */
struct justified {
        const struct controller *c;
        const char *current;
        struct rules_claim *list;
        size_t n, cap;
};

static void add_justified(void *u, const struct placement *x) {
        struct justified *j = u;
        const struct compute_domain *cd = controller__domain(j->c, x->domain_uid);
        if (!cd || cd->o.meta.deleted || !streq(cd->o.meta.ns, x->ns))
                return;
        if (!mode_labels_node(j->c->mode, controller__other_mode(j->c, cd), streq(x->domain_uid, j->current)))
                return;
        if (j->n == j->cap) {
                j->cap = j->cap ? 2 * j->cap : 4;
                j->list = xrealloc(j->list, j->cap * sizeof *j->list);
        }
        j->list[j->n++] = (struct rules_claim){ x->domain_uid, x->claim_uid, x->created };
}

const char *controller__label_of(const struct controller *c, const char *name) {
        const struct node *n = controller__node(c, name);
        struct justified j = { .c = c, .current = n ? n->domain_uid : NULL };
        placements_on_node(c->placements, name, add_justified, &j);
        const char *uid = rules_label(j.current, j.list, j.n);
        free(j.list);
        return uid;
}

void controller__reconcile_node(struct controller *c, const char *name) {
        const struct node *n = controller__node(c, name);
        struct objects_node_patch p = { 0 };
        struct buf key = BUF_INIT(1024);
        buf_addf(&key, "n/%s", name);
        if (n) {
                p.domain_uid = controller__label_of(c, name);
                p.set_domain = !streq(p.domain_uid, n->domain_uid);
                p.set_gpu_clique =
                        rules_gpu_label(c->config->gpu_clique_label, n->gpu_clique, n->gpu_clique_ours,
                                        controller__node_clique(c, name), &p.gpu_clique, &p.gpu_clique_ours);
        }
        if (p.set_domain || p.set_gpu_clique) {
                struct buf b = BUF_INIT(MAX_BODY);
                objects_node(&n->o.meta, &p, &b);
                writes_try(c->writes, &(struct writes_request){
                                              .requester = buf_str(&key),
                                              .verb = KUBE_MERGE_PATCH,
                                              .res = &kube_nodes,
                                              .name = name,
                                              .body = { buf_str(&b), b.n },
                                              .learn = c->nodes,
                                      });
                buf_done(&b);
        } else {
                writes_forget(c->writes, buf_str(&key));
        }
        buf_done(&key);
}
