/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/shortages.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/clock.h"
#include "controller/checks.h"
#include "rules/racks.h"

/* How old the facts may be, how many conditions may change in a second, and over how many seconds the others
 * are spread. */
enum { FACTS_AGE_S = 5, CHANGES_PER_S = 10, SPREAD_S = 30 };

/* The ComputeDomain of a rack lists the node. */
struct listing {
        const char *node, *rack;
};

struct shortages {
        struct arena *a; /* of the nodes; NULL: none were gathered yet */
        struct shortage_node *nodes;
        size_t n_nodes, cap_nodes;
        struct listing *listings; /* by node, in the arena; for nodes whose slices state no rack */
        size_t n_listings, cap_listings;
        int64_t gathered, second; /* clock_mono_s() */
        unsigned changes;         /* in `second` */
};

struct shortages *shortages_new(void) {
        return xnew(struct shortages);
}

void shortages_free(struct shortages *s) {
        if (!s)
                return;
        arena_free(s->a);
        free(s->nodes);
        free(s);
}

/* ---- racks ---- */

/* Only those in the driver's namespace count, because tenants can change the others. */
static bool shortages_add_listings(void *u, const struct kube_object *o) {
        const struct controller *c = u;
        struct shortages *s = c->shortages;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        struct str rest = str_from(str_or(cd->rack_nodes, "")), part;
        if (!racks_is_domain(cd) || !streq(o->meta.ns, c->config->ns))
                return true;
        const char *rack = arena_strdup(s->a, cd->rack);
        while (str_next_field(&rest, ',', &part)) {
                if (!part.n)
                        continue;
                ARENA_GROW(s->a, s->listings, s->n_listings, s->cap_listings);
                s->listings[s->n_listings++] =
                        (struct listing){ .node = arena_strndup(s->a, part.p, part.n), .rack = rack };
        }
        return true;
}

static int listings_by_node(const void *x, const void *y) {
        return strcmp(((const struct listing *)x)->node, ((const struct listing *)y)->node);
}

static void gather_listings(struct controller *c) {
        struct shortages *s = c->shortages;
        s->listings = NULL;
        s->n_listings = s->cap_listings = 0;
        if (c->config->racks)
                kube_informer_each(c->caches.cds, shortages_add_listings, c);
        if (s->n_listings)
                qsort(s->listings, s->n_listings, sizeof *s->listings, listings_by_node);
}

static const char *last_known_rack(const struct controller *c, const char *name, const char *partition) {
        const struct shortages *s = c->shortages;
        const struct listing key = { .node = name }, *listing = NULL;
        const struct compute_domain_fabric *f = records_fabric(c, partition);
        const char *rack = records_node_rack(c, name);
        if (!rack && f)
                rack = f->rack;
        if (!rack && s->n_listings)
                listing = bsearch(&key, s->listings, s->n_listings, sizeof key, listings_by_node);
        return listing ? listing->rack : rack;
}

/* ---- nodes ---- */

/* Shared claims use no channel device of the node. */
static void shortages_count_used(void *u, const struct allocation *x) {
        *(int64_t *)u += !x->shared;
}

static bool count_channels(void *u, const struct kube_object *o) {
        *(int64_t *)u += ((const struct slice *)o)->n_channels;
        return true;
}

static bool newest_plugin(void *u, const struct kube_object *o) {
        const struct plugin_pod **best = u, *p = (const struct plugin_pod *)o;
        if (!plugin_pod_ended(p) && !p->o.meta.deleted &&
            (!*best || p->o.meta.created > (*best)->o.meta.created))
                *best = p;
        return true;
}

/* The first word of the plugin's report, if it is a reason in the catalogue: other texts are not shown to
 * tenants. */
static const char *shortages_withheld(const struct controller *c, const char *node) {
        const struct plugin_pod *p = NULL;
        char word[64];
        if (c->caches.plugins)
                kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, node, newest_plugin, &p);
        size_t n = p && p->withheld ? strcspn(p->withheld, ":") : 0;
        if (!n || n >= sizeof word)
                return NULL;
        memcpy(word, p->withheld, n);
        word[n] = '\0';
        const struct reason *r = reason_find(REASON_OF_NODE, word);
        return r ? r->name : NULL;
}

static bool shortages_gather_node(void *u, const struct kube_object *o) {
        const struct controller *c = u;
        struct shortages *s = c->shortages;
        const struct node *n = (const struct node *)o;
        const char *name = n->o.meta.name, *partition = records_last_clique(c, name),
                   *rack = last_known_rack(c, name, partition);
        bool offers = kube_informer_first_at(c->caches.slices, CONTROLLER_BY_NODE, name);
        if (!offers && !node_has_gpu(n))
                return true;
        struct shortage_node x = { .partition = arena_strdup(s->a, str_or(partition, "")),
                                   .rack = arena_strdup(s->a, str_or(rack, "")),
                                   .up = node_ready(n) && !n->unschedulable };
        kube_informer_each_at(c->caches.slices, CONTROLLER_BY_NODE, name, count_channels, &x.channels);
        allocations_on_node(c->allocations, name, shortages_count_used, &x.used);
        if (!x.channels)
                x.withheld = shortages_withheld(c, name);
        GROW(s->nodes, s->n_nodes, s->cap_nodes);
        s->nodes[s->n_nodes++] = x;
        return true;
}

static void shortages_gather(struct controller *c, int64_t now) {
        struct shortages *s = c->shortages;
        if (s->a && now - s->gathered < FACTS_AGE_S)
                return;
        arena_free(TAKE(s->a));
        free(TAKE(s->nodes));
        s->n_nodes = s->cap_nodes = 0;
        s->a = arena_new(16 << 10);
        s->gathered = now;
        gather_listings(c);
        kube_informer_each(c->caches.nodes, shortages_gather_node, c);
}

/* ---- the ComputeDomain ---- */

struct own_partitions {
        const struct controller *c;
        const char *ns; /* of the ComputeDomain; a claim of another namespace may name it, too */
        struct arena *a;
        const char **list;
        size_t n, cap;
};

static void add_partition(void *u, const struct allocation *x) {
        struct own_partitions *o = u;
        if (!streq(x->ns, o->ns))
                return;
        const char *partition = records_last_clique(o->c, x->node);
        if (!partition || !*partition || has_string(o->list, o->n, partition))
                return;
        ARENA_GROW(o->a, o->list, o->n, o->cap);
        o->list[o->n++] = partition;
}

/* Keeps the result in `d`. */
static void look_at_facts(struct controller *c, const struct compute_domain *cd, struct arena *a, int64_t now,
                          struct controller_domain *d) {
        struct cd_condition is;
        struct own_partitions own = { .c = c, .ns = cd->o.meta.ns, .a = a };
        shortages_gather(c, now);
        allocations_of_domain(c->allocations, cd->o.meta.uid, add_partition, &own);
        const struct shortage_facts f = { .nodes = c->shortages->nodes,
                                          .n_nodes = c->shortages->n_nodes,
                                          .rack = racks_is_domain(cd) ? cd->rack : NULL,
                                          .own = own.list,
                                          .n_own = own.n };
        const struct event_about about = { CD_API_VERSION, CD_KIND, cd->o.meta.ns, cd->o.meta.name,
                                           cd->o.meta.uid };
        const char *wrong = shortage_condition(&f, a, &is) ? shortage_check(&f, &is, a) : NULL;
        if (wrong)
                checks_failed(c, CHECKS_STATUS, &about, wrong);
        free(TAKE(d->shortage_message));
        d->shortage_looked = now;
        d->shortage_is = (struct cd_condition){ 0 };
        if (!is.reason || wrong)
                return;
        d->shortage_is = is;
        d->shortage_is.message = d->shortage_message = xstrdup(is.message);
}

/* Returns the result of the last look, which is at most FACTS_AGE_S old, in the arena; NULL: nothing to
 * report. A look compares each node with each partition of the ComputeDomain, and each change of one of its
 * nodes is a pass. */
static const struct cd_condition *last_look(struct controller *c, const struct compute_domain *cd,
                                            struct arena *a, int64_t now, struct controller_domain *d) {
        if (!d->shortage_looked || now - d->shortage_looked >= FACTS_AGE_S)
                look_at_facts(c, cd, a, now, d);
        if (!d->shortage_is.reason)
                return NULL;
        struct cd_condition *is = arena_alloc(a, sizeof *is);
        *is = d->shortage_is;
        is->message = arena_strdup(a, d->shortage_message);
        return is;
}

struct awaiting {
        const char *ns;
        bool found;
};

/* A claim of another namespace may name the ComputeDomain, too. */
static bool is_in_namespace(void *u, const struct kube_object *o) {
        struct awaiting *x = u;
        x->found = streq(o->meta.ns, x->ns);
        return !x->found;
}

static bool shortages_waits(const struct controller *c, const struct compute_domain *cd) {
        struct awaiting x = { .ns = cd->o.meta.ns };
        kube_informer_each_at(c->caches.claims, CONTROLLER_CLAIMS_AWAITING, cd->o.meta.uid, is_in_namespace,
                              &x);
        return x.found;
}

const struct cd_condition *shortages_condition(struct controller *c, const struct compute_domain *cd,
                                               struct arena *a, int64_t *ret_recheck_s) {
        struct shortages *s = c->shortages;
        const char *uid = cd->o.meta.uid;
        const int64_t now = clock_mono_s();
        struct shortage_input in = { .waits = !c->no_conditions && shortages_waits(c, cd), .now = now };
        struct controller_domain *d = in.waits ? records_make(c, uid) : records_find(c, uid);
        struct shortage_memory none = { 0 }, *memory = d ? &d->shortage : &none;
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, CONDITION_CHANNEL_AVAILABLE))
                        in.was = &cd->conditions[i];
        if (s->second != now) {
                s->second = now;
                s->changes = 0;
        }
        in.may_change = s->changes < CHANGES_PER_S;
        if (in.waits && shortage_is_due(memory, now))
                in.is = last_look(c, cd, a, now, d);
        const bool changes = memory->changes;
        const struct cd_condition *right = shortage_settle(memory, &in, ret_recheck_s);
        if (memory->changes && !changes)
                s->changes++;
        if (!in.may_change && *ret_recheck_s == 1)
                *ret_recheck_s += (int64_t)(str_fnv64(uid, strlen(uid)) % SPREAD_S);
        return right;
}
