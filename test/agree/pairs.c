/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- texts ---- */

struct text {
        UT_hash_handle hh;
        char *real;
        char sim[];
};
static struct text *uids, *uids_back, *tokens;

static void note(struct text **in, const char *sim, const char *real) {
        size_t n = strlen(sim);
        struct text *t;
        HASH_FIND_STR(*in, sim, t);
        if (!t) {
                t = xcalloc(1, sizeof *t + n + 1);
                memcpy(t->sim, sim, n + 1);
                HASH_ADD_STR(*in, sim, t);
        }
        free(t->real);
        t->real = xstrdup(real);
}

static const char *find(struct text *in, const char *sim) {
        struct text *t;
        HASH_FIND_STR(in, sim, t);
        return t ? t->real : NULL;
}

static void forget(struct text **in) {
        struct text *t, *next;
        HASH_ITER (hh, *in, t, next) {
                HASH_DEL(*in, t);
                free(t->real);
                free(t);
        }
}

const char *pairs_real_uid(const char *sim) {
        return find(uids, sim);
}

bool pairs_know_uid(const char *sim, const char *real) {
        return find(uids, sim) || find(uids_back, real);
}

bool pairs_match_uid(const char *sim, const char *real) {
        if (pairs_know_uid(sim, real))
                return streq(find(uids, sim), real);
        note(&uids, sim, real);
        note(&uids_back, real, sim);
        return true;
}

void pairs_note_token(const char *sim, const char *real) {
        note(&tokens, sim, real);
}

const char *pairs_real_token(const char *sim) {
        return find(tokens, sim);
}

/* ---- versions ---- */

/* Sorted, in both servers' order. `writes` are exact; a mark is between a version and the next. */
struct pair {
        int64_t sim, real;
};
struct pairs {
        struct pair *v;
        size_t n, cap;
};
static struct pairs writes, marks;

/* The first pair that is not before `sim`. */
static size_t place(const struct pairs *p, int64_t sim) {
        size_t low = 0, high = p->n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (p->v[middle].sim < sim)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void insert(struct pairs *p, size_t i, int64_t sim, int64_t real) {
        GROW(p->v, p->n, p->cap);
        memmove(p->v + i + 1, p->v + i, (p->n++ - i) * sizeof *p->v);
        p->v[i] = (struct pair){ sim, real };
}

static bool is_at(const struct pairs *p, size_t i, int64_t sim) {
        return i < p->n && p->v[i].sim == sim;
}

bool pairs_know_version(int64_t sim) {
        return is_at(&writes, place(&writes, sim), sim) || is_at(&marks, place(&marks, sim), sim);
}

bool pairs_match_version(int64_t sim, int64_t real) {
        size_t i = place(&writes, sim), m = place(&marks, sim);
        if (is_at(&writes, i, sim))
                return writes.v[i].real == real;
        if ((i && writes.v[i - 1].real >= real) || (i < writes.n && writes.v[i].real <= real) ||
            (m && marks.v[m - 1].real >= real) || (m < marks.n && marks.v[m].real < real))
                return false;
        insert(&writes, i, sim, real);
        return true;
}

bool pairs_match_list(int64_t sim, int64_t real) {
        size_t i = place(&writes, sim + 1), m = place(&marks, sim);
        if ((i && writes.v[i - 1].real > real) || (i < writes.n && writes.v[i].real <= real))
                return false;
        if (!is_at(&marks, m, sim))
                insert(&marks, m, sim, real);
        else if (marks.v[m].real < real)
                marks.v[m].real = real;
        return true;
}

int64_t pairs_real_version(int64_t sim) {
        size_t i = place(&writes, sim + 1), m = place(&marks, sim + 1);
        int64_t a = i ? writes.v[i - 1].real : 1, b = m ? marks.v[m - 1].real : 1;
        return a > b ? a : b;
}

int64_t pairs_real_write(int64_t sim) {
        size_t i = place(&writes, sim);
        return is_at(&writes, i, sim) ? writes.v[i].real : pairs_real_version(sim);
}

int64_t pairs_some_version(uint64_t draw) {
        return writes.n ? writes.v[draw % writes.n].sim : 0;
}

void pairs_restore(int64_t sim) {
        writes.n = place(&writes, sim + 1);
        marks.n = place(&marks, sim + 1);
}

void pairs_done(void) {
        forget(&uids);
        forget(&uids_back);
        forget(&tokens);
        free(writes.v);
        free(marks.v);
}
