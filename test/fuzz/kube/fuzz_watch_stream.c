/* SPDX-License-Identifier: Apache-2.0 */
/* A watch, from bytes to the cache. The first byte chooses where the bytes are cut; every cut must give the
 * same changes. Extra members of events ("learn", "list", "begin", "end") mark events that come from another
 * source than the watch. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/object_cache.h"
#include "kube/watch_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct thing {
        struct kube_object o;
        const char *node;
        int64_t weight;
        const char **tags;
        size_t n_tags;
};

static const struct jd_field f_thing[] = {
        JD_OBJ(struct thing, "metadata", o.meta, kube_f_meta),
        JD_STR(struct thing, "spec>nodeName", node),
        JD_INT(struct thing, "spec>weight", weight),
        JD_STRS(struct thing, "spec>tags", tags),
        JD_END,
};

struct run {
        struct object_cache *cache;
        uint64_t hash;
        size_t count;
};

static const char *node_of(const struct kube_object *o) {
        return ((const struct thing *)(const void *)o)->node;
}

static const char *uid_of(const struct kube_object *o) {
        return o->meta.uid;
}

static bool keep(void *u, const struct kube_object *o) {
        return ((const struct thing *)(const void *)o)->weight >= 0;
}

static void mix(struct run *r, const char *s) {
        r->hash = r->hash * 31 + (s ? str_fnv64(s, strlen(s)) : 7);
}

static void on_note(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct run *r = u;

        BUG_ON(!old && !now);
        BUG_ON(old && now &&
               (!streq(old->meta.name, now->meta.name) ||
                !streq(str_or(old->meta.ns, ""), str_or(now->meta.ns, ""))));
        r->count += !old;
        r->count -= !now;
        mix(r, old ? old->meta.rv : NULL);
        mix(r, now ? now->meta.rv : NULL);
        mix(r, (now ? now : old)->meta.name);
        kube_object_unref(old);
        kube_object_unref(now);
}

static bool found_at_node(void *u, const struct kube_object *o) {
        const char *node = u;
        BUG_ON(!streq(node_of(o), node));
        return true;
}

static bool check(void *u, const struct kube_object *o) {
        struct run *r = u;
        BUG_ON(object_cache_get(r->cache, o->meta.ns, o->meta.name) != o);
        if (node_of(o)) {
                union {
                        const char *in;
                        void *out;
                } node = { .in = node_of(o) };
                object_cache_each_at(r->cache, 0, node_of(o), found_at_node, node.out);
        }
        BUG_ON(uid_of(o) && !object_cache_first_at(r->cache, 1, uid_of(o)));
        return true;
}

static bool on_event(void *u, enum watch_type type, yyjson_val *object) {
        struct run *r = u;
        const char *rv =
                yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "resourceVersion"));
        enum cache_source source = yyjson_obj_get(object, "learn")  ? CACHE_ANSWER
                                   : yyjson_obj_get(object, "list") ? CACHE_LIST
                                                                    : CACHE_EVENT;
        struct err e;
        bool told;

        switch (type) {
        case WATCH_ADDED:
        case WATCH_MODIFIED:
                if (object_cache_take(r->cache, object, source, &told, &e) < 0)
                        mix(r, told ? "told" : "new");
                break;
        case WATCH_DELETED:
                object_cache_delete(r->cache, object);
                break;
        case WATCH_BOOKMARK:
                if (yyjson_obj_get(object, "begin"))
                        object_cache_begin_list(r->cache);
                if (rv && yyjson_obj_get(object, "end"))
                        object_cache_end_list(r->cache, rv);
                break;
        case WATCH_ERROR:
                return false;
        }
        if (rv && source == CACHE_EVENT)
                object_cache_reached(r->cache, rv);
        BUG_ON(r->count != object_cache_count(r->cache));
        return true;
}

static uint64_t feed(const char *p, size_t n, size_t step) {
        struct run r = { 0 };
        struct watch_stream w;
        struct err e;
        int rc = 0;

        r.cache = object_cache_new(&(struct kube_informer_options){ .fields = f_thing,
                                                                    .size = sizeof(struct thing),
                                                                    .index = { node_of, uid_of },
                                                                    .keep = keep },
                                   on_note, &r);
        watch_stream_init(&w, 4096, on_event, &r);
        for (size_t at = 0; at < n && rc == 0; at += step)
                rc = watch_stream_feed(&w, p + at, n - at < step ? n - at : step, &e);
        object_cache_each(r.cache, check, &r);
        watch_stream_done(&w);
        object_cache_free(r.cache);
        return r.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        if (n < 2)
                return 0;
        /* An ERROR ends only the present piece, and a whole line counts against the limit before an
         * incomplete one. Without either, cuts make no difference. */
        const char *p = (const char *)data + 1;
        bool same = !memmem(p, n - 1, "ERROR", 5) && !memchr(p, '\\', n - 1);
        uint64_t whole = feed(p, n - 1, n), cut = feed(p, n - 1, data[0] ? data[0] : 1);
        BUG_ON(same && n < 4096 && whole != cut);
        return 0;
}
