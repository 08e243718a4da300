/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/lost.h"

#include <sys/queue.h>

struct item {
        LIST_ENTRY(item) entry;
        const struct clique *clique;
};

struct lost {
        LIST_HEAD(, item) items; /* few, and mostly none */
};

struct lost *lost_new(void) {
        return xnew(struct lost);
}

static void drop(struct item *i) {
        LIST_REMOVE(i, entry);
        kube_object_unref(&i->clique->o);
        free(i);
}

void lost_free(struct lost *l) {
        struct item *i;
        while (l && (i = LIST_FIRST(&l->items)))
                drop(i);
        free(l);
}

void lost_add(struct lost *l, const struct clique *q) {
        struct item *i = xnew(struct item);
        i->clique = (const struct clique *)kube_object_ref(&q->o);
        LIST_INSERT_HEAD(&l->items, i, entry);
}

void lost_each(const struct lost *l, const char *domain_uid, kube_visit_fn *fn, void *u) {
        struct item *i;
        LIST_FOREACH (i, &l->items, entry)
                if (streq(i->clique->domain_uid, domain_uid) && !fn(u, &i->clique->o))
                        return;
}

void lost_forget(struct lost *l, const char *domain_uid) {
        for (struct item *i = LIST_FIRST(&l->items), *next; i; i = next) {
                next = LIST_NEXT(i, entry);
                if (streq(i->clique->domain_uid, domain_uid))
                        drop(i);
        }
}
