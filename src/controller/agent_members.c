/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/agent_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/agent_seat.h"
#include "rules/message.h"

struct gathering {
        const struct controller *c;
        const char *uid, *ns;
        struct seated_facts *list; /* not from the arena */
        size_t n, cap;
};

static struct seated_facts *add(struct gathering *g, const char *node) {
        GROW(g->list, g->n, g->cap);
        g->list[g->n] = (struct seated_facts){ .node.name = node };
        return &g->list[g->n++];
}

/* A claim of another namespace counts for nothing. */
static void add_wanted(void *u, const struct grant *x) {
        struct gathering *g = u;
        if (streq(x->ns, g->ns))
                add(g, x->node)->node.wanted = true;
}

static void add_seat(struct gathering *g, const struct compute_domain_fabric *f, const struct fabric_seat *s,
                     bool leaving) {
        struct seated_facts *x = add(g, s->node);
        x->fabric = f->o.meta.name;
        x->seat = s;
        x->leaving = leaving;
}

static bool add_listed(void *u, const struct kube_object *o) {
        struct gathering *g = u;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        const struct fabric_domain *d = fabric_domain_of(f, g->uid);
        for (size_t i = 0; d && i < d->n_seats; i++)
                add_seat(g, f, &d->seats[i], false);
        for (size_t i = 0; d && i < d->n_leaving; i++)
                add_seat(g, f, &d->leaving[i], true);
        return true;
}

/* Of one node: who has a place first, and of two places the one that it need not leave. */
static int by_name(const void *x, const void *y) {
        const struct seated_facts *a = x, *b = y;
        int order = strcmp(a->node.name, b->node.name);
        if (order)
                return order;
        int ranks[] = { !a->seat ? 2 : a->leaving, !b->seat ? 2 : b->leaving };
        return ranks[0] - ranks[1];
}

static void look(const struct gathering *g, struct seated_facts *x) {
        const struct controller *c = g->c;
        const struct agent_pod *agent = records_agent(c, x->node.name);
        struct agent_seat in;
        int64_t seen;
        x->node.node = records_node(c, x->node.name);
        x->node.clique = records_node_clique(c, x->node.name);
        if (!x->node.node)
                x->node.gone_since = gone_since(c->gone, x->node.name, clock_wall_s());
        if (agent) {
                bool reads = agent->seat && agent_seat_parse(agent->seat, &in);
                x->node.pod = &agent->pod;
                x->joined = reads && x->seat && streq(in.domain_uid, g->uid) && in.epoch == x->seat->epoch;
                x->told = x->seat && str_to_i64(str_from(str_or(agent->seen, "")), &seen) &&
                          seen >= x->seat->epoch;
                x->busy = reads && !streq(in.domain_uid, g->uid);
        } else if (x->node.node && x->node.node->domain_uid && !streq(x->node.node->domain_uid, g->uid)) {
                x->node.held_by = "another ComputeDomain";
        }
        if (!x->seat) {
                const struct compute_domain_fabric *f = records_fabric(c, x->node.clique);
                const struct fabric_domain *d = f ? fabric_domain_of(f, g->uid) : NULL;
                x->full = d && (int64_t)(d->n_seats + d->n_leaving) >= d->slots;
        }
}

size_t agent_members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                        const struct seated_facts **ret) {
        struct gathering g = { .c = c, .uid = cd->o.meta.uid, .ns = cd->o.meta.ns };
        size_t n = 0;
        placements_of_domain(c->placements, g.uid, add_wanted, &g);
        kube_informer_each(c->fabrics, add_listed, &g);
        if (g.n)
                qsort(g.list, g.n, sizeof *g.list, by_name);
        for (size_t i = 0; i < g.n; i++) {
                if (n && streq(g.list[n - 1].node.name, g.list[i].node.name))
                        g.list[n - 1].node.wanted = g.list[n - 1].node.wanted || g.list[i].node.wanted;
                else
                        g.list[n++] = g.list[i];
        }
        struct seated_facts *list = arena_alloc(a, (n + 1) * sizeof *list);
        for (size_t i = 0; i < n; i++) {
                list[i] = g.list[i];
                look(&g, &list[i]);
        }
        free(g.list);
        *ret = list;
        return n;
}

static const char *error_of(const struct controller *c, char kind, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "%c/%s", kind, name);
        return writes_error(c->writes, buf_str(&key));
}

const char *agent_members_error(const struct controller *c, const struct seated_facts *list, size_t n) {
        const char *error = NULL;
        for (size_t i = 0; i < n && !error && writes_failing(c->writes); i++) {
                const struct seated_facts *s = &list[i];
                if (s->node.wanted && !s->node.pod)
                        error = error_of(c, 'a', "agents");
                if (s->node.wanted && !error)
                        error = error_of(c, 'n', s->node.name);
                if (s->node.wanted && !error && s->node.clique && *s->node.clique)
                        error = error_of(c, 'f', s->node.clique);
        }
        return error;
}

size_t agent_members_left(const struct controller *c, const char *uid, struct arena *a,
                          const char **ret_names) {
        struct gathering g = { .c = c, .uid = uid };
        struct message_list names = { 0 };
        kube_informer_each(c->fabrics, add_listed, &g);
        for (size_t i = 0; i < g.n; i++) {
                const struct agent_pod *agent = records_agent(c, g.list[i].node.name);
                if (agent && agent->held)
                        message_add(&names, "%s (%.300s)", g.list[i].node.name, agent->held);
                else
                        message_add(&names, "%s", g.list[i].node.name);
        }
        *ret_names = message_end(&names, a);
        free(g.list);
        return g.n;
}
