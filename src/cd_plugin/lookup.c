/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/lookup.h"

#include <limits.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/stderr.h"
#include "base/json.h"
#include "kube/kube_informer.h"
#include "kube/kube_object.h"
#include "kube/kube_pages.h"
#include "model/domain.h"
#include "node/fetch.h"

enum { DOMAINS_MAX = 100000 };

/* ---- one list, or one domain ---- */

struct lookup {
        struct kube_pages *pages; /* of a list */
        struct kube_call *call;   /* of one */
        struct lookup_list *list;
        lookup_done_fn *fn;
        kube_retry_fn *retry;
        void *u;
};

void lookup_list_free(struct lookup_list *l) {
        if (l)
                arena_free(l->arena);
}

const struct lookup_domain *lookup_find(const struct lookup_list *l, const char *uid) {
        const struct lookup_domain *d = l ? SLIST_FIRST(&l->domains) : NULL;
        while (d && !streq(d->uid, uid))
                d = SLIST_NEXT(d, link);
        return d;
}

static void lookup_finish(struct lookup *l, const struct err *e) {
        lookup_done_fn *fn = l->fn;
        void *u = l->u;
        struct lookup_list *list = l->list;
        if (e) {
                lookup_list_free(list);
                list = NULL;
        }
        kube_pages_free(l->pages);
        free(l);
        fn(u, list, e);
}

static void lookup_add(struct lookup *l, yyjson_val *item) {
        struct kube_meta meta = { 0 };
        struct err e;
        yyjson_val *m = yyjson_obj_get(item, "metadata");
        yyjson_val *annotations = yyjson_obj_get(m, "annotations");
        const char *mode = yyjson_get_str(yyjson_obj_get(annotations, CD_ANNOTATION_MODE));
        /* No claim can be for a domain that cannot be read. */
        if (jd_decode(kube_f_meta, m, "", l->list->arena, &meta, &e) < 0 || !meta.uid)
                return;
        struct lookup_domain *d = arena_alloc(l->list->arena, sizeof *d);
        *d = (struct lookup_domain){
                .ns = meta.ns,
                .name = meta.name,
                .uid = meta.uid,
                .mode = mode ? arena_strdup(l->list->arena, mode) : NULL,
                .deleting = meta.deleted != 0,
                .gated = domain_is_gated(
                        yyjson_get_str(yyjson_obj_get(annotations, CD_ANNOTATION_START_GATE))),
        };
        SLIST_INSERT_HEAD(&l->list->domains, d, link);
        l->list->n++;
}

static void lookup_on_page(void *u, yyjson_val *page, bool last, const struct err *e) {
        struct lookup *l = u;
        struct err many;
        yyjson_val *items = yyjson_obj_get(page, "items"), *item;
        size_t i, max;
        /* A domain that was left out would seem not to exist. */
        if (!e && l->list->n + yyjson_arr_size(items) > DOMAINS_MAX) {
                err_set(&many, ERR_INVALID, 0, "there are more than %d", DOMAINS_MAX);
                e = &many;
        }
        if (e) {
                lookup_finish(l, e);
                return;
        }
        yyjson_arr_foreach (items, i, max, item)
                lookup_add(l, item);
        if (last)
                lookup_finish(l, NULL);
}

static void lookup_on_retry(void *u, const struct err *e) {
        struct lookup *l = u;
        l->retry(l->u, e);
}

static struct lookup *lookup_new(lookup_done_fn *fn, kube_retry_fn *retry, void *u) {
        struct lookup *l = xnew(struct lookup);
        struct arena *a = arena_new(1024);
        l->list = arena_alloc(a, sizeof *l->list);
        l->list->arena = a;
        l->fn = fn;
        l->retry = retry;
        l->u = u;
        return l;
}

static void on_one(void *u, yyjson_val *obj, const struct err *e) {
        struct lookup *l = u;
        l->call = NULL;
        if (!e)
                lookup_add(l, obj);
        lookup_finish(l, e && e->kind != ERR_NOT_FOUND ? e : NULL);
}

struct lookup *lookup_get(struct kube_client *c, const char *ns, const char *name, lookup_done_fn *fn,
                          kube_retry_fn *retry, void *u) {
        struct lookup *l = lookup_new(fn, retry, u);
        l->call = kube_start(c, &(struct kube_request){ .verb = KUBE_GET,
                                                        .res = &kube_compute_domains,
                                                        .ns = ns,
                                                        .name = name,
                                                        .metadata_only = true,
                                                        .attempts = UINT_MAX,
                                                        .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                        .done = on_one,
                                                        .retry = lookup_on_retry,
                                                        .u = l });
        return l;
}

struct lookup *lookup_start(struct kube_client *c, const char *ns, bool fresh, lookup_done_fn *fn,
                            kube_retry_fn *retry, void *u) {
        struct lookup *l = lookup_new(fn, retry, u);
        l->pages = kube_pages_new(c, &(struct kube_pages_options){
                                             .res = &kube_compute_domains,
                                             .ns = ns,
                                             .metadata_only = true,
                                             .attempts = UINT_MAX,
                                             .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                             .page = lookup_on_page,
                                             .retry = lookup_on_retry,
                                             .u = l,
                                     });
        kube_pages_start(l->pages, !fresh);
        return l;
}

void lookup_cancel(struct lookup *l) {
        if (!l)
                return;
        kube_pages_free(l->pages);
        kube_cancel(l->call);
        lookup_list_free(l->list);
        free(l);
}

/* ---- watches ---- */

struct lookup_watch {
        LIST_ENTRY(lookup_watch) link;
        struct lookup_watches *all;
        char *ns;
        unsigned refs;
        struct kube_informer *informer;
};

struct lookup_watches {
        struct kube_client *client;
        void (*changed)(void *u);
        void *u;
        LIST_HEAD(, lookup_watch) list;
};

/* Requests only the metadata. */
struct seen_domain {
        struct kube_object o;
};
static const struct jd_field seen_fields[] = { JD_OBJ(struct seen_domain, "metadata", o.meta, kube_f_meta),
                                               JD_END };

static const char *lookup_by_uid(const struct kube_object *o) {
        return o->meta.uid;
}

static void lookup_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct lookup_watch *w = u;
        /* A new domain does not change the state of a waiting Prepare. */
        if (old && (!now || (now->meta.deleted && !old->meta.deleted)))
                w->all->changed(w->all->u);
}

static void lookup_on_synced(void *u) {
        struct lookup_watch *w = u;
        w->all->changed(w->all->u);
}

struct lookup_watches *lookup_watches_new(struct kube_client *c, void (*changed)(void *u), void *u) {
        struct lookup_watches *w = xnew(struct lookup_watches);
        w->client = c;
        w->changed = changed;
        w->u = u;
        LIST_INIT(&w->list);
        return w;
}

void lookup_watches_free(struct lookup_watches *w) {
        BUG_ON(w && !LIST_EMPTY(&w->list));
        free(w);
}

struct lookup_watch *lookup_watch_get(struct lookup_watches *all, const char *ns) {
        struct lookup_watch *w;
        LIST_FOREACH (w, &all->list, link) {
                if (streq(w->ns, ns)) {
                        w->refs++;
                        return w;
                }
        }
        w = xnew(struct lookup_watch);
        w->all = all;
        w->ns = xstrdup(ns);
        w->refs = 1;
        LIST_INSERT_HEAD(&all->list, w, link);
        w->informer = kube_informer_new(all->client, &(struct kube_informer_options){
                                                             .res = &kube_compute_domains,
                                                             .ns = ns,
                                                             .fields = seen_fields,
                                                             .size = sizeof(struct seen_domain),
                                                             .metadata_only = true,
                                                             .index = { lookup_by_uid },
                                                             .changed = lookup_on_changed,
                                                             .synced = lookup_on_synced,
                                                             .u = w,
                                                     });
        return w;
}

void lookup_watch_put(struct lookup_watch *w) {
        if (!w || --w->refs)
                return;
        LIST_REMOVE(w, link);
        kube_informer_free(w->informer);
        free(w->ns);
        free(w);
}

bool lookup_watch_deleting(const struct lookup_watch *w, const char *uid) {
        const struct kube_object *o = w ? kube_informer_first_at(w->informer, 0, uid) : NULL;
        return o && o->meta.deleted;
}

bool lookup_watch_misses(const struct lookup_watch *w, const char *uid) {
        return w && kube_informer_synced(w->informer) && !kube_informer_first_at(w->informer, 0, uid);
}
