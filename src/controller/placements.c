/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/placements.h"

#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

#include "base/mem.h"

struct item {
        UT_hash_handle hh; /* by claim_uid */
        LIST_ENTRY(item) of_domain, on_node;
        const struct claim_record *c; /* counted; the grant's strings are its */
        struct grant x;
};

struct group {
        UT_hash_handle hh;
        LIST_HEAD(, item) items;
        char key[];
};

struct placements {
        struct item *items;
        struct group *domains, *nodes;
        struct item *left; /* what ret_old points into */
};

struct placements *placements_new(void) {
        return xnew(struct placements);
}

static struct group *group_at(struct group **groups, const char *key, bool make) {
        struct group *g;
        HASH_FIND_STR(*groups, key, g);
        if (!g && make) {
                size_t n = strlen(key) + 1;
                g = xcalloc(1, sizeof *g + n);
                memcpy(g->key, key, n);
                LIST_INIT(&g->items);
                HASH_ADD_STR(*groups, key, g);
        }
        return g;
}

static void drop_if_empty(struct group **groups, const char *key) {
        struct group *g = group_at(groups, key, false);
        if (g && LIST_EMPTY(&g->items)) {
                HASH_DEL(*groups, g);
                free(g);
        }
}

static void item_free(struct item *i) {
        if (!i)
                return;
        kube_object_unref(&i->c->o);
        free(i);
}

static void take_out(struct placements *p, struct item *i) {
        HASH_DEL(p->items, i);
        LIST_REMOVE(i, of_domain);
        LIST_REMOVE(i, on_node);
        drop_if_empty(&p->domains, i->x.domain_uid);
        drop_if_empty(&p->nodes, i->x.node);
}

void placements_free(struct placements *p) {
        if (!p)
                return;
        for (struct item *i = p->items, *next; i; i = next) {
                next = i->hh.next;
                take_out(p, i);
                item_free(i);
        }
        item_free(p->left);
        free(p);
}

const struct jd_field claim_record_fields[] = { JD_OBJ(struct claim_record, "metadata", o.meta, kube_f_meta),
                                                JD_STR(struct claim_record, "domain", domain_uid),
                                                JD_STR(struct claim_record, "node", node),
                                                JD_STR(struct claim_record, "pod", pod), JD_END };

const void *claim_record_of(void *claim, struct arena *a) {
        const struct claim *c = claim;
        struct claim_record *r = arena_alloc(a, sizeof *r);
        struct claim_place place;
        r->o.meta = c->o.meta;
        r->pod = c->n_consumers ? c->consumers[0].uid : NULL;
        if (claim_place(c, a, &place)) {
                r->domain_uid = place.domain_uid;
                r->node = place.node;
        }
        return r;
}

static struct item *item_of(const struct claim_record *c) {
        if (!c || !c->o.meta.uid || !c->domain_uid)
                return NULL;
        struct item *i = xnew(struct item);
        i->c = (const struct claim_record *)kube_object_ref(&c->o);
        i->x = (struct grant){ .claim_uid = c->o.meta.uid,
                               .ns = str_or(c->o.meta.ns, ""),
                               .domain_uid = c->domain_uid,
                               .node = c->node,
                               .created = c->o.meta.created };
        return i;
}

static bool same(const struct item *a, const struct item *b) {
        return a == b || (a && b && streq(a->x.domain_uid, b->x.domain_uid) && streq(a->x.node, b->x.node) &&
                          streq(a->x.claim_uid, b->x.claim_uid));
}

bool placements_update(struct placements *p, const struct claim_record *old, const struct claim_record *now,
                       struct grant *ret_old, struct grant *ret_new) {
        struct item *was = NULL, *is = item_of(now);
        const char *uid = old ? old->o.meta.uid : now ? now->o.meta.uid : NULL;
        if (uid)
                HASH_FIND_STR(p->items, uid, was);
        *ret_old = *ret_new = (struct grant){ 0 };
        bool changed = !same(was, is);
        item_free(TAKE(p->left));
        if (was) {
                take_out(p, was);
                *ret_old = was->x;
                p->left = was;
        }
        if (is) {
                HASH_ADD_KEYPTR(hh, p->items, is->x.claim_uid, strlen(is->x.claim_uid), is);
                LIST_INSERT_HEAD(&group_at(&p->domains, is->x.domain_uid, true)->items, is, of_domain);
                LIST_INSERT_HEAD(&group_at(&p->nodes, is->x.node, true)->items, is, on_node);
                *ret_new = is->x;
        }
        return changed;
}

void placements_of_domain(const struct placements *p, const char *uid, placements_visit_fn *fn, void *u) {
        struct group *g;
        struct item *i;
        HASH_FIND_STR(p->domains, uid, g);
        if (g)
                LIST_FOREACH (i, &g->items, of_domain)
                        fn(u, &i->x);
}

void placements_on_node(const struct placements *p, const char *node, placements_visit_fn *fn, void *u) {
        struct group *g;
        struct item *i;
        HASH_FIND_STR(p->nodes, node, g);
        if (g)
                LIST_FOREACH (i, &g->items, on_node)
                        fn(u, &i->x);
}
