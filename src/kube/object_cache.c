/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_cache.h"

#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "base/stderr.h"
#include "base/mem.h"

/* uthash ends the process when memory is out, as xmalloc() does. */
#include <uthash.h>

/* Entries by a key that several may share. Those of one slot are in no order, except that the newest of a key
 * comes first. Most keys have one object, so keys need no extra memory. */
LIST_HEAD(slot, entry);
struct index {
        struct slot *slots;
        size_t n_slots, n; /* a power of two; entries */
};

/* The index of `keys`. An object has one link for each of its different keys. While the links of an object
 * are added, those in the same slot are at its head. */
LIST_HEAD(key_slot, key_link);
struct key_link {
        LIST_ENTRY(key_link) others;
        const struct entry *entry;
        const char *key;
};
struct key_index {
        struct key_slot *slots;
        size_t n_slots, n; /* a power of two; links */
};

/* The links of one object, behind those of its entry. */
struct keyed {
        size_t n;
        struct key_link list[];
};

/* In the arena of its object, so an object is one piece of memory. Replaced together with it. */
struct entry {
        struct kube_object *object;
        uint64_t version;              /* 0: not a number */
        unsigned round;                /* the last list that contained it */
        bool from_answer;              /* no list or event has shown this version yet */
        bool completed;                /* only its metadata has arrived; see `inherit` of the informer */
        TAILQ_ENTRY(entry) of_answers; /* while `from_answer`, if the version is a number */
        LIST_ENTRY(entry) links[];     /* by namespace and name, then one for each index */
};

/* An object that could not be decoded, in the version last seen. */
struct bad {
        UT_hash_handle hh;
        char *version;
        unsigned round;
        char key[];
};

struct object_cache {
        struct kube_informer_options o;
        cache_note_fn *note;
        void *note_u;
        struct index indexes[1 + KUBE_MAX_INDEX]; /* the first is by namespace and name */
        unsigned n_indexes;
        struct key_index by_keys;
        struct bad *bad;
        unsigned round;
        uint64_t reached;
        uint64_t known,
                list_version; /* the newest version when the present list began, and the list's version */
        bool rolled_back;     /* the list is older than `known` */
        /* Ordered by version: each event searches for the versions that it has passed, which are at the
         * head. */
        TAILQ_HEAD(answers, entry) answers;
};

/* What the cache must know about an object before decoding it. Points into the document. */
struct ident {
        const char *ns, *name, *uid, *rv;
        uint64_t version;
        bool partial; /* only the metadata of an object that has more */
        char *key;
};

static int object_cache_identify(const struct object_cache *c, yyjson_val *object, struct ident *ret,
                                 struct err *e) {
        yyjson_val *meta = yyjson_obj_get(object, "metadata");

        ret->ns = yyjson_get_str(yyjson_obj_get(meta, "namespace"));
        ret->name = yyjson_get_str(yyjson_obj_get(meta, "name"));
        ret->uid = yyjson_get_str(yyjson_obj_get(meta, "uid"));
        ret->rv = yyjson_get_str(yyjson_obj_get(meta, "resourceVersion"));
        ret->partial = c->o.inherit &&
                       streq(yyjson_get_str(yyjson_obj_get(object, "kind")), "PartialObjectMetadata");
        if (!ret->name || !ret->rv)
                return err_set(e, ERR_INVALID, 0,
                               "an object without metadata.name or metadata.resourceVersion");
        if (strchr(ret->name, '/') ||
            (ret->ns && strchr(ret->ns, '/'))) /* otherwise the key would not be unique */
                return err_set(e, ERR_INVALID, 0, "an object with a slash in its name");
        ret->version = kube_object_version(ret->rv);
        ret->key = xasprintf("%s/%s", str_or(ret->ns, ""), ret->name);
        return 0;
}

/* ---- objects from answers ---- */

/* Answers come nearly in the order of their versions. */
static void add_answer(struct object_cache *c, struct entry *x) {
        struct entry *at;

        if (!x->version)
                return;
        TAILQ_FOREACH_REVERSE (at, &c->answers, answers, of_answers)
                if (at->version <= x->version)
                        break;
        if (at)
                TAILQ_INSERT_AFTER(&c->answers, at, x, of_answers);
        else
                TAILQ_INSERT_HEAD(&c->answers, x, of_answers);
}

static void remove_answer(struct object_cache *c, struct entry *x) {
        if (x->from_answer && x->version)
                TAILQ_REMOVE(&c->answers, x, of_answers);
}

/* ---- indexes ---- */

enum { MIN_SLOTS = 16, SLOT_HOLDS = 2 /* on average, at most */ };

static uint64_t hash(const char *key) {
        return str_fnv64(key, strlen(key));
}

static uint64_t hash_name(const char *ns, const char *name) {
        return 31 * hash(str_or(ns, "")) + hash(name);
}

/* NULL: it is not in this index. */
static const char *key_at(const struct object_cache *c, unsigned index, const struct entry *x) {
        return index ? c->o.index[index - 1](x->object) : x->object->meta.name;
}

static struct slot *object_cache_slot_of(const struct index *x, uint64_t hash) {
        return &x->slots[hash & (x->n_slots - 1)];
}

static struct slot *slot_at(const struct object_cache *c, unsigned index, const struct entry *x) {
        const struct kube_meta *m = &x->object->meta;
        return object_cache_slot_of(&c->indexes[index],
                                    index ? hash(key_at(c, index, x)) : hash_name(m->ns, m->name));
}

/* Doubles the number of slots. The order of entries within a slot is kept. */
static void object_cache_grow(struct object_cache *c, unsigned index) {
        struct index *x = &c->indexes[index];
        struct index was = *x;
        x->n_slots = was.n_slots ? 2 * was.n_slots : MIN_SLOTS;
        x->slots = xnew_n(struct slot, x->n_slots);
        for (size_t i = 0; i < was.n_slots; i++) {
                struct entry *e, *last[2] = { NULL };
                while ((e = LIST_FIRST(&was.slots[i]))) {
                        struct slot *to = slot_at(c, index, e);
                        struct entry **behind = &last[(size_t)(to - x->slots) >= was.n_slots];
                        LIST_REMOVE(e, links[index]);
                        if (*behind)
                                LIST_INSERT_AFTER(*behind, e, links[index]);
                        else
                                LIST_INSERT_HEAD(to, e, links[index]);
                        *behind = e;
                }
        }
        free(was.slots);
}

/* The next entry with the key, from `e` on; NULL for none. */
static struct entry *next_at(const struct object_cache *c, unsigned index, const char *key, struct entry *e) {
        while (e && !streq(key_at(c, index, e), key))
                e = LIST_NEXT(e, links[index]);
        return e;
}

static struct entry *first_at(const struct object_cache *c, unsigned index, const char *key) {
        BUG_ON(index >= c->n_indexes);
        const struct index *x = &c->indexes[index];
        return x->n && key ? next_at(c, index, key, LIST_FIRST(object_cache_slot_of(x, hash(key)))) : NULL;
}

static struct entry *object_cache_find(const struct object_cache *c, const char *ns, const char *name) {
        struct entry *x = c->indexes[0].n
                                  ? LIST_FIRST(object_cache_slot_of(&c->indexes[0], hash_name(ns, name)))
                                  : NULL;
        while (x &&
               !(streq(x->object->meta.name, name) && streq(str_or(x->object->meta.ns, ""), str_or(ns, ""))))
                x = LIST_NEXT(x, links[0]);
        return x;
}

/* ---- the index of `keys` ---- */

/* NULL: the cache has no such index. */
static struct keyed *keyed_of(const struct object_cache *c, struct entry *x) {
        return c->o.keys ? (struct keyed *)(void *)&x->links[c->n_indexes] : NULL;
}

static void count_key(void *v, const char *key) {
        ++*(size_t *)v;
}

/* The same key may count several times. */
static size_t key_count(const struct object_cache *c, const struct kube_object *o) {
        size_t n = 0;
        c->o.keys(o, count_key, &n);
        return n;
}

static size_t keyed_size(const struct object_cache *c, const struct kube_object *o) {
        return c->o.keys ? sizeof(struct keyed) + key_count(c, o) * sizeof(struct key_link) : 0;
}

static struct key_slot *key_slot_of(const struct key_index *x, const char *key) {
        return &x->slots[hash(key) & (x->n_slots - 1)];
}

static void grow_keys(struct key_index *x) {
        struct key_index was = *x;
        x->n_slots = was.n_slots ? 2 * was.n_slots : MIN_SLOTS;
        x->slots = xnew_n(struct key_slot, x->n_slots);
        for (size_t i = 0; i < was.n_slots; i++)
                for (struct key_link *l; (l = LIST_FIRST(&was.slots[i]));) {
                        LIST_REMOVE(l, others);
                        LIST_INSERT_HEAD(key_slot_of(x, l->key), l, others);
                }
        free(was.slots);
}

struct linking {
        struct object_cache *c;
        struct entry *x;
};

static void link_key(void *v, const char *key) {
        struct linking *in = v;
        struct key_index *x = &in->c->by_keys;
        struct keyed *keyed = keyed_of(in->c, in->x);
        struct key_slot *slot = key_slot_of(x, key);
        for (const struct key_link *l = LIST_FIRST(slot); l && l->entry == in->x; l = LIST_NEXT(l, others))
                if (streq(l->key, key))
                        return;
        struct key_link *l = &keyed->list[keyed->n++];
        l->entry = in->x;
        l->key = key;
        LIST_INSERT_HEAD(slot, l, others);
        x->n++;
}

/* Makes room first, because grow_keys() changes the order within a slot. */
static void link_keys(struct object_cache *c, struct entry *x) {
        if (!c->o.keys)
                return;
        size_t n = key_count(c, x->object);
        while (c->by_keys.n + n > SLOT_HOLDS * c->by_keys.n_slots)
                grow_keys(&c->by_keys);
        c->o.keys(x->object, link_key, &(struct linking){ c, x });
}

static void unlink_keys(struct object_cache *c, struct entry *x) {
        struct keyed *keyed = keyed_of(c, x);
        for (size_t i = 0; keyed && i < keyed->n; i++)
                LIST_REMOVE(&keyed->list[i], others);
        c->by_keys.n -= keyed ? keyed->n : 0;
}

/* In no order. The present entry may be removed. */
#define EACH_ENTRY(c, x, next)                                                                               \
        for (size_t slot_ = 0; slot_ < (c)->indexes[0].n_slots; slot_++)                                     \
                for (x = LIST_FIRST(&(c)->indexes[0].slots[slot_]);                                          \
                     x && (next = LIST_NEXT(x, links[0]), true); x = next)

static void link_entry(struct object_cache *c, struct entry *x) {
        if (x->from_answer)
                add_answer(c, x);
        for (unsigned i = 0; i < c->n_indexes; i++) {
                if (!key_at(c, i, x))
                        continue;
                if (c->indexes[i].n++ >= SLOT_HOLDS * c->indexes[i].n_slots)
                        object_cache_grow(c, i);
                LIST_INSERT_HEAD(slot_at(c, i, x), x, links[i]);
        }
        link_keys(c, x);
}

static void unlink_entry(struct object_cache *c, struct entry *x) {
        remove_answer(c, x);
        unlink_keys(c, x);
        for (unsigned i = 0; i < c->n_indexes; i++) {
                if (!key_at(c, i, x))
                        continue;
                LIST_REMOVE(x, links[i]);
                c->indexes[i].n--;
        }
}

static void remove_entry(struct object_cache *c, struct entry *x) {
        unlink_entry(c, x);
        c->note(c->note_u, x->object, NULL);
}

/* ---- objects that cannot be decoded ---- */

static bool note_bad(struct object_cache *c, const struct ident *id) {
        struct bad *b;

        HASH_FIND_STR(c->bad, id->key, b);
        if (!b) {
                b = xnew_keyed(struct bad, key, id->key);
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

/* Copies an entry and its object into their own arena. */
static struct entry *object_cache_pack(const struct object_cache *c, const void *kept, const struct ident *id,
                                       struct arena *a) {
        struct entry *x = arena_alloc(a, sizeof *x + c->n_indexes * sizeof x->links[0] + keyed_size(c, kept));
        struct kube_object *o = arena_alloc(a, c->o.size);
        jd_copy(c->o.kept ? c->o.kept : c->o.fields, kept, a, o);
        x->object = o;
        x->version = id->version;
        x->round = c->round;
        o->refs = 1;
        o->arena = a;
        return x;
}

/* There are many objects, and they stay: each gets exactly the memory that its kept members need. */
static struct entry *object_cache_decode(struct object_cache *c, yyjson_val *object, const struct ident *id,
                                         const struct entry *old, bool *ret_kept, struct err *e) {
        size_t size = c->o.decoded_size ? c->o.decoded_size : c->o.size;
        _cleanup_(arena_freep) struct arena *whole = arena_new(4096), *measured = arena_new(4096);
        struct kube_object *o = arena_alloc(whole, size);

        if (jd_decode(c->o.fields, object, "", whole, o, e) < 0) {
                err_wrap(e, "%s", id->key);
                return NULL;
        }
        *ret_kept = !c->o.keep || c->o.keep(c->o.u, o);
        if (!*ret_kept)
                return NULL;
        const void *kept = c->o.trim ? c->o.trim(o, whole) : o;
        if (id->partial)
                kept = c->o.inherit(kept, old && streq(old->object->meta.uid, id->uid) ? old->object : NULL,
                                    whole);
        size_t before = arena_used(measured);
        object_cache_pack(c, kept, id, measured);
        return object_cache_pack(c, kept, id, arena_new(arena_used(measured) - before));
}

/* The list contains an older version of the object than this one, which belongs to another history. */
static bool list_contradicts(const struct object_cache *c, const struct entry *x) {
        return c->rolled_back || x->version <= c->list_version;
}

static int object_cache_take_version(struct object_cache *c, yyjson_val *object, const struct ident *id,
                                     enum cache_source source, bool *ret_reported, struct err *e) {
        struct entry *old = object_cache_find(c, id->ns, id->name), *x;
        bool kept = true, completes = false;

        if (old) {
                /* The list proves that it exists, even if we know a newer version of it. */
                if (source == CACHE_LIST)
                        old->round = c->round;
                const struct kube_meta *m = &old->object->meta;
                bool same = streq(m->rv, id->rv) && (!m->uid || streq(m->uid, id->uid));
                if (same && source != CACHE_ANSWER && old->from_answer) {
                        remove_answer(c, old);
                        old->from_answer = false;
                }
                bool newer = old->version && id->version && old->version > id->version;
                completes = same && old->completed && !id->partial;
                if ((same && !completes) || (newer && !(source == CACHE_LIST && list_contradicts(c, old))))
                        return 0;
        } else if (source == CACHE_ANSWER && id->version && id->version <= c->reached) {
                /* The watch has passed this version: the object was deleted since, or does not belong
                 * here. */
                return 0;
        }

        x = object_cache_decode(c, object, id, old, &kept, e);
        if (!x && kept) {
                *ret_reported = note_bad(c, id);
                return -1;
        }
        forget_bad(c, id->key);
        if (!x) {
                if (old)
                        remove_entry(c, old);
                return 0;
        }
        x->completed = id->partial;
        x->from_answer = source == CACHE_ANSWER && !(completes && !old->from_answer);
        if (x->from_answer)
                x->round = 0; /* no list has contained it, including the present one */
        else if (source == CACHE_ANSWER)
                x->round = old->round;
        if (old)
                unlink_entry(c, old);
        link_entry(c, x);
        c->note(c->note_u, old ? old->object : NULL, kube_object_ref(x->object));
        return 0;
}

int object_cache_take(struct object_cache *c, yyjson_val *object, enum cache_source source,
                      bool *ret_reported, struct err *e) {
        struct ident id;

        *ret_reported = false;
        if (object_cache_identify(c, object, &id, e) < 0)
                return -1;
        int r = object_cache_take_version(c, object, &id, source, ret_reported, e);
        free(id.key);
        return r;
}

void object_cache_delete(struct object_cache *c, yyjson_val *object) {
        struct ident id;
        struct err ignored;

        if (object_cache_identify(c, object, &id, &ignored) < 0)
                return;
        struct entry *x = object_cache_find(c, id.ns, id.name);
        forget_bad(c, id.key);
        /* A newer version from an answer is another object of the same name. */
        if (x && !(x->version && id.version && x->version > id.version))
                remove_entry(c, x);
        free(id.key);
}

void object_cache_delete_uid(struct object_cache *c, const char *ns, const char *name, const char *uid) {
        struct entry *x = object_cache_find(c, ns, name);
        if (x && uid && streq(x->object->meta.uid, uid))
                remove_entry(c, x);
}

void object_cache_begin_list(struct object_cache *c) {
        const struct entry *last = TAILQ_LAST(&c->answers, answers);

        c->round++;
        c->rolled_back = false;
        /* The first list may come from the API server's cache, which may be older than the answers to our own
         * writes. */
        c->known = c->reached && last && last->version > c->reached ? last->version : c->reached;
}

void object_cache_list_version(struct object_cache *c, const char *rv) {
        c->list_version = kube_object_version(rv);
        c->rolled_back = c->list_version && c->list_version < c->known;
}

void object_cache_end_list(struct object_cache *c, const char *rv) {
        uint64_t version = kube_object_version(rv);
        struct entry *x, *next;
        struct bad *b, *next_bad;

        EACH_ENTRY (c, x, next) {
                bool newer =
                        x->from_answer && x->version && version && x->version > version && !c->rolled_back;
                if (x->round != c->round && !newer)
                        remove_entry(c, x);
        }
        HASH_ITER (hh, c->bad, b, next_bad) {
                if (b->round != c->round)
                        free_bad(c, b);
        }
        if (c->rolled_back)
                c->reached = 0;
        object_cache_reached(c, rv);
}

void object_cache_reached(struct object_cache *c, const char *rv) {
        struct entry *x;
        uint64_t version = kube_object_version(rv);

        if (version <= c->reached)
                return;
        c->reached = version;
        while ((x = TAILQ_FIRST(&c->answers)) && x->version < version)
                remove_entry(c, x);
}

/* ---- reading ---- */

size_t object_cache_count(const struct object_cache *c) {
        return c->indexes[0].n;
}

const struct kube_object *object_cache_get(const struct object_cache *c, const char *ns, const char *name) {
        const struct entry *x = object_cache_find(c, ns, name);
        return x ? x->object : NULL;
}

void object_cache_each(const struct object_cache *c, kube_visit_fn *fn, void *u) {
        struct entry *x, *next;
        EACH_ENTRY (c, x, next)
                if (!fn(u, x->object))
                        return;
}

void object_cache_each_at(const struct object_cache *c, unsigned index, const char *key, kube_visit_fn *fn,
                          void *u) {
        for (struct entry *x = first_at(c, index + 1, key), *next; x; x = next) {
                next = next_at(c, index + 1, key, LIST_NEXT(x, links[index + 1]));
                if (!fn(u, x->object))
                        return;
        }
}

static const struct key_link *next_with(const struct key_link *l, const char *key) {
        while (l && !streq(l->key, key))
                l = LIST_NEXT(l, others);
        return l;
}

void object_cache_each_with(const struct object_cache *c, const char *key, kube_visit_fn *fn, void *u) {
        BUG_ON(!c->o.keys);
        if (!c->by_keys.n || !key)
                return;
        for (const struct key_link *l = next_with(LIST_FIRST(key_slot_of(&c->by_keys, key)), key), *next; l;
             l = next) {
                next = next_with(LIST_NEXT(l, others), key);
                if (!fn(u, l->entry->object))
                        return;
        }
}

const struct kube_object *object_cache_first_at(const struct object_cache *c, unsigned index,
                                                const char *key) {
        struct entry *x = first_at(c, index + 1, key);
        return x ? x->object : NULL;
}

/* ---- the cache ---- */

struct object_cache *object_cache_new(const struct kube_informer_options *o, cache_note_fn *note, void *u) {
        struct object_cache *c = xnew(struct object_cache);
        BUG_ON(o->size < sizeof(struct kube_object));
        c->o = *o;
        c->note = note;
        c->note_u = u;
        while (c->n_indexes < KUBE_MAX_INDEX && o->index[c->n_indexes])
                c->n_indexes++;
        c->n_indexes++;
        TAILQ_INIT(&c->answers);
        return c;
}

void object_cache_free(struct object_cache *c) {
        struct entry *x, *next;
        struct bad *b, *next_bad;

        if (!c)
                return;
        EACH_ENTRY (c, x, next) {
                unlink_entry(c, x);
                kube_object_unref(x->object);
        }
        HASH_ITER (hh, c->bad, b, next_bad)
                free_bad(c, b);
        for (unsigned i = 0; i < c->n_indexes; i++)
                free(c->indexes[i].slots);
        free(c->by_keys.slots);
        free(c);
}
