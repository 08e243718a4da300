/* SPDX-License-Identifier: Apache-2.0 */
#include "world/informers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/resources.h"
#include "base/mem.h"
#include "kube/kube_informer.h"
#include "world/api.h"

enum { INFORMERS_MAX = 8, SYNCED_MS = 10, SYNCED_AGAIN_MS = 500 };

bool informers_lag, informers_unsynced;
unsigned informers_relists;

struct kube_informer {
        struct kube_informer_options o;
        uv_timer_t timer;
        char *name;                 /* name of the only object; NULL: for many */
        struct kube_object *object; /* the last object that was shown; NULL: none */
        bool changed;               /* `changed` must be called */
        bool lists;                 /* shows the existing objects first */
};

static struct kube_informer *of_one[INFORMERS_MAX];
static struct kube_object *found; /* the last object found by an index; NULL: none */

static void drop(struct kube_informer *i) {
        if (i->object)
                arena_free(i->object->arena);
        i->object = NULL;
}

static void forget_found(void) {
        if (found)
                arena_free(found->arena);
        found = NULL;
}

static struct kube_object *decode(const struct kube_informer *i, yyjson_val *obj) {
        struct arena *a = arena_new(1024);
        struct kube_object *o = arena_alloc(a, i->o.size);
        struct err e;
        assert_int_equal(jd_decode(i->o.fields, obj, "", a, o, &e), 0);
        o->arena = a;
        return o;
}

/* The higher version wins. */
void kube_informer_answer(struct kube_informer *i, yyjson_val *obj) {
        struct kube_object *o = decode(i, obj);
        if (i->object && atoi(i->object->meta.rv) >= atoi(o->meta.rv)) {
                arena_free(o->arena);
                return;
        }
        drop(i);
        i->object = o;
        i->changed = true;
}

static void see(struct kube_informer *i, bool any_version) {
        const struct object *now = store_find(&api.store, i->o.res, i->o.ns, i->name);
        i->changed = true;
        if (!now || any_version)
                drop(i);
        yyjson_doc *doc = now ? store_read(now->json, strlen(now->json)) : NULL;
        if (doc)
                kube_informer_answer(i, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
}

void informers_see(const struct kube_resource *res, bool any_version) {
        for (size_t k = 0; k < INFORMERS_MAX; k++)
                if (of_one[k] && of_one[k]->o.res == res)
                        see(of_one[k], any_version);
}

bool informers_turn(void) {
        bool any = false;
        for (size_t k = 0; k < INFORMERS_MAX; k++) {
                struct kube_informer *i = of_one[k];
                if (i && i->lists)
                        see(i, true);
                if (!i || !i->changed)
                        continue;
                i->changed = i->lists = false;
                i->o.changed(i->o.u, NULL, i->object);
                any = true;
        }
        return any;
}

void informers_fail(const struct kube_resource *res, const struct err *e) {
        for (size_t k = 0; k < INFORMERS_MAX; k++)
                if (of_one[k] && of_one[k]->o.res == res && of_one[k]->o.failing)
                        of_one[k]->o.failing(of_one[k]->o.u, res, e);
}

/* ---- kube_informer.h ---- */

static void on_synced(uv_timer_t *t) {
        struct kube_informer *i = t->data;
        i->o.synced(i->o.u);
}

struct kube_informer *kube_informer_new(struct kube_client *c, const struct kube_informer_options *o) {
        struct kube_informer *i = xnew(struct kube_informer);
        i->o = *o;
        uv_timer_init(api.loop, &i->timer);
        i->timer.data = i;
        if (!o->name) {
                uv_timer_start(&i->timer, on_synced, SYNCED_MS, SYNCED_AGAIN_MS);
                return i;
        }
        size_t k = 0;
        while (of_one[k])
                assert_true(++k < INFORMERS_MAX);
        of_one[k] = i;
        i->name = xstrdup(o->name);
        i->lists = o->res == &kube_pods || o->res == &kube_compute_domains;
        return i;
}

static void on_closed(uv_handle_t *h) {
        struct kube_informer *i = h->data;
        drop(i);
        free(i->name);
        free(i);
}

void kube_informer_free(struct kube_informer *i) {
        if (!i)
                return;
        forget_found();
        for (size_t k = 0; k < INFORMERS_MAX; k++)
                if (of_one[k] == i)
                        of_one[k] = NULL;
        uv_close((uv_handle_t *)&i->timer, on_closed);
}

void kube_informer_relist(struct kube_informer *i) {
        informers_relists++;
}

const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name) {
        return i->object && streq(i->object->meta.name, name) ? i->object : NULL;
}

void kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u) {
        bool more = true;
        for (const struct object *x = api.store.items; more && x < api.store.items + STORE_MAX; x++) {
                if (informers_unsynced || !x->json || x->res != i->o.res || !streq(x->ns, i->o.ns))
                        continue;
                yyjson_doc *doc = store_read(x->json, strlen(x->json));
                struct kube_object *o = decode(i, yyjson_doc_get_root(doc));
                yyjson_doc_free(doc);
                more = (i->o.keep && !i->o.keep(i->o.u, o)) || fn(u, o);
                arena_free(o->arena);
        }
}

bool kube_informer_synced(const struct kube_informer *i) {
        return !informers_unsynced;
}

const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key) {
        for (const struct object *x = api.store.items; x < api.store.items + STORE_MAX; x++) {
                if (informers_lag || !x->json || x->res != i->o.res || !streq(x->ns, i->o.ns))
                        continue;
                yyjson_doc *doc = store_read(x->json, strlen(x->json));
                forget_found();
                found = decode(i, yyjson_doc_get_root(doc));
                yyjson_doc_free(doc);
                if (streq(i->o.index[index](found), key))
                        return found;
        }
        return NULL;
}
