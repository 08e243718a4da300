/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/member_view.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "cli/rack_list.h"
#include "model/channel_report.h"
#include "rules/member_gather.h"

/* A node where a claim of the ComputeDomain is allocated. */
struct member_place {
        const struct claim_object *claim;
        const char *node;
};

/* The source of the rules. */
struct member_view {
        struct view *v;
        const struct member_place *places; /* of the ComputeDomain */
        size_t n_places;
        const char *clique; /* only those on nodes of this partition; NULL: all */
};

struct member_places {
        struct arena *a;
        struct member_place *list;
        size_t n, cap;
};

static void member_view_add_place(struct member_places *x, const struct claim_object *c, const char *node) {
        ARENA_GROW(x->a, x->list, x->n, x->cap);
        x->list[x->n++] = (struct member_place){ c, node };
}

/* Whether the plugin reports that its node holds a channel of the ComputeDomain, or that a Prepare waits for
 * one. */
static bool reports_channel_of(struct arena *a, const struct plugin_pod *p, const char *uid) {
        struct channel_report report;
        struct err e;
        if (!p->host_channels || channel_report_decode(str_from(p->host_channels), a, &report, &e) < 0)
                return false;
        for (size_t i = 0; i < report.n_fabrics; i++) {
                const struct channel_report_fabric *f = &report.fabrics[i];
                if (has_string(f->asks, f->n_asks, uid))
                        return true;
                for (size_t k = 0; k < f->n_held; k++)
                        if (streq(f->held[k].owner, uid))
                                return true;
        }
        return false;
}

/* The allocation of a shared claim names no node, so the reports of the plugins show its nodes. */
static struct member_places member_view_places(struct view *v, const char *uid) {
        struct member_places ret = { .a = v->a };
        VIEW_EACH(v, VIEW_CLAIMS, struct claim_object, c) {
                if (!streq(c->place.domain_uid, uid))
                        continue;
                if (!streq(c->place.node, CD_POOL_SHARED)) {
                        member_view_add_place(&ret, c, c->place.node);
                        continue;
                }
                VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
                if (p->plugin && p->node && reports_channel_of(v->a, p->plugin, uid))
                        member_view_add_place(&ret, c, p->node);
        }
        return ret;
}

static const struct node *member_view_node(void *u, const char *name) {
        const struct member_view *m = u;
        const struct node_object *n = view_find(m->v, VIEW_NODES, NULL, name);
        return n ? &n->node : NULL;
}

static const char *member_view_clique(void *u, const char *node) {
        return inventory_slice_clique(((const struct member_view *)u)->v, node);
}

static const struct daemon_pod *member_view_daemon(void *u, const char *node) {
        const struct daemon_pod *best = NULL;
        const struct view *v = ((const struct member_view *)u)->v;
        VIEW_EACH(v, VIEW_PODS, struct pod_object, p)
        if (p->daemon && streq(p->node, node))
                best = daemon_pod_choose(best, p->daemon);
        return best;
}

static const struct compute_domain_fabric *member_view_fabric(void *u, const char *clique) {
        const struct member_view *m = u;
        return clique && *clique ? view_find(m->v, VIEW_FABRICS, NULL, clique) : NULL;
}

static void member_view_fabrics(void *u, const char *uid, member_fabric_fn *fn, void *x) {
        const struct view *v = ((const struct member_view *)u)->v;
        VIEW_EACH(v, VIEW_FABRICS, struct compute_domain_fabric, f)
        fn(x, f);
}

/* The claims of the ComputeDomain, although `uid` may be that of a standing domain. */
static void member_view_allocations(void *u, const char *uid, member_allocation_fn *fn, void *x) {
        const struct member_view *m = u;
        for (size_t i = 0; i < m->n_places; i++) {
                const struct member_place *p = &m->places[i];
                if (!m->clique || streq(str_or(inventory_slice_clique(m->v, p->node), ""), m->clique))
                        fn(x, &(struct allocation){ .claim_uid = p->claim->claim.o.meta.uid,
                                                    .ns = p->claim->claim.o.meta.ns,
                                                    .domain_uid = uid,
                                                    .node = p->node,
                                                    .created = p->claim->claim.o.meta.created });
        }
}

static size_t member_view_gather(struct member_view *m, const char *uid, const char *ns,
                                 const struct member_facts **ret) {
        const struct member_source s = { member_view_node,
                                         member_view_clique,
                                         member_view_daemon,
                                         member_view_fabric,
                                         member_view_fabrics,
                                         member_view_allocations,
                                         m };
        return member_gather(&s, uid, ns, m->v->a, ret);
}

static int member_view_by_name(const void *x, const void *y) {
        return strcmp(((const struct member_facts *)x)->name, ((const struct member_facts *)y)->name);
}

/* With assigned channels, a ComputeDomain has no IMEX domain: the daemons of its nodes serve the standing
 * domain of their partition. It lists all nodes of the partition; those without a claim do not belong to the
 * ComputeDomain. */
static size_t member_view_standing(struct view *v, const struct compute_domain *cd,
                                   const struct member_places *places, const struct member_facts **ret) {
        struct member_facts *list = NULL;
        const char **cliques = NULL;
        size_t n = 0, cap = 0, n_cliques = 0, cap_cliques = 0;
        for (size_t i = 0; i < places->n; i++) {
                const char *clique = str_or(inventory_slice_clique(v, places->list[i].node), "");
                if (has_string(cliques, n_cliques, clique))
                        continue;
                ARENA_GROW(v->a, cliques, n_cliques, cap_cliques);
                cliques[n_cliques++] = clique;
        }
        for (size_t i = 0; i < n_cliques; i++) {
                struct member_view m = { v, places->list, places->n, cliques[i] };
                const struct member_facts *part;
                char uid[37];
                fabric_standing_uid(cliques[i], uid);
                size_t n_part = member_view_gather(&m, arena_strdup(v->a, uid), cd->o.meta.ns, &part);
                for (size_t k = 0; k < n_part; k++) {
                        if (!part[k].wanted)
                                continue;
                        ARENA_GROW(v->a, list, n, cap);
                        list[n++] = part[k];
                }
        }
        if (n)
                qsort(list, n, sizeof *list, member_view_by_name);
        *ret = list;
        return n;
}

size_t member_view_facts(struct view *v, const struct compute_domain *cd, const struct member_facts **ret) {
        struct member_places places = member_view_places(v, cd->o.meta.uid);
        struct member_view m = { .v = v, .places = places.list, .n_places = places.n };
        return v->own_channels ? member_view_standing(v, cd, &places, ret)
                               : member_view_gather(&m, cd->o.meta.uid, cd->o.meta.ns, ret);
}

bool member_view_make(struct view *v, const struct compute_domain *cd, struct membership *ret) {
        static const enum view_kind kinds[] = { VIEW_NODES, VIEW_SLICES, VIEW_FABRICS };
        const struct member_facts *list;
        view_find_driver(v);
        if (v->hosts || !v->driver_ns)
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
