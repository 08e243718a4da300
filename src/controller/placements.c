/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/placements.h"

#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"

/* The items with the same hash of one of their strings. */
LIST_HEAD(slot, item);
enum by { BY_DOMAIN, BY_NODE, N_BY };

struct item {
        LIST_ENTRY(item) links[N_BY];
        const struct claim_record *c; /* holds a reference */
};

struct placements {
        struct slot *slots[N_BY];
        size_t n_slots, n;
        struct item *left; /* the item that ret_old points into */
};

enum { MIN_SLOTS = 16, SLOT_HOLDS = 2 /* items per slot, on average at most */ };

static void make_slots(struct placements *p, size_t n) {
        p->n_slots = n;
        for (enum by by = 0; by < N_BY; by++)
                p->slots[by] = xnew_n(struct slot, n);
}

struct placements *placements_new(void) {
        struct placements *p = xnew(struct placements);
        make_slots(p, MIN_SLOTS);
        return p;
}

static struct slot *slot_of(const struct placements *p, enum by by, const char *key) {
        return &p->slots[by][str_fnv64(key, strlen(key)) & (p->n_slots - 1)];
}

static void put(struct placements *p, struct item *i) {
        LIST_INSERT_HEAD(slot_of(p, BY_DOMAIN, i->c->domain_uid), i, links[BY_DOMAIN]);
        LIST_INSERT_HEAD(slot_of(p, BY_NODE, i->c->node), i, links[BY_NODE]);
}

static void take_out(struct item *i) {
        for (enum by by = 0; by < N_BY; by++)
                LIST_REMOVE(i, links[by]);
}

static void grow(struct placements *p) {
        struct placements was = *p;
        make_slots(p, 2 * was.n_slots);
        for (size_t k = 0; k < was.n_slots; k++)
                for (struct item *i; (i = LIST_FIRST(&was.slots[BY_NODE][k]));) {
                        take_out(i);
                        put(p, i);
                }
        for (enum by by = 0; by < N_BY; by++)
                free(was.slots[by]);
}

static void item_free(struct item *i) {
        if (!i)
                return;
        kube_object_unref(&i->c->o);
        free(i);
}

void placements_free(struct placements *p) {
        if (!p)
                return;
        for (size_t k = 0; k < p->n_slots; k++)
                for (struct item *i; (i = LIST_FIRST(&p->slots[BY_NODE][k]));) {
                        take_out(i);
                        item_free(i);
                }
        item_free(p->left);
        for (enum by by = 0; by < N_BY; by++)
                free(p->slots[by]);
        free(p);
}

static const struct jd_field f_group[] = { JD_STR(struct claim_group, "apiVersion", api_version),
                                           JD_STR(struct claim_group, "name", name),
                                           JD_STR(struct claim_group, "uid", uid),
                                           JD_STR(struct claim_group, "domain", domain_uid), JD_END };
const struct jd_field claim_record_fields[] = {
        JD_OBJ(struct claim_record, "metadata", o.meta, kube_f_meta),
        JD_STR(struct claim_record, "domain", domain_uid),
        JD_STR(struct claim_record, "node", node),
        JD_OPTOBJ(struct claim_record, "group", group, struct claim_group, f_group),
        JD_END,
};

static const void *record_of(const struct claim *c, bool own_channels, struct arena *a) {
        struct claim_record *r = arena_alloc(a, sizeof *r);
        struct claim_group group;
        struct claim_place place;
        r->o.meta = c->o.meta;
        if (claim_place(c, own_channels, a, &place)) {
                r->domain_uid = place.domain_uid;
                r->node = place.node;
        }
        if (claim_of_group(c, a, &group)) {
                struct claim_group *copy = arena_alloc(a, sizeof *copy);
                *copy = group;
                r->group = copy;
        }
        return r;
}

const void *claim_record_of(void *claim, struct arena *a) {
        return record_of(claim, false, a);
}

const void *claim_record_of_own(void *claim, struct arena *a) {
        return record_of(claim, true, a);
}

static struct grant grant_of(const struct claim_record *c) {
        return (struct grant){ .claim_uid = c->o.meta.uid,
                               .ns = str_or(c->o.meta.ns, ""),
                               .domain_uid = c->domain_uid,
                               .node = c->node,
                               .created = c->o.meta.created };
}

static bool counts(const struct claim_record *c) {
        return c && c->o.meta.uid && c->domain_uid;
}

static struct item *find(const struct placements *p, const struct claim_record *c) {
        struct item *i = counts(c) ? LIST_FIRST(slot_of(p, BY_NODE, c->node)) : NULL;
        while (i && !streq(i->c->o.meta.uid, c->o.meta.uid))
                i = LIST_NEXT(i, links[BY_NODE]);
        return i;
}

static bool same(const struct grant *a, const struct grant *b) {
        return streq(a->domain_uid, b->domain_uid) && streq(a->node, b->node) &&
               streq(a->claim_uid, b->claim_uid);
}

bool placements_update(struct placements *p, const struct claim_record *old, const struct claim_record *now,
                       struct grant *ret_old, struct grant *ret_new) {
        struct item *was = find(p, old);
        *ret_old = *ret_new = (struct grant){ 0 };
        item_free(TAKE(p->left));
        if (was) {
                take_out(was);
                p->n--;
                *ret_old = grant_of(was->c);
                p->left = was;
        }
        if (counts(now)) {
                struct item *i = xnew(struct item);
                i->c = (const struct claim_record *)kube_object_ref(&now->o);
                if (p->n++ >= SLOT_HOLDS * p->n_slots)
                        grow(p);
                put(p, i);
                *ret_new = grant_of(now);
        }
        return !same(ret_old, ret_new);
}

static void visit(const struct placements *p, enum by by, const char *key, placements_visit_fn *fn, void *u) {
        const struct item *i;
        LIST_FOREACH (i, slot_of(p, by, key), links[by]) {
                struct grant x = grant_of(i->c);
                if (streq(by == BY_NODE ? x.node : x.domain_uid, key))
                        fn(u, &x);
        }
}

void placements_of_domain(const struct placements *p, const char *uid, placements_visit_fn *fn, void *u) {
        visit(p, BY_DOMAIN, uid, fn, u);
}

void placements_on_node(const struct placements *p, const char *node, placements_visit_fn *fn, void *u) {
        visit(p, BY_NODE, node, fn, u);
}
