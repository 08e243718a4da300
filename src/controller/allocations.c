/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/allocations.h"

#include <string.h>
#include <sys/queue.h>

#include "api/names.h"
#include "base/mem.h"
#include "base/stderr.h"

/* The items with the same hash of one of their strings. */
LIST_HEAD(slot, item);
enum by { BY_DOMAIN, BY_NODE, N_BY };

struct item {
        LIST_ENTRY(item) links[N_BY];
        const struct claim_record *c; /* holds a reference; NULL: the node's plugin uses the ComputeDomain */
        const char *domain, *node;    /* in the claim, or in `text` */
        char text[];
};

struct allocations {
        struct slot *slots[N_BY];
        size_t n_slots, n;
        struct item *left; /* the item that ret_old points into */
};

enum { MIN_SLOTS = 16, SLOT_HOLDS = 2 /* items per slot, on average at most */ };

static void make_slots(struct allocations *p, size_t n) {
        p->n_slots = n;
        for (enum by by = 0; by < N_BY; by++)
                p->slots[by] = xnew_n(struct slot, n);
}

struct allocations *allocations_new(void) {
        struct allocations *p = xnew(struct allocations);
        make_slots(p, MIN_SLOTS);
        return p;
}

static struct slot *allocations_slot_of(const struct allocations *p, enum by by, const char *key) {
        return &p->slots[by][str_fnv64(key, strlen(key)) & (p->n_slots - 1)];
}

static void allocations_put(struct allocations *p, struct item *i) {
        LIST_INSERT_HEAD(allocations_slot_of(p, BY_DOMAIN, i->domain), i, links[BY_DOMAIN]);
        LIST_INSERT_HEAD(allocations_slot_of(p, BY_NODE, i->node), i, links[BY_NODE]);
}

static void take_out(struct item *i) {
        for (enum by by = 0; by < N_BY; by++)
                LIST_REMOVE(i, links[by]);
}

static void allocations_grow(struct allocations *p) {
        struct allocations was = *p;
        make_slots(p, 2 * was.n_slots);
        for (size_t k = 0; k < was.n_slots; k++)
                for (struct item *i; (i = LIST_FIRST(&was.slots[BY_NODE][k]));) {
                        take_out(i);
                        allocations_put(p, i);
                }
        for (enum by by = 0; by < N_BY; by++)
                free(was.slots[by]);
}

static void allocations_add(struct allocations *p, struct item *i) {
        if (p->n++ >= SLOT_HOLDS * p->n_slots)
                allocations_grow(p);
        allocations_put(p, i);
}

static void item_free(struct item *i) {
        if (!i)
                return;
        if (i->c)
                kube_object_unref(&i->c->o);
        free(i);
}

void allocations_free(struct allocations *p) {
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
static const struct jd_field f_shared[] = {
        JD_STR(struct claim_shared, "domain", domain_uid),
        JD_OPTOBJ(struct claim_shared, "group", group, struct claim_group, f_group),
        JD_BOOL(struct claim_shared, "allocated", allocated),
        JD_LIST(struct claim_shared, "consumers", consumers, struct claim_consumer, claim_consumer_fields),
        JD_STRS(struct claim_shared, "finalizers", finalizers),
        JD_END,
};
const struct jd_field claim_record_fields[] = {
        JD_OBJ(struct claim_record, "metadata", o.meta, kube_f_meta),
        JD_STR(struct claim_record, "domain", domain_uid),
        JD_STR(struct claim_record, "node", node),
        JD_STR(struct claim_record, "awaits", awaits),
        JD_OPTOBJ(struct claim_record, "group", group, struct claim_group, f_group),
        JD_STR(struct claim_record, "named", named),
        JD_STR(struct claim_record, "owner", owner),
        JD_BOOL(struct claim_record, "full", full),
        JD_OPTOBJ(struct claim_record, "shared", shared, struct claim_shared, f_shared),
        JD_END,
};

static const struct claim_group *copy_group(const struct claim_group *g, struct arena *a) {
        struct claim_group *copy = arena_alloc(a, sizeof *copy);
        *copy = *g;
        return copy;
}

static const struct claim_shared *shared_of(const struct claim *c, struct arena *a) {
        struct claim_group group;
        const char *domain_uid = claim_asks_for_shared(c, a);
        bool of_group = claim_group_owner(c, &group);
        if (!domain_uid || (!of_group && !claim_domain_owner(c)))
                return NULL;
        struct claim_shared *s = arena_alloc(a, sizeof *s);
        *s = (struct claim_shared){ .domain_uid = domain_uid,
                                    .group = of_group ? copy_group(&group, a) : NULL,
                                    .allocated = c->allocated,
                                    .consumers = c->consumers,
                                    .n_consumers = c->n_consumers,
                                    .finalizers = c->finalizers,
                                    .n_finalizers = c->n_finalizers };
        return s;
}

static const void *record_of(const struct claim *c, bool own_channels, struct arena *a) {
        struct claim_record *r = arena_alloc(a, sizeof *r);
        struct claim_group group;
        struct claim_place place;
        r->o.meta = c->o.meta;
        if (claim_place(c, own_channels, a, &place)) {
                r->domain_uid = place.domain_uid;
                r->node = place.node;
        }
        r->awaits = claim_awaits(c, a);
        r->named = claim_named_for(c, a);
        r->owner = claim_domain_owner(c);
        r->full = c->n_consumers >= CLAIM_PODS_MAX;
        if (claim_of_group(c, a, &group))
                r->group = copy_group(&group, a);
        r->shared = shared_of(c, a);
        return r;
}

const void *claim_record_of(void *claim, struct arena *a) {
        return record_of(claim, false, a);
}

const void *claim_record_of_own(void *claim, struct arena *a) {
        return record_of(claim, true, a);
}

static bool is_shared(const struct claim_record *c) {
        return streq(c->node, CD_POOL_SHARED);
}

static struct allocation allocations_record(const struct claim_record *c) {
        return (struct allocation){ .claim_uid = c->o.meta.uid,
                                    .ns = str_or(c->o.meta.ns, ""),
                                    .domain_uid = c->domain_uid,
                                    .node = c->node,
                                    .shared = is_shared(c),
                                    .created = c->o.meta.created };
}

static bool allocations_counts(const struct claim_record *c) {
        return c && c->o.meta.uid && c->domain_uid;
}

static struct item *allocations_find(const struct allocations *p, const struct claim_record *c) {
        struct item *i = allocations_counts(c) ? LIST_FIRST(allocations_slot_of(p, BY_NODE, c->node)) : NULL;
        while (i && !(i->c && streq(i->c->o.meta.uid, c->o.meta.uid)))
                i = LIST_NEXT(i, links[BY_NODE]);
        return i;
}

static bool allocations_same(const struct allocation *a, const struct allocation *b) {
        return streq(a->domain_uid, b->domain_uid) && streq(a->node, b->node) &&
               streq(a->claim_uid, b->claim_uid);
}

bool allocations_update(struct allocations *p, const struct claim_record *old, const struct claim_record *now,
                        struct allocation *ret_old, struct allocation *ret_new) {
        BUG_ON(!old && !now);
        struct item *was = allocations_find(p, old);
        *ret_old = *ret_new = (struct allocation){ 0 };
        item_free(TAKE(p->left));
        if (was) {
                take_out(was);
                p->n--;
                *ret_old = allocations_record(was->c);
                p->left = was;
        }
        if (allocations_counts(now)) {
                struct item *i = xnew(struct item);
                i->c = (const struct claim_record *)kube_object_ref(&now->o);
                i->domain = i->c->domain_uid;
                i->node = i->c->node;
                allocations_add(p, i);
                *ret_new = allocations_record(now);
        }
        return !allocations_same(ret_old, ret_new);
}

/* ---- nodes that use a ComputeDomain by a shared claim ---- */

static struct item *find_use(const struct allocations *p, const char *node, const char *uid) {
        struct item *i;
        LIST_FOREACH (i, allocations_slot_of(p, BY_NODE, node), links[BY_NODE]) {
                if (!i->c && streq(i->node, node) && streq(i->domain, uid))
                        return i;
        }
        return NULL;
}

static void add_use(struct allocations *p, const char *node, const char *uid) {
        size_t n_node = strlen(node) + 1, n_uid = strlen(uid) + 1;
        struct item *i = xcalloc(1, sizeof *i + n_node + n_uid);
        i->node = memcpy(i->text, node, n_node);
        i->domain = memcpy(i->text + n_node, uid, n_uid);
        allocations_add(p, i);
}

static bool is_listed(const char *const *list, size_t n, const char *s) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], s))
                        return true;
        return false;
}

void allocations_used(struct allocations *p, const char *node, const char *const *uids, size_t n,
                      void (*changed)(void *u, const char *uid), void *u) {
        struct item *i, *next;
        for (i = LIST_FIRST(allocations_slot_of(p, BY_NODE, node)); i; i = next) {
                next = LIST_NEXT(i, links[BY_NODE]);
                if (i->c || !streq(i->node, node) || is_listed(uids, n, i->domain))
                        continue;
                take_out(i);
                p->n--;
                changed(u, i->domain);
                item_free(i);
        }
        for (size_t k = 0; k < n; k++) {
                if (find_use(p, node, uids[k]))
                        continue;
                add_use(p, node, uids[k]);
                changed(u, uids[k]);
        }
}

/* One shared claim of each namespace. A claim in another namespace than its ComputeDomain must not hide the
 * right one, and each of the others would only repeat it. */
struct shared_claims {
        const struct claim_record **list; /* not from an arena */
        size_t n, cap;
};

static void find_shared(const struct allocations *p, const char *uid, struct shared_claims *ret) {
        const struct item *i;
        LIST_FOREACH (i, allocations_slot_of(p, BY_DOMAIN, uid), links[BY_DOMAIN]) {
                bool known = false;
                if (!i->c || !is_shared(i->c) || !streq(i->domain, uid))
                        continue;
                for (size_t k = 0; k < ret->n; k++)
                        known = known || streq(ret->list[k]->o.meta.ns, i->c->o.meta.ns);
                if (known)
                        continue;
                GROW(ret->list, ret->n, ret->cap);
                ret->list[ret->n++] = i->c;
        }
}

static void visit_use(const struct item *i, const struct shared_claims *shared, allocations_visit_fn *fn,
                      void *u) {
        for (size_t k = 0; k < shared->n; k++) {
                struct allocation x = allocations_record(shared->list[k]);
                x.node = i->node;
                fn(u, &x);
        }
}

/* ---- visits ---- */

static void visit_claim(const struct item *i, allocations_visit_fn *fn, void *u) {
        struct allocation x = allocations_record(i->c);
        fn(u, &x);
}

void allocations_of_domain(const struct allocations *p, const char *uid, allocations_visit_fn *fn, void *u) {
        struct shared_claims shared = { 0 };
        const struct item *i;
        find_shared(p, uid, &shared);
        LIST_FOREACH (i, allocations_slot_of(p, BY_DOMAIN, uid), links[BY_DOMAIN]) {
                if (streq(i->domain, uid) && i->c)
                        visit_claim(i, fn, u);
                else if (streq(i->domain, uid))
                        visit_use(i, &shared, fn, u);
        }
        free(shared.list);
}

void allocations_on_node(const struct allocations *p, const char *node, allocations_visit_fn *fn, void *u) {
        const struct item *i;
        LIST_FOREACH (i, allocations_slot_of(p, BY_NODE, node), links[BY_NODE]) {
                struct shared_claims shared = { 0 };
                if (!streq(i->node, node))
                        continue;
                if (i->c) {
                        visit_claim(i, fn, u);
                        continue;
                }
                find_shared(p, i->domain, &shared);
                visit_use(i, &shared, fn, u);
                free(shared.list);
        }
}
