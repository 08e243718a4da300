/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_cache.h"

#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "base/diag.h"
#include "base/mem.h"

/* uthash ends the process by itself when memory is out, as xmalloc() does. */
#include <uthash.h>

/* All objects of one key of one index. */
struct bucket {
        UT_hash_handle hh;
        LIST_HEAD(, entry) entries;
        char key[];
};

/* Lives in the arena of its object, so that an object is one piece of memory; replaced with it. */
struct entry {
        UT_hash_handle hh; /* by "namespace/name" */
        struct kube_object *object;
        uint64_t version; /* 0: not a number */
        unsigned round;   /* the list that showed it last */
        bool learned;     /* from an answer; no list or event has shown this version yet */
        TAILQ_ENTRY(entry) of_learned; /* while `learned`, if the version is a number */
        LIST_ENTRY(entry) links[KUBE_MAX_INDEX];
        struct bucket *buckets[KUBE_MAX_INDEX];
};

/* An object that could not be decoded, in the version last seen. */
struct bad {
        UT_hash_handle hh;
        char *version;
        unsigned round;
        char key[];
};

struct object_cache {
        struct object_cache_options o;
        struct entry *entries;
        struct bucket *buckets[KUBE_MAX_INDEX];
        struct bad *bad;
        unsigned round;
        uint64_t reached;
        bool went_back; /* the list that is being taken is older than that */
        /* By version: each event asks for those that it has passed, and finds them at the head. */
        TAILQ_HEAD(learned, entry) learned;
};

/* What the cache must know of an object before it is decoded; points into the document. */
struct ident {
        const char *ns, *name, *rv;
        uint64_t version;
        char *key;
};

static uint64_t version_of(const char *rv) {
        int64_t v;
        return rv && str_to_i64(str_from(rv), &v) && v > 0 ? (uint64_t)v : 0;
}

static char *key_of(const char *ns, const char *name) {
        return xasprintf("%s/%s", ns ? ns : "", name);
}

static int identify(yyjson_val *object, struct ident *ret, struct err *e) {
        yyjson_val *meta = yyjson_obj_get(object, "metadata");

        ret->ns = yyjson_get_str(yyjson_obj_get(meta, "namespace"));
        ret->name = yyjson_get_str(yyjson_obj_get(meta, "name"));
        ret->rv = yyjson_get_str(yyjson_obj_get(meta, "resourceVersion"));
        if (!ret->name || !ret->rv)
                return err_set(e, ERR_INVALID, 0,
                               "an object without metadata.name or metadata.resourceVersion");
        if (strchr(ret->name, '/') || (ret->ns && strchr(ret->ns, '/'))) /* the key would not be unique */
                return err_set(e, ERR_INVALID, 0, "an object with a slash in its name");
        ret->version = version_of(ret->rv);
        ret->key = key_of(ret->ns, ret->name);
        return 0;
}

static struct entry *find(const struct object_cache *c, const char *key) {
        struct entry *x;
        HASH_FIND_STR(c->entries, key, x);
        return x;
}

/* ---- what was learned ---- */

/* Answers come nearly in the order of their versions. */
static void add_learned(struct object_cache *c, struct entry *x) {
        struct entry *at;

        if (!x->version)
                return;
        TAILQ_FOREACH_REVERSE (at, &c->learned, learned, of_learned)
                if (at->version <= x->version)
                        break;
        if (at)
                TAILQ_INSERT_AFTER(&c->learned, at, x, of_learned);
        else
                TAILQ_INSERT_HEAD(&c->learned, x, of_learned);
}

static void remove_learned(struct object_cache *c, struct entry *x) {
        if (x->learned && x->version)
                TAILQ_REMOVE(&c->learned, x, of_learned);
}

/* ---- indexes ---- */

static struct bucket *find_bucket(const struct object_cache *c, unsigned index, const char *key) {
        struct bucket *b;
        BUG_ON(index >= KUBE_MAX_INDEX || !c->o.index[index]);
        HASH_FIND_STR(c->buckets[index], key, b);
        return b;
}

static void link_entry(struct object_cache *c, struct entry *x, char *key) {
        HASH_ADD_KEYPTR(hh, c->entries, key, strlen(key), x);
        if (x->learned)
                add_learned(c, x);
        for (unsigned i = 0; i < KUBE_MAX_INDEX && c->o.index[i]; i++) {
                const char *at = c->o.index[i](x->object);
                if (!at)
                        continue;
                struct bucket *b = find_bucket(c, i, at);
                if (!b) {
                        size_t n = strlen(at) + 1;
                        b = xcalloc(1, sizeof *b + n);
                        memcpy(b->key, at, n);
                        HASH_ADD_STR(c->buckets[i], key, b);
                }
                LIST_INSERT_HEAD(&b->entries, x, links[i]);
                x->buckets[i] = b;
        }
}

static void unlink_entry(struct object_cache *c, struct entry *x) {
        HASH_DEL(c->entries, x);
        remove_learned(c, x);
        for (unsigned i = 0; i < KUBE_MAX_INDEX; i++) {
                struct bucket *b = x->buckets[i];
                if (!b)
                        continue;
                LIST_REMOVE(x, links[i]);
                if (LIST_EMPTY(&b->entries)) {
                        HASH_DEL(c->buckets[i], b);
                        free(b);
                }
        }
}

static void remove_entry(struct object_cache *c, struct entry *x) {
        unlink_entry(c, x);
        c->o.note(c->o.note_u, x->object, NULL);
}

/* ---- objects that cannot be decoded ---- */

static bool note_bad(struct object_cache *c, const struct ident *id) {
        struct bad *b;
        size_t n = strlen(id->key) + 1;

        HASH_FIND_STR(c->bad, id->key, b);
        if (!b) {
                b = xcalloc(1, sizeof *b + n);
                memcpy(b->key, id->key, n);
                HASH_ADD_STR(c->bad, key, b);
        }
        b->round = c->round;
        if (streq(b->version, id->rv))
                return true;
        free(b->version);
        b->version = xstrdup(id->rv);
        return false;
}

static void free_bad(struct object_cache *c, struct bad *b) {
        HASH_DEL(c->bad, b);
        free(b->version);
        free(b);
}

static void forget_bad(struct object_cache *c, const char *key) {
        struct bad *b;
        HASH_FIND_STR(c->bad, key, b);
        if (b)
                free_bad(c, b);
}

/* ---- changes ---- */

static struct entry *decode(struct object_cache *c, yyjson_val *object, const struct ident *id,
                            struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(c->o.size + sizeof(struct entry) + 256);
        struct kube_object *o = arena_alloc(a, c->o.size);
        struct entry *x;

        if (jd_decode(c->o.fields, object, false, "", a, o, e) < 0) {
                err_wrap(e, "%s", id->key);
                return NULL;
        }
        x = arena_alloc(a, sizeof *x);
        x->object = o;
        x->version = id->version;
        x->round = c->round;
        o->refs = 1;
        o->arena = TAKE(a);
        return x;
}

static int take(struct object_cache *c, yyjson_val *object, const struct ident *id, enum cache_source source,
                bool *ret_told, struct err *e) {
        struct entry *old = find(c, id->key), *x;

        if (old) {
                /* A list shows it exists, even where we know a newer version of it. */
                if (source == CACHE_LIST)
                        old->round = c->round;
                bool same = streq(old->object->meta.rv, id->rv);
                if (same && source != CACHE_LEARNED && old->learned) {
                        remove_learned(c, old);
                        old->learned = false;
                }
                bool newer = old->version && id->version && old->version > id->version;
                if (same || (newer && !(source == CACHE_LIST && c->went_back)))
                        return 0;
        } else if (source == CACHE_LEARNED && id->version && id->version <= c->reached) {
                /* The watch is past this version already: the object was deleted since, or is none of ours.
                 */
                return 0;
        }

        x = decode(c, object, id, e);
        if (!x) {
                *ret_told = note_bad(c, id);
                return -1;
        }
        forget_bad(c, id->key);
        if (c->o.keep && !c->o.keep(c->o.keep_u, x->object)) {
                kube_object_unref(x->object);
                if (old)
                        remove_entry(c, old);
                return 0;
        }
        x->learned = source == CACHE_LEARNED;
        if (old)
                unlink_entry(c, old);
        link_entry(c, x, arena_strdup(x->object->arena, id->key));
        c->o.note(c->o.note_u, old ? old->object : NULL, kube_object_ref(x->object));
        return 0;
}

int object_cache_take(struct object_cache *c, yyjson_val *object, enum cache_source source, bool *ret_told,
                      struct err *e) {
        struct ident id;

        *ret_told = false;
        if (identify(object, &id, e) < 0)
                return -1;
        int r = take(c, object, &id, source, ret_told, e);
        free(id.key);
        return r;
}

void object_cache_delete(struct object_cache *c, yyjson_val *object) {
        struct ident id;
        struct err ignored;

        if (identify(object, &id, &ignored) < 0)
                return;
        struct entry *x = find(c, id.key);
        forget_bad(c, id.key);
        /* A newer version that we learned is another object of the same name. */
        if (x && !(x->version && id.version && x->version > id.version))
                remove_entry(c, x);
        free(id.key);
}

void object_cache_begin_list(struct object_cache *c) {
        c->round++;
        c->went_back = false;
}

void object_cache_list_version(struct object_cache *c, const char *rv) {
        uint64_t version = version_of(rv);
        c->went_back = version && version < c->reached;
}

void object_cache_end_list(struct object_cache *c, const char *rv) {
        uint64_t version = version_of(rv);
        struct entry *x, *next;
        struct bad *b, *next_bad;

        HASH_ITER (hh, c->entries, x, next) {
                bool newer = x->learned && x->version && version && x->version > version && !c->went_back;
                if (x->round != c->round && !newer)
                        remove_entry(c, x);
        }
        HASH_ITER (hh, c->bad, b, next_bad) {
                if (b->round != c->round)
                        free_bad(c, b);
        }
        if (c->went_back)
                c->reached = 0;
        object_cache_reached(c, rv);
}

bool object_cache_reached(struct object_cache *c, const char *rv) {
        struct entry *x;
        uint64_t version = version_of(rv);

        if (version <= c->reached)
                return version == 0 || version == c->reached;
        c->reached = version;
        while ((x = TAILQ_FIRST(&c->learned)) && x->version < version)
                remove_entry(c, x);
        return true;
}

/* ---- looking ---- */

size_t object_cache_count(const struct object_cache *c) {
        return HASH_COUNT(c->entries);
}

const struct kube_object *object_cache_get(const struct object_cache *c, const char *ns, const char *name) {
        _cleanup_(freep) char *key = key_of(ns, name);
        struct entry *x = find(c, key);
        return x ? x->object : NULL;
}

void object_cache_each(const struct object_cache *c, kube_visit_fn *fn, void *u) {
        for (struct entry *x = c->entries; x; x = x->hh.next)
                if (!fn(u, x->object))
                        return;
}

void object_cache_each_at(const struct object_cache *c, unsigned index, const char *key, kube_visit_fn *fn,
                          void *u) {
        struct bucket *b = find_bucket(c, index, key);
        struct entry *x;

        if (!b)
                return;
        LIST_FOREACH (x, &b->entries, links[index])
                if (!fn(u, x->object))
                        return;
}

const struct kube_object *object_cache_first_at(const struct object_cache *c, unsigned index,
                                                const char *key) {
        struct bucket *b = find_bucket(c, index, key);
        return b ? LIST_FIRST(&b->entries)->object : NULL;
}

/* ---- the cache ---- */

struct object_cache *object_cache_new(const struct object_cache_options *o) {
        struct object_cache *c = xnew(struct object_cache);
        c->o = *o;
        TAILQ_INIT(&c->learned);
        return c;
}

void object_cache_free(struct object_cache *c) {
        struct entry *x, *next;
        struct bad *b, *next_bad;

        if (!c)
                return;
        HASH_ITER (hh, c->entries, x, next) {
                unlink_entry(c, x);
                kube_object_unref(x->object);
        }
        HASH_ITER (hh, c->bad, b, next_bad)
                free_bad(c, b);
        free(c);
}
