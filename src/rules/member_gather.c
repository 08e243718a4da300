/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/member_gather.h"

#include <stdlib.h>
#include <string.h>

#include "model/daemon_report.h"

struct gathering {
        const struct member_source *s;
        const char *uid, *ns;
        struct arena *a;
        struct member_facts *list;
        size_t n, cap;
};

static struct member_facts *gathering_add(struct gathering *g, const char *node) {
        ARENA_GROW(g->a, g->list, g->n, g->cap);
        g->list[g->n] = (struct member_facts){ .name = node };
        return &g->list[g->n++];
}

/* A claim of another namespace does not count. */
static void add_wanted(void *v, const struct allocation *x) {
        struct gathering *g = v;
        if (streq(x->ns, g->ns))
                gathering_add(g, x->node)->wanted = true;
}

static void add_listed(void *v, const struct compute_domain_fabric *f) {
        struct gathering *g = v;
        const struct fabric_domain *d = fabric_domain_of(f, g->uid);
        for (size_t i = 0; d && i < d->n_assignments; i++) {
                struct member_facts *x = gathering_add(g, d->assignments[i].node);
                x->fabric = f->o.meta.name;
                x->assignment = &d->assignments[i];
        }
}

static int rank_of(const struct member_facts *x) {
        return x->assignment ? fabric_is_leaving(x->assignment) : 2;
}

/* Entries of the same node are sorted: active assignments, leaving assignments, then none. */
static int facts_by_name(const void *x, const void *y) {
        const struct member_facts *a = x, *b = y;
        int order = strcmp(a->name, b->name);
        return order ? order : rank_of(a) - rank_of(b);
}

bool member_gather_report(const struct daemon_pod *p, struct arena *a, struct daemon_report *ret) {
        struct err e;
        return p->report && daemon_report_decode(str_from(p->report), a, ret, &e) == 0;
}

static void gather_daemon(const struct gathering *g, struct member_facts *x) {
        const struct daemon_pod *daemon = g->s->daemon(g->s->u, x->name);
        struct daemon_report r;
        if (!daemon) {
                const char *label = x->node ? x->node->domain_uid : NULL;
                x->occupied = label && !streq(label, g->uid);
                return;
        }
        bool reads = member_gather_report(daemon, g->a, &r), runs = reads && r.has_assignment;
        x->pod = &daemon->pod;
        x->joined = runs && x->assignment && streq(r.assignment.domain_uid, g->uid) &&
                    r.assignment.epoch == x->assignment->epoch;
        x->seen = reads && x->assignment && r.seen >= x->assignment->epoch;
        x->other_boot = reads && x->node && *node_boot_id(x->node) && !streq(r.boot_id, node_boot_id(x->node))
                                ? r.boot_id
                                : NULL;
        x->busy = runs && !streq(r.assignment.domain_uid, g->uid);
}

static void gather_member(const struct gathering *g, struct member_facts *x) {
        x->node = g->s->node(g->s->u, x->name);
        x->clique = g->s->clique(g->s->u, x->name);
        gather_daemon(g, x);
        if (!x->assignment) {
                const struct compute_domain_fabric *f = g->s->fabric(g->s->u, x->clique);
                const struct fabric_domain *d = f ? fabric_domain_of(f, g->uid) : NULL;
                x->full = d && (int64_t)d->n_assignments >= d->imex.slots;
        }
}

size_t member_gather(const struct member_source *s, const char *uid, const char *ns, struct arena *a,
                     const struct member_facts **ret) {
        struct gathering g = { .s = s, .uid = uid, .ns = ns, .a = a };
        size_t n = 0;
        s->allocations(s->u, uid, add_wanted, &g);
        s->fabrics(s->u, uid, add_listed, &g);
        if (g.n)
                qsort(g.list, g.n, sizeof *g.list, facts_by_name);
        for (size_t i = 0; i < g.n; i++) {
                if (n && streq(g.list[n - 1].name, g.list[i].name))
                        g.list[n - 1].wanted = g.list[n - 1].wanted || g.list[i].wanted;
                else
                        g.list[n++] = g.list[i];
        }
        for (size_t i = 0; i < n; i++)
                gather_member(&g, &g.list[i]);
        *ret = g.list;
        return n;
}

size_t member_gather_assigned(const struct member_source *s, const char *uid, struct arena *a,
                              const struct member_facts **ret) {
        struct gathering g = { .s = s, .uid = uid, .a = a };
        s->fabrics(s->u, uid, add_listed, &g);
        *ret = g.list;
        return g.n;
}
