/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/first_seen.h"

#include <uthash.h>

#include "base/mem.h"
#include "base/stderr.h"
#include "base/str.h"

struct seen {
        UT_hash_handle hh;
        int64_t since, asked;
        char what[];
};

struct first_seen {
        struct seen *list; /* in the order of `asked` */
        int64_t forget_s;
};

struct first_seen *first_seen_new(int64_t forget_s) {
        struct first_seen *s = xnew(struct first_seen);
        BUG_ON(forget_s < 0);
        s->forget_s = forget_s;
        return s;
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

static bool first_seen_is_old(const struct first_seen *s, const struct seen *m, int64_t now) {
        return s->forget_s && m->asked + s->forget_s < now;
}

int64_t first_seen_at(struct first_seen *s, const char *what, int64_t now) {
        BUG_ON(!what || now <= 0);
        struct seen *m;
        HASH_FIND_STR(s->list, what, m);
        if (m) {
                HASH_DEL(s->list, m);
        } else {
                m = xnew_keyed(struct seen, what, what);
                m->since = now;
        }
        m->asked = now;
        HASH_ADD_STR(s->list, what, m);
        while (first_seen_is_old(s, s->list, now))
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

int64_t first_seen_left(const struct first_seen *s, const char *prefix, int64_t seconds, int64_t now) {
        int64_t most = 0;
        const struct seen *m = s->list ? ELMT_FROM_HH(s->list->hh.tbl, s->list->hh.tbl->tail) : NULL;
        for (; m && m->asked + seconds > now; m = m->hh.prev)
                if (str_starts(m->what, prefix) && m->since + seconds - now > most)
                        most = m->since + seconds - now;
        return most;
}

int64_t first_seen_get(const struct first_seen *s, const char *what) {
        struct seen *m;
        HASH_FIND_STR(s->list, what, m);
        return m ? m->since : 0;
}

size_t first_seen_count(const struct first_seen *s, const char *prefix, int64_t now) {
        size_t n = 0;
        for (const struct seen *m = s->list; m; m = m->hh.next)
                n += !first_seen_is_old(s, m, now) && str_starts(m->what, prefix);
        return n;
}

void first_seen_forget(struct first_seen *s, const char *what) {
        struct seen *m;
        HASH_FIND_STR(s->list, what, m);
        if (m)
                first_seen_drop(s, m);
}
