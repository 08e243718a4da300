/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/member_view.h"

#include "cli/rack_list.h"
#include "rules/member_gather.h"

static const struct node *member_view_node(void *u, const char *name) {
        const struct node_object *n = view_find(u, VIEW_NODES, NULL, name);
        return n ? &n->node : NULL;
}

static const char *member_view_clique(void *u, const char *node) {
        return inventory_slice_clique(u, node);
}

static const struct daemon_pod *member_view_daemon(void *u, const char *node) {
        const struct daemon_pod *best = NULL;
        const struct view *v = u;
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
        if (p->daemon && streq(p->node, node))
                best = daemon_pod_choose(best, p->daemon);
        return best;
}

static const struct compute_domain_fabric *member_view_fabric(void *u, const char *clique) {
        return clique && *clique ? view_find(u, VIEW_FABRICS, NULL, clique) : NULL;
}

static void member_view_fabrics(void *u, member_fabric_fn *fn, void *x) {
        const struct view *v = u;
        VIEW_EACH(v, VIEW_FABRICS, struct compute_domain_fabric, f)
        fn(x, f);
}

static void member_view_allocations(void *u, const char *domain_uid, member_allocation_fn *fn, void *x) {
        const struct view *v = u;
        VIEW_EACH(v, VIEW_CLAIMS, struct claim_object, c)
        if (streq(c->place.domain_uid, domain_uid))
                fn(x, &(struct allocation){ .claim_uid = c->claim.o.meta.uid,
                                            .ns = c->claim.o.meta.ns,
                                            .domain_uid = c->place.domain_uid,
                                            .node = c->place.node,
                                            .created = c->claim.o.meta.created });
}

size_t member_view_facts(struct view *v, const struct compute_domain *cd, const struct member_facts **ret) {
        const struct member_source s = { member_view_node,
                                         member_view_clique,
                                         member_view_daemon,
                                         member_view_fabric,
                                         member_view_fabrics,
                                         member_view_allocations,
                                         v };
        return member_gather(&s, cd->o.meta.uid, cd->o.meta.ns, v->a, ret);
}

bool member_view_make(struct view *v, const struct compute_domain *cd, struct membership *ret) {
        static const enum view_kind kinds[] = { VIEW_NODES, VIEW_SLICES, VIEW_FABRICS };
        const struct member_facts *list;
        view_find_driver(v);
        if (v->hosts || v->own_channels || !v->driver_ns)
                return false;
        view_read(v, VIEW_PODS, v->driver_ns);
        view_read_all(v, VIEW_CLAIMS, cd->o.meta.ns);
        bool complete = view_state(v, VIEW_PODS, v->driver_ns) == VIEW_COMPLETE &&
                        view_state(v, VIEW_CLAIMS, cd->o.meta.ns) == VIEW_COMPLETE;
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                view_read(v, kinds[i], NULL);
                complete = complete && view_state(v, kinds[i], NULL) == VIEW_COMPLETE;
        }
        if (!complete)
                return false;
        size_t n = member_view_facts(v, cd, &list);
        membership_make(list, n, v->a, ret);
        return true;
}
