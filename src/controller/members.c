/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/members.h"

#include <stdlib.h>
#include <string.h>

#include "model/daemon_report.h"
#include "rules/message.h"

struct gathering {
        const struct controller *c;
        const char *uid, *ns;
        struct member_facts *list; /* not from the arena */
        size_t n, cap;
};

static struct member_facts *members_add(struct gathering *g, const char *node) {
        GROW(g->list, g->n, g->cap);
        g->list[g->n] = (struct member_facts){ .name = node };
        return &g->list[g->n++];
}

/* A claim of another namespace does not count. */
static void members_add_wanted(void *u, const struct allocation *x) {
        struct gathering *g = u;
        if (streq(x->ns, g->ns))
                members_add(g, x->node)->wanted = true;
}

static void members_add_assignment(struct gathering *g, const struct compute_domain_fabric *f,
                                   const struct fabric_assignment *assignment) {
        struct member_facts *x = members_add(g, assignment->node);
        x->fabric = f->o.meta.name;
        x->assignment = assignment;
}

static bool members_add_listed(void *u, const struct kube_object *o) {
        struct gathering *g = u;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        const struct fabric_domain *d = fabric_domain_of(f, g->uid);
        for (size_t i = 0; d && i < d->n_assignments; i++)
                members_add_assignment(g, f, &d->assignments[i]);
        return true;
}

static int rank_of(const struct member_facts *x) {
        return x->assignment ? fabric_is_leaving(x->assignment) : 2;
}

/* Entries of the same node are sorted: active assignments, leaving assignments, then none. */
static int members_by_name(const void *x, const void *y) {
        const struct member_facts *a = x, *b = y;
        int order = strcmp(a->name, b->name);
        return order ? order : rank_of(a) - rank_of(b);
}

/* A report that cannot be decoded is ignored. */
static bool members_read_report(const struct daemon_pod *p, struct arena *a, struct daemon_report *ret) {
        struct err e;
        return p->report && daemon_report_decode(str_from(p->report), a, ret, &e) == 0;
}

static void gather_daemon(const struct gathering *g, struct member_facts *x, struct arena *a) {
        const struct daemon_pod *daemon = records_daemon(g->c, x->name);
        struct daemon_report r;
        if (!daemon) {
                const char *label = x->node ? x->node->domain_uid : NULL;
                x->occupied = label && !streq(label, g->uid);
                return;
        }
        bool reads = members_read_report(daemon, a, &r), runs = reads && r.has_assignment;
        x->pod = &daemon->pod;
        x->joined = runs && x->assignment && streq(r.assignment.domain_uid, g->uid) &&
                    r.assignment.epoch == x->assignment->epoch;
        x->seen = reads && x->assignment && r.seen >= x->assignment->epoch;
        x->other_boot = reads && x->node && *node_boot_id(x->node) && !streq(r.boot_id, node_boot_id(x->node))
                                ? r.boot_id
                                : NULL;
        x->busy = runs && !streq(r.assignment.domain_uid, g->uid);
}

static void gather_member(const struct gathering *g, struct member_facts *x, struct arena *a) {
        const struct controller *c = g->c;
        x->node = records_node(c, x->name);
        x->clique = records_node_clique(c, x->name);
        gather_daemon(g, x, a);
        if (!x->assignment) {
                const struct compute_domain_fabric *f = records_fabric(c, x->clique);
                const struct fabric_domain *d = f ? fabric_domain_of(f, g->uid) : NULL;
                x->full = d && (int64_t)d->n_assignments >= d->slots;
        }
}

size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                  const struct member_facts **ret) {
        struct gathering g = { .c = c, .uid = cd->o.meta.uid, .ns = cd->o.meta.ns };
        size_t n = 0;
        allocations_of_domain(c->allocations, g.uid, members_add_wanted, &g);
        kube_informer_each(c->fabrics, members_add_listed, &g);
        if (g.n)
                qsort(g.list, g.n, sizeof *g.list, members_by_name);
        for (size_t i = 0; i < g.n; i++) {
                if (n && streq(g.list[n - 1].name, g.list[i].name))
                        g.list[n - 1].wanted = g.list[n - 1].wanted || g.list[i].wanted;
                else
                        g.list[n++] = g.list[i];
        }
        struct member_facts *list = arena_alloc(a, (n + 1) * sizeof *list);
        for (size_t i = 0; i < n; i++) {
                list[i] = g.list[i];
                gather_member(&g, &list[i], a);
        }
        free(g.list);
        *ret = list;
        return n;
}

static const char *members_error_of(const struct controller *c, enum key_kind kind, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        key_render(kind, name, &key);
        return writes_error(c->writes, buf_str(&key));
}

const char *members_error(const struct controller *c, const struct member_facts *list, size_t n) {
        const char *error = NULL;
        for (size_t i = 0; i < n && !error && writes_failing(c->writes); i++) {
                const struct member_facts *x = &list[i];
                if (x->wanted && !x->pod)
                        error = writes_error(c->writes, KEY_OF_DAEMONS);
                if (x->wanted && !error)
                        error = members_error_of(c, KEY_NODE, x->name);
                if (x->wanted && !error && x->clique && *x->clique)
                        error = members_error_of(c, KEY_FABRIC, x->clique);
        }
        return error;
}

size_t members_assigned(const struct controller *c, const char *uid, struct arena *a,
                        const char **ret_names) {
        struct gathering g = { .c = c, .uid = uid };
        struct message_list names = { 0 };
        struct daemon_report r;
        kube_informer_each(c->fabrics, members_add_listed, &g);
        for (size_t i = 0; i < g.n; i++) {
                const struct daemon_pod *daemon = records_daemon(c, g.list[i].name);
                if (daemon && members_read_report(daemon, a, &r) && *r.waits_for)
                        message_add(&names, "%s (%.300s)", g.list[i].name, r.waits_for);
                else
                        message_add(&names, "%s", g.list[i].name);
        }
        *ret_names = message_end(&names, a);
        free(g.list);
        return g.n;
}
