/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/first_seen.h"

#include <string.h>
#include <uthash.h>

#include "base/mem.h"
#include "base/stderr.h"

/* A fact that no caller has recorded for this time is forgotten. */
enum { FORGET_S = 3600 };

struct seen {
        UT_hash_handle hh;
        int64_t since, asked;
        char what[];
};

struct first_seen {
        struct seen *list; /* in the order of `asked` */
};

struct first_seen *first_seen_new(void) {
        return xnew(struct first_seen);
}

static void first_seen_drop(struct first_seen *s, struct seen *m) {
        HASH_DEL(s->list, m);
        free(m);
}

void first_seen_free(struct first_seen *s) {
        while (s && s->list)
                first_seen_drop(s, s->list);
        free(s);
}

int64_t first_seen_at(struct first_seen *s, const char *what, int64_t now) {
        BUG_ON(!what || now <= 0);
        struct seen *m;
        size_t n = strlen(what) + 1;
        HASH_FIND_STR(s->list, what, m);
        if (m) {
                HASH_DEL(s->list, m);
        } else {
                m = xcalloc(1, sizeof *m + n);
                memcpy(m->what, what, n);
                m->since = now;
        }
        m->asked = now;
        HASH_ADD_STR(s->list, what, m);
        while (s->list->asked + FORGET_S < now)
                first_seen_drop(s, s->list);
        return m->since;
}

bool first_seen_for(struct first_seen *s, const char *what, int64_t seconds, int64_t now,
                    int64_t *recheck_s) {
        int64_t left = first_seen_at(s, what, now) + seconds - now;
        if (left > 0 && (!*recheck_s || left < *recheck_s))
                *recheck_s = left;
        return left <= 0;
}

int64_t first_seen_left(const struct first_seen *s, int64_t seconds, int64_t now) {
        int64_t most = 0;
        for (const struct seen *m = s->list; m; m = m->hh.next)
                if (m->since + seconds - now > most)
                        most = m->since + seconds - now;
        return most;
}

void first_seen_forget(struct first_seen *s, const char *what) {
        struct seen *m;
        HASH_FIND_STR(s->list, what, m);
        if (m)
                first_seen_drop(s, m);
}
