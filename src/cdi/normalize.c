/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "cdi/cdi.h"

/* ---- equality ---- */

static bool same_strings(const char *const *a, const char *const *b) {
        while (a && b && *a && *b && streq(*a, *b)) {
                a++;
                b++;
        }
        return !(a && *a) && !(b && *b);
}

static bool same_node(const void *x, const void *y) {
        const struct cdi_node *a = x, *b = y;
        return streq(a->path, b->path) &&
               streq(a->host_path ? a->host_path : a->path, b->host_path ? b->host_path : b->path) &&
               a->major == b->major && a->minor == b->minor && a->mode == b->mode && a->gid == b->gid &&
               streq(a->permissions, b->permissions);
}

static bool same_mount(const void *x, const void *y) {
        const struct cdi_mount *a = x, *b = y;
        return streq(a->host_path, b->host_path) && streq(a->container_path, b->container_path) &&
               same_strings(a->options, b->options);
}

static bool same_hook(const void *x, const void *y) {
        const struct cdi_hook *a = x, *b = y;
        return streq(a->name, b->name) && streq(a->path, b->path) && same_strings(a->args, b->args) &&
               same_strings(a->env, b->env);
}

static bool same_gid(const void *x, const void *y) {
        return *(const unsigned *)x == *(const unsigned *)y;
}

static bool same_string(const void *x, const void *y) {
        return streq(*(const char *const *)x, *(const char *const *)y);
}

/* ---- lists ---- */

typedef bool(same_fn)(const void *x, const void *y);
typedef int(order_fn)(const void *x, const void *y);

struct list {
        const void *items;
        size_t n;
};

static bool normalize_has(struct list l, const void *item, size_t size, same_fn *same) {
        for (size_t i = 0; i < l.n; i++) {
                if (same((const char *)l.items + i * size, item))
                        return true;
        }
        return false;
}

/* A new list of the elements of `from` that are not in `common`, without duplicates, and with room for one
 * more, which is zero. */
static struct list select_from(struct list from, struct list common, size_t size, same_fn *same,
                               order_fn *order, struct arena *a) {
        char *items = arena_alloc(a, (from.n + 1) * size);
        struct list kept = { items, 0 };
        for (size_t i = 0; i < from.n; i++) {
                const char *item = (const char *)from.items + i * size;
                if (!normalize_has(kept, item, size, same) && !normalize_has(common, item, size, same))
                        memcpy(items + kept.n++ * size, item, size);
        }
        if (order && kept.n)
                qsort(items, kept.n, size, order);
        return kept;
}

/* ---- order ---- */

/* Counts the slashes of the path. Several in a row, and one at the end, count as in its clean form. */
static size_t depth(const char *path) {
        size_t n = 0;
        for (const char *p = path; *p; p++)
                n += *p == '/' && p[1] && p[1] != '/';
        return n;
}

static int by_depth(const char *a, const char *b) {
        size_t m = depth(a), n = depth(b);
        return m != n ? (m < n ? -1 : 1) : strcmp(a, b);
}

static int normalize_by_node(const void *x, const void *y) {
        return by_depth(((const struct cdi_node *)x)->path, ((const struct cdi_node *)y)->path);
}

static int by_mount(const void *x, const void *y) {
        return by_depth(((const struct cdi_mount *)x)->container_path,
                        ((const struct cdi_mount *)y)->container_path);
}

static struct list strings(const char *const *s) {
        struct list l = { s, 0 };
        while (s && s[l.n])
                l.n++;
        return l;
}

static struct cdi_edits select_edits(const struct cdi_edits *ed, const struct cdi_edits *common,
                                     struct arena *a) {
        struct list env =
                select_from(strings(ed->env), strings(common->env), sizeof *ed->env, same_string, NULL, a);
        struct list nodes = select_from((struct list){ ed->nodes, ed->n_nodes },
                                        (struct list){ common->nodes, common->n_nodes }, sizeof *ed->nodes,
                                        same_node, normalize_by_node, a);
        struct list mounts = select_from((struct list){ ed->mounts, ed->n_mounts },
                                         (struct list){ common->mounts, common->n_mounts },
                                         sizeof *ed->mounts, same_mount, by_mount, a);
        struct list hooks = select_from((struct list){ ed->hooks, ed->n_hooks },
                                        (struct list){ common->hooks, common->n_hooks }, sizeof *ed->hooks,
                                        same_hook, NULL, a);
        struct list gids = select_from((struct list){ ed->gids, ed->n_gids },
                                       (struct list){ common->gids, common->n_gids }, sizeof *ed->gids,
                                       same_gid, NULL, a);
        return (struct cdi_edits){ .env = env.items,
                                   .nodes = nodes.items,
                                   .n_nodes = nodes.n,
                                   .mounts = mounts.items,
                                   .n_mounts = mounts.n,
                                   .hooks = hooks.items,
                                   .n_hooks = hooks.n,
                                   .gids = gids.items,
                                   .n_gids = gids.n };
}

struct cdi_edits cdi_normalize(const struct cdi_edits *ed, const struct cdi_edits *common, struct arena *a) {
        static const struct cdi_edits none;
        struct cdi_edits rest = select_edits(ed, common ? common : &none, a);
        return common && cdi_edits_empty(&rest) ? select_edits(ed, &none, a) : rest;
}
