/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/gone.h"

#include <string.h>
#include <uthash.h>

#include "base/mem.h"

/* Nobody asks for so long after one that is still missing; it begins anew if somebody does. */
enum { FORGET_S = 3600 };

struct missing {
        UT_hash_handle hh;
        int64_t since;
        char name[];
};

struct gone {
        struct missing *list; /* the oldest first */
};

struct gone *gone_new(void) {
        return xnew(struct gone);
}

static void drop(struct gone *g, struct missing *m) {
        HASH_DEL(g->list, m);
        free(m);
}

void gone_free(struct gone *g) {
        while (g && g->list)
                drop(g, g->list);
        free(g);
}

int64_t gone_since(struct gone *g, const char *name, int64_t now) {
        struct missing *m;
        size_t n = strlen(name) + 1;
        HASH_FIND_STR(g->list, name, m);
        if (m)
                return m->since;
        while (g->list && g->list->since + FORGET_S < now)
                drop(g, g->list);
        m = xcalloc(1, sizeof *m + n);
        memcpy(m->name, name, n);
        m->since = now;
        HASH_ADD_STR(g->list, name, m);
        return now;
}

bool gone_for(struct gone *g, const char *name, int64_t seconds, int64_t now, int64_t *recheck_s) {
        int64_t left = gone_since(g, name, now) + seconds - now;
        if (left > 0 && (!*recheck_s || left < *recheck_s))
                *recheck_s = left;
        return left <= 0;
}

int64_t gone_left(const struct gone *g, int64_t from, int64_t seconds, int64_t now) {
        int64_t most = 0;
        for (const struct missing *m = g->list; m; m = m->hh.next)
                if (m->since >= from && m->since + seconds - now > most)
                        most = m->since + seconds - now;
        return most;
}

void gone_is_back(struct gone *g, const char *name) {
        struct missing *m;
        HASH_FIND_STR(g->list, name, m);
        if (m)
                drop(g, m);
}
