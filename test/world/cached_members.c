/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cached_members.h"

#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "cli/member_view.h"
#include "controller/allocations.h"
#include "kube/object_cache.h"
#include "rules/member_gather.h"

/* ---- the caches of the controller ---- */

struct caches {
        struct object_cache *nodes, *slices, *daemons, *fabrics, *claims;
};

static void drop_change(void *u, const struct kube_object *old, const struct kube_object *now) {
        (void)u;
        kube_object_unref(old);
        kube_object_unref(now);
}

static void take_object(void *u, yyjson_val *object) {
        bool reported;
        struct err e;
        BUG_ON(object_cache_take(u, object, CACHE_LIST, &reported, &e) < 0);
}

/* Only daemons are in the cache, because the informer selects them by a label. */
static void take_daemon(void *u, yyjson_val *object) {
        yyjson_val *labels = yyjson_obj_get(yyjson_obj_get(object, "metadata"), "labels");
        if (yyjson_obj_get(labels, CD_LABEL_COMPONENT))
                take_object(u, object);
}

static struct object_cache *fill(struct source *s, const struct kube_informer_options *o,
                                 source_object_fn *take) {
        struct object_cache *cache = object_cache_new(o, drop_change, NULL);
        struct err e;
        object_cache_begin_list(cache);
        BUG_ON(s->list(s, &(struct source_query){ .res = o->res }, take, cache, &e) < 0);
        object_cache_end_list(cache, "1");
        return cache;
}

/* With the options of controller/watch. */
static struct caches caches_of(struct source *s) {
        return (struct caches){
                .nodes = fill(s,
                              &(struct kube_informer_options){ .res = &kube_nodes,
                                                               .fields = node_fields,
                                                               .size = sizeof(struct node),
                                                               .trim = node_trim },
                              take_object),
                .slices = fill(s,
                               &(struct kube_informer_options){ .res = &kube_resource_slices,
                                                                .fields = slice_fields,
                                                                .size = sizeof(struct slice),
                                                                .trim = slice_trim,
                                                                .kept = slice_kept_fields },
                               take_object),
                .daemons = fill(s,
                                &(struct kube_informer_options){ .res = &kube_pods,
                                                                 .fields = daemon_pod_fields,
                                                                 .size = sizeof(struct daemon_pod),
                                                                 .trim = pod_trim },
                                take_daemon),
                .fabrics =
                        fill(s,
                             &(struct kube_informer_options){ .res = &kube_fabrics,
                                                              .fields = compute_domain_fabric_fields,
                                                              .size = sizeof(struct compute_domain_fabric) },
                             take_object),
                .claims = fill(s,
                               &(struct kube_informer_options){ .res = &kube_resource_claims,
                                                                .fields = claim_fields,
                                                                .size = sizeof(struct claim_record),
                                                                .decoded_size = sizeof(struct claim),
                                                                .trim = claim_record_of,
                                                                .kept = claim_record_fields },
                               take_object),
        };
}

static void caches_free(struct caches *c) {
        object_cache_free(c->nodes);
        object_cache_free(c->slices);
        object_cache_free(c->daemons);
        object_cache_free(c->fabrics);
        object_cache_free(c->claims);
}

static const struct node *cached_node(void *u, const char *name) {
        return (const struct node *)object_cache_get(((struct caches *)u)->nodes, NULL, name);
}

struct cached_search {
        const char *node, *clique;
        const struct slice *slice;
        const struct daemon_pod *daemon;
};

static bool search_slice(void *u, const struct kube_object *o) {
        struct cached_search *x = u;
        const struct slice *s = (const struct slice *)o;
        if (streq(s->node, x->node))
                x->slice = slice_choose(x->slice, s, true, &x->clique);
        return true;
}

static const char *cached_clique(void *u, const char *node) {
        struct cached_search x = { .node = node };
        object_cache_each(((struct caches *)u)->slices, search_slice, &x);
        return x.clique;
}

static bool search_daemon(void *u, const struct kube_object *o) {
        struct cached_search *x = u;
        const struct daemon_pod *p = (const struct daemon_pod *)o;
        if (streq(p->pod.node, x->node))
                x->daemon = daemon_pod_choose(x->daemon, p);
        return true;
}

static const struct daemon_pod *cached_daemon(void *u, const char *node) {
        struct cached_search x = { .node = node };
        object_cache_each(((struct caches *)u)->daemons, search_daemon, &x);
        return x.daemon;
}

static const struct compute_domain_fabric *cached_fabric(void *u, const char *clique) {
        return (const struct compute_domain_fabric *)object_cache_get(((struct caches *)u)->fabrics, NULL,
                                                                      clique ? clique : "");
}

struct cached_visit {
        member_fabric_fn *on_fabric;
        member_allocation_fn *on_allocation;
        const char *uid;
        void *v;
};

static bool visit_fabric(void *u, const struct kube_object *o) {
        const struct cached_visit *x = u;
        x->on_fabric(x->v, (const struct compute_domain_fabric *)o);
        return true;
}

static void cached_fabrics(void *u, const char *uid, member_fabric_fn *fn, void *v) {
        object_cache_each(((struct caches *)u)->fabrics, visit_fabric,
                          &(struct cached_visit){ .on_fabric = fn, .v = v });
}

static bool visit_claim(void *u, const struct kube_object *o) {
        const struct cached_visit *x = u;
        const struct claim_record *c = (const struct claim_record *)o;
        if (streq(c->domain_uid, x->uid))
                x->on_allocation(x->v, &(struct allocation){ .claim_uid = c->o.meta.uid,
                                                             .ns = c->o.meta.ns,
                                                             .domain_uid = c->domain_uid,
                                                             .node = c->node });
        return true;
}

static void cached_allocations(void *u, const char *uid, member_allocation_fn *fn, void *v) {
        object_cache_each(((struct caches *)u)->claims, visit_claim,
                          &(struct cached_visit){ .on_allocation = fn, .uid = uid, .v = v });
}

/* ---- the comparison ---- */

static bool members_equal(const struct member *x, const struct member *y) {
        return streq(x->entry.node, y->entry.node) &&
               streq(str_or(x->entry.clique_id, ""), str_or(y->entry.clique_id, "")) &&
               streq(str_or(x->entry.ip, ""), str_or(y->entry.ip, "")) && x->entry.index == y->entry.index &&
               x->why == y->why && x->wanted == y->wanted && x->listed == y->listed &&
               x->peers_connected == y->peers_connected && streq(x->message, y->message);
}

static char *difference(const struct membership *ours, const struct membership *theirs) {
        if (ours->n_members != theirs->n_members || ours->n_cliques != theirs->n_cliques)
                return xasprintf("%zu members in %zu partitions from lists, %zu in %zu from caches",
                                 ours->n_members, ours->n_cliques, theirs->n_members, theirs->n_cliques);
        for (size_t i = 0; i < ours->n_members; i++) {
                const struct member *x = &ours->members[i], *y = &theirs->members[i];
                if (!members_equal(x, y))
                        return xasprintf("%s is in state %d (%s) from lists, %s in state %d (%s) from caches",
                                         x->entry.node, (int)x->why, x->message, y->entry.node, (int)y->why,
                                         y->message);
        }
        return NULL;
}

enum cached_members cached_members_compare(struct source *s, const char *ns, const char *name, size_t *ret_n,
                                           struct buf *members, char **ret_difference) {
        struct view v;
        struct membership ours, theirs;
        enum cached_members result = CACHED_MEMBERS_NONE;
        view_init(&v, s);
        view_read(&v, VIEW_DOMAINS, NULL);
        const struct compute_domain *cd = view_find(&v, VIEW_DOMAINS, ns, name);
        *ret_n = 0;
        *ret_difference = NULL;
        /* With assigned channels, a controller has no members. */
        if (cd && member_view_make(&v, cd, &ours) && !v.own_channels) {
                struct caches caches = caches_of(s);
                struct arena *a = arena_new(1024);
                const struct member_facts *list;
                const struct member_source from = { cached_node,   cached_clique,  cached_daemon,
                                                    cached_fabric, cached_fabrics, cached_allocations,
                                                    &caches };
                size_t n = member_gather(&from, cd->o.meta.uid, cd->o.meta.ns, a, &list);
                membership_make(list, n, a, &theirs);
                *ret_n = n;
                for (size_t i = 0; members && i < n; i++)
                        buf_addf(members, "%s: %s\n", theirs.members[i].entry.node,
                                 theirs.members[i].message);
                *ret_difference = difference(&ours, &theirs);
                result = *ret_difference ? CACHED_MEMBERS_DIFFER : CACHED_MEMBERS_EQUAL;
                arena_free(a);
                caches_free(&caches);
        }
        view_done(&v);
        return result;
}
