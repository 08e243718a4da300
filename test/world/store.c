/* SPDX-License-Identifier: Apache-2.0 */
#include "world/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <yyjson.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

void object_vanish(struct object *x) {
        free(TAKE(x->ns));
        free(TAKE(x->name));
        free(TAKE(x->json));
}

void store_done(struct store *s) {
        for (size_t i = 0; i < STORE_MAX; i++)
                object_vanish(&s->items[i]);
}

struct object *store_find(struct store *s, const struct kube_resource *res, const char *ns,
                          const char *name) {
        for (struct object *x = s->items; x < s->items + STORE_MAX; x++)
                if (x->json && x->res == res && (!ns || streq(x->ns, ns)) && (!name || streq(x->name, name)))
                        return x;
        return NULL;
}

static struct object *place(struct store *s, const struct kube_resource *res, const char *ns,
                            const char *name) {
        for (struct object *x = s->items; x < s->items + STORE_MAX; x++)
                if (!x->json) {
                        *x = (struct object){ res, xstrdup(ns), xstrdup(name), NULL };
                        return x;
                }
        fail_msg("there are %d objects", STORE_MAX);
        return NULL;
}

void store_set(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
               const char *json) {
        struct object *x = store_find(s, res, ns, name);
        if (x)
                object_vanish(x);
        if (json)
                place(s, res, ns, name)->json = xstrdup(json);
}

yyjson_doc *store_read(const char *json, size_t n) {
        yyjson_doc *doc = yyjson_read(json, n, 0);
        return doc ? doc : yyjson_read(json, n, 0);
}

static yyjson_mut_doc *parse(const char *json) {
        yyjson_doc *doc = store_read(json, strlen(json));
        if (!doc)
                fail_msg("not JSON: %s", json);
        yyjson_mut_doc *mut = yyjson_doc_mut_copy(doc, NULL);
        yyjson_doc_free(doc);
        return mut;
}

static yyjson_mut_val *meta_of(yyjson_mut_doc *doc) {
        return yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
}

/* Sets the members that an API server sets, and stores the object. Takes the document. */
static void put(struct store *s, struct object *x, yyjson_mut_doc *doc, bool created) {
        yyjson_mut_val *meta = meta_of(doc);
        char rv[32], uid[48];
        snprintf(rv, sizeof rv, "%lld", (long long)++s->version);
        yyjson_mut_obj_remove_key(meta, "resourceVersion");
        yyjson_mut_obj_add_strcpy(doc, meta, "resourceVersion", rv);
        if (created && !yyjson_mut_obj_get(meta, "uid")) {
                snprintf(uid, sizeof uid, "cccccccc-0000-4000-8000-%012lld", (long long)s->version);
                yyjson_mut_obj_add_strcpy(doc, meta, "uid", uid);
        }
        if (created && !yyjson_mut_obj_get(meta, "generation"))
                yyjson_mut_obj_add_int(doc, meta, "generation", 1);
        size_t n_finalizers = yyjson_mut_arr_size(yyjson_mut_obj_get(meta, "finalizers"));
        if (yyjson_mut_obj_get(meta, "deletionTimestamp") && !n_finalizers) {
                object_vanish(x);
        } else {
                free(x->json);
                x->json = yyjson_mut_write(doc, 0, NULL);
        }
        yyjson_mut_doc_free(doc);
}

void store_create(struct store *s, const struct kube_resource *res, const char *ns, const char *name,
                  const char *json) {
        put(s, place(s, res, ns, name), parse(json), true);
}

void store_delete(struct store *s, struct object *x, int64_t now_s) {
        yyjson_mut_doc *doc = parse(x->json);
        yyjson_mut_val *meta = meta_of(doc);
        struct buf b = BUF_INIT(64);
        struct jw j = JW(&b);
        jw_time(&j, NULL, now_s);
        if (!yyjson_mut_obj_get(meta, "deletionTimestamp")) {
                b.p[b.n - 1] = '\0';
                yyjson_mut_obj_add_strcpy(doc, meta, "deletionTimestamp", b.p + 1);
        }
        put(s, x, doc, false);
        buf_done(&b);
}

/* May a patch change the stored object? It must not name another value of this member. */
static bool agrees(yyjson_mut_doc *patch, yyjson_mut_doc *stored, const char *key) {
        const char *wanted = yyjson_mut_get_str(yyjson_mut_obj_get(meta_of(patch), key));
        return !wanted || streq(wanted, yyjson_mut_get_str(yyjson_mut_obj_get(meta_of(stored), key)));
}

bool store_patch(struct store *s, struct object *x, const char *body, bool status) {
        yyjson_mut_doc *was = parse(x->json), *patch = parse(body);
        bool good = agrees(patch, was, "resourceVersion") && agrees(patch, was, "uid");
        if (!status)
                yyjson_mut_obj_remove_key(yyjson_mut_doc_get_root(patch), "status");
        if (good) {
                yyjson_mut_doc *now = yyjson_mut_doc_new(NULL);
                yyjson_mut_doc_set_root(now, yyjson_mut_merge_patch(now, yyjson_mut_doc_get_root(was),
                                                                    yyjson_mut_doc_get_root(patch)));
                put(s, x, now, false);
        }
        yyjson_mut_doc_free(was);
        yyjson_mut_doc_free(patch);
        return good;
}
