/* SPDX-License-Identifier: Apache-2.0 */
#include "apply.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Keys of labels contain slashes, so the names in a path begin with characters that no key contains. */
#define MEMBER "\1"
#define ELEMENT "\2"

/* An entry is "<manager> <path>"; the manager of other writers is "". They are sorted. */
struct owners {
        unsigned refs;
        char **v;
        size_t n, cap;
};

struct owners *owners_ref(struct owners *o) {
        o->refs++;
        return o;
}

void owners_unref(struct owners *o) {
        if (!o || --o->refs)
                return;
        for (size_t i = 0; i < o->n; i++)
                free(o->v[i]);
        free(o->v);
        free(o);
}

bool owners_equal(const struct owners *a, const struct owners *b) {
        size_t i = 0;
        while (a && b && a->n == b->n && i < a->n && streq(a->v[i], b->v[i]))
                i++;
        return a && b && i == a->n && i == b->n;
}

static struct owners *owners_new(void) {
        struct owners *o = xnew(struct owners);
        o->refs = 1;
        return o;
}

static size_t place(const struct owners *o, const char *entry, bool *ret_there) {
        size_t low = 0, high = o->n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(o->v[middle], entry) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_there = low < o->n && streq(o->v[low], entry);
        return low;
}

static void put(struct owners *o, const char *manager, const char *path) {
        _cleanup_(freep) char *entry = xasprintf("%s %s", manager, path);
        bool there;
        size_t i = place(o, entry, &there);
        if (there)
                return;
        GROW(o->v, o->n, o->cap);
        memmove(o->v + i + 1, o->v + i, (o->n++ - i) * sizeof *o->v);
        o->v[i] = TAKE(entry);
}

static bool has(const struct owners *o, const char *manager, const char *path) {
        _cleanup_(freep) char *entry = xasprintf("%s %s", manager, path);
        bool there = false;
        if (o)
                place(o, entry, &there);
        return there;
}

static const char *path_of(const char *entry) {
        return strchr(entry, ' ') + 1;
}

static bool is_of(const char *entry, const char *manager) {
        size_t n = strlen(manager);
        return strncmp(entry, manager, n) == 0 && entry[n] == ' ';
}

/* Another manager owns the path, or something below it. */
static bool is_others(const struct owners *o, const char *manager, const char *path) {
        size_t n = strlen(path);
        for (size_t i = 0; i < o->n; i++) {
                const char *p = path_of(o->v[i]);
                if (!is_of(o->v[i], manager) && strncmp(p, path, n) == 0 &&
                    (!p[n] || p[n] == *MEMBER || p[n] == *ELEMENT))
                        return true;
        }
        return false;
}

/* ---- lists that are merged, and objects that are not ---- */

/* The field's name is enough for the kinds that are applied. */
static const char *list_key(const char *field) {
        static const struct {
                const char *field, *key;
        } keys[] = { { "containers", "name" },
                     { "initContainers", "name" },
                     { "env", "name" },
                     { "volumes", "name" },
                     { "volumeMounts", "mountPath" },
                     { "imagePullSecrets", "name" },
                     { "resourceClaims", "name" },
                     { "claims", "name" },
                     { "ownerReferences", "uid" },
                     { "finalizers", "" } /* a set */ };
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                if (streq(keys[i].field, field))
                        return keys[i].key;
        return NULL;
}

static bool is_whole(const char *field) {
        static const char *const whole[] = { "selector", "nodeSelector", "fieldRef" };
        for (size_t i = 0; i < ARRAY_LEN(whole); i++)
                if (streq(whole[i], field))
                        return true;
        return false;
}

static const char *element_name(yyjson_val *element, const char *key) {
        return str_or(yyjson_get_str(*key ? yyjson_obj_get(element, key) : element), "");
}

static char *below_member(const char *path, const char *key) {
        return xasprintf("%s" MEMBER "%s", path, key);
}

static char *below_element(const char *path, yyjson_val *element, const char *key) {
        return xasprintf("%s" ELEMENT "%s", path, element_name(element, key));
}

/* Visits each field of a value once, and also each element of a merged list. An empty map is a field; an
 * empty merged list is none. */
typedef void(field_fn)(void *u, const char *path, yyjson_val *v);

static void each_field(yyjson_val *v, const char *field, const char *path, field_fn *fn, void *u) {
        const char *key = list_key(field);
        yyjson_val *name, *x;
        size_t i, max;
        if (yyjson_is_obj(v) && yyjson_obj_size(v) && !is_whole(field)) {
                yyjson_obj_foreach (v, i, max, name, x) {
                        _cleanup_(freep) char *below = below_member(path, unsafe_yyjson_get_str(name));
                        each_field(x, yyjson_get_str(name), below, fn, u);
                }
        } else if (yyjson_is_arr(v) && key) {
                yyjson_arr_foreach (v, i, max, x) {
                        _cleanup_(freep) char *below = below_element(path, x, key);
                        fn(u, below, x);
                        if (*key)
                                each_field(x, "", below, fn, u);
                }
        } else {
                fn(u, path, v);
        }
}

/* Fields that only the server writes, or that name the object, have no owner. */
static bool is_owned(const char *path) {
        static const char *const not [] = {
                "name",         "namespace",         "uid",
                "generation",   "resourceVersion",   "creationTimestamp",
                "generateName", "deletionTimestamp", "deletionGracePeriodSeconds"
        };
        static const char meta[] = MEMBER "metadata" MEMBER;
        if (streq(path, MEMBER "apiVersion") || streq(path, MEMBER "kind"))
                return false;
        for (size_t i = 0; str_starts(path, meta) && i < ARRAY_LEN(not ); i++)
                if (streq(path + sizeof meta - 1, not [i]))
                        return false;
        return true;
}

static yyjson_val *find_element(yyjson_val *list, const char *key, const char *name) {
        yyjson_val *x;
        size_t i, max;
        yyjson_arr_foreach (list, i, max, x)
                if (streq(element_name(x, key), name))
                        return x;
        return NULL;
}

/* The value at a path of each_field(); NULL: there is none. */
static yyjson_val *value_at(yyjson_val *root, const char *path) {
        _cleanup_(freep) char *field = xstrdup("");
        yyjson_val *v = root;
        while (*path && v) {
                size_t n = strcspn(path + 1, MEMBER ELEMENT);
                char *name = xstrndup(path + 1, n);
                const char *key = list_key(field);
                if (*path == *MEMBER)
                        v = yyjson_obj_get(v, name);
                else
                        v = key ? find_element(v, key, name) : NULL;
                free(field);
                field = name;
                path += 1 + n;
        }
        return v;
}

/* ---- updates ---- */

struct updated {
        struct owners *to;
        yyjson_val *was;
        const char *manager;
};

/* Only the existence of an element counts; its fields are visited separately. */
static bool is_same(yyjson_val *a, yyjson_val *b, const char *path) {
        const char *member = strrchr(path, *MEMBER), *element = strrchr(path, *ELEMENT);
        return a && b && ((element && element > member) || yyjson_equals(a, b));
}

/* A manager that has applied a merged map keeps it while its members change. */
static bool stays_owned(yyjson_val *was, yyjson_val *now, const char *path) {
        const char *field = strrchr(path, *MEMBER);
        if (yyjson_is_obj(was) && yyjson_is_obj(now) && field && !is_whole(field + 1))
                return true;
        return (!was && !now) || is_same(was, now, path);
}

static void note_changed(void *u, const char *path, yyjson_val *v) {
        struct updated *x = u;
        if (is_owned(path) && !is_same(value_at(x->was, path), v, path))
                put(x->to, x->manager, path);
}

static void note_all(void *u, const char *path, yyjson_val *v) {
        struct updated *x = u;
        if (is_owned(path))
                put(x->to, x->manager, path);
}

struct owners *owners_updated(const struct owners *o, yyjson_val *was, yyjson_val *now) {
        struct owners *to = owners_new();
        each_field(now, "", "", note_changed, &(struct updated){ to, was, "" });
        for (size_t i = 0; o && i < o->n; i++) {
                const char *path = path_of(o->v[i]);
                yyjson_val *before = value_at(was, path), *after = value_at(now, path);
                if (is_of(o->v[i], "") ? after != NULL : stays_owned(before, after, path)) {
                        _cleanup_(freep) char *manager = xstrndup(o->v[i], (size_t)(path - 1 - o->v[i]));
                        put(to, manager, path);
                }
        }
        return to;
}

/* ---- apply ---- */

struct merge {
        yyjson_mut_doc *d;
        const struct owners *before,
                *after; /* of all managers; in `before`, the manager's own are those of its last apply */
        const char *manager;
};

/* The manager had applied the field, and now omits it. */
static bool is_dropped(const struct merge *m, const char *path) {
        return has(m->before, m->manager, path) && !has(m->after, m->manager, path) &&
               !is_others(m->after, m->manager, path);
}

static yyjson_mut_val *merged(const struct merge *m, yyjson_val *live, yyjson_val *config, const char *field,
                              const char *path);

static yyjson_mut_val *merged_object(const struct merge *m, yyjson_val *live, yyjson_val *config,
                                     const char *path) {
        yyjson_mut_val *to = yyjson_mut_obj(m->d);
        yyjson_val *name, *x;
        size_t i, max;
        yyjson_obj_foreach (live, i, max, name, x) {
                const char *key = unsafe_yyjson_get_str(name);
                _cleanup_(freep) char *below = below_member(path, key);
                yyjson_val *said = yyjson_obj_get(config, key);
                if (said || !is_dropped(m, below)) {
                        yyjson_mut_val *v = merged(m, x, said, key, below);
                        if (v)
                                yyjson_mut_obj_add(to, yyjson_mut_strcpy(m->d, key), v);
                }
        }
        yyjson_obj_foreach (config, i, max, name, x)
                if (!yyjson_obj_get(live, yyjson_get_str(name)))
                        yyjson_mut_obj_add(to, yyjson_mut_strcpy(m->d, yyjson_get_str(name)),
                                           yyjson_val_mut_copy(m->d, x));
        /* A map or list that has become empty is removed, too. */
        if (!config && yyjson_obj_size(live) && !yyjson_mut_obj_size(to))
                return NULL;
        return to;
}

static void add_element(const struct merge *m, yyjson_mut_val *to, yyjson_val *live, yyjson_val *said,
                        const char *key, const char *path) {
        _cleanup_(freep) char *below = below_element(path, live ? live : said, key);
        if (said || !is_dropped(m, below)) {
                yyjson_mut_val *v = live ? merged(m, live, said, "", below) : yyjson_val_mut_copy(m->d, said);
                if (v)
                        yyjson_mut_arr_append(to, v);
        }
}

/* In the order of the configuration. Elements that only the object has keep their neighbours. */
static yyjson_mut_val *merged_list(const struct merge *m, yyjson_val *live, yyjson_val *config,
                                   const char *key, const char *path) {
        yyjson_mut_val *to = yyjson_mut_arr(m->d);
        size_t l = 0, c = 0, n_live = yyjson_arr_size(live), n_config = yyjson_arr_size(config);
        while (l < n_live || c < n_config) {
                yyjson_val *x = yyjson_arr_get(live, l), *y = yyjson_arr_get(config, c);
                if (x && y && streq(element_name(x, key), element_name(y, key))) {
                        add_element(m, to, x, y, key, path);
                        l++;
                        c++;
                } else if (x && !find_element(config, key, element_name(x, key))) {
                        add_element(m, to, x, NULL, key, path);
                        l++;
                } else if (y) {
                        add_element(m, to, find_element(live, key, element_name(y, key)), y, key, path);
                        c++;
                } else {
                        l++; /* the configuration has it, so it has its place already */
                }
        }
        return yyjson_mut_arr_size(to) || config ? to : NULL;
}

/* NULL: nothing is left. */
static yyjson_mut_val *merged(const struct merge *m, yyjson_val *live, yyjson_val *config, const char *field,
                              const char *path) {
        const char *key = list_key(field);
        if (yyjson_is_obj(live) && (!config || yyjson_is_obj(config)) && !is_whole(field))
                return merged_object(m, live, config, path);
        if (yyjson_is_arr(live) && (!config || yyjson_is_arr(config)) && key)
                return merged_list(m, live, config, key, path);
        return yyjson_val_mut_copy(m->d, config ? config : live);
}

/* Another manager that owns a field loses it if the value changes. */
yyjson_mut_val *apply_merged(yyjson_mut_doc *d, yyjson_val *live, yyjson_val *config, const struct owners *o,
                             const char *manager, struct owners **ret_owners) {
        struct owners *after = owners_new();
        each_field(config, "", "", note_all, &(struct updated){ after, NULL, manager });
        for (size_t i = 0; o && i < o->n; i++) {
                const char *path = path_of(o->v[i]);
                yyjson_val *said = value_at(config, path);
                if (!is_of(o->v[i], manager) && (!said || is_same(value_at(live, path), said, path))) {
                        _cleanup_(freep) char *other = xstrndup(o->v[i], (size_t)(path - 1 - o->v[i]));
                        put(after, other, path);
                }
        }
        *ret_owners = after;
        if (!live)
                return yyjson_val_mut_copy(d, config);
        return merged(&(struct merge){ d, o, after, manager }, live, config, "", "");
}
