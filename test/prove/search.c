/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stderr.h"
#include "base/mem.h"

/* ---- the hash ---- */

static uint64_t mix(uint64_t x, uint64_t y) {
        __uint128_t p = (__uint128_t)x * y;
        return (uint64_t)p ^ (uint64_t)(p >> 64);
}

struct search_hash search_hash(const void *p, size_t n) {
        const unsigned char *at = p;
        struct search_hash h = { 0x9e3779b97f4a7c15u ^ n, 0xc2b2ae3d27d4eb4fu + n };
        for (; n; at += 8) {
                uint64_t word = 0;
                size_t part = n < 8 ? n : 8;
                memcpy(&word, at, part);
                n -= part;
                h.a = mix(h.a ^ word, 0xa0761d6478bd642fu) + (h.a << 1 | h.a >> 63);
                h.b = mix(h.b + word, 0xe7037ed1a0b428dbu) ^ (h.b << 3 | h.b >> 61);
        }
        h.a = mix(h.a ^ 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u);
        h.b = mix(h.b ^ 0x1d8e4e27c47d124fu, 0xeb44accab455d165u);
        return h;
}

double search_missed(uint64_t states) {
        double n = (double)states, p = n * (n - 1) / 2;
        for (int i = 0; i < SEARCH_HASH_BITS; i++)
                p /= 2;
        return p;
}

/* ---- records of the states ---- */

/* A growing list, whose size counts towards the memory limit. */
struct list {
        char *p;
        size_t item, n, cap;
};

struct search {
        const struct search_world *w;
        const struct search_limits *l;
        FILE *out;
        struct list hashes, parents; /* an entry for each state */
        struct list n_edges, edges;  /* the continuations without faults of each state, and their number */
        struct list served; /* an entry for each state */
        uint32_t *table;    /* states by their hash; NOBODY: empty */
        size_t table_size;
        struct list frontier, next; /* packed states: of the present depth, and of the one after it */
        size_t bytes;
        bool full;
        char *a, *b, *state; /* unpacked states */
        char *packed;
        struct search_result *ret;
};

enum { FIRST_CAP = 1 << 12, FIRST_TABLE = 1 << 16 };
#define NOBODY UINT32_MAX

static bool reserve(struct search *s, size_t bytes) {
        if (s->full || s->bytes + bytes > s->l->bytes) {
                s->full = true;
                return false;
        }
        s->bytes += bytes;
        return true;
}

static void *push_many(struct search *s, struct list *l, size_t n) {
        if (l->cap - l->n < n) {
                size_t more = n + (l->cap ? l->cap / 2 : FIRST_CAP);
                if (!reserve(s, more * l->item))
                        return NULL;
                l->cap += more;
                l->p = xrealloc(l->p, l->cap * l->item);
        }
        l->n += n;
        return l->p + (l->n - n) * l->item;
}

static void *push(struct search *s, struct list *l) {
        return push_many(s, l, 1);
}

static void *at(const struct list *l, size_t i) {
        return l->p + i * l->item;
}

static uint32_t u32_at(const struct list *l, size_t i) {
        uint32_t x;
        memcpy(&x, at(l, i), sizeof x);
        return x;
}

/* Most bytes of a state are zero. A packed state is a bit for each byte, and the bytes that are not zero. */
static size_t pack(const struct search *s, const char *state) {
        size_t n = (s->w->size + 7) / 8;
        memset(s->packed, 0, n);
        for (size_t i = 0; i < s->w->size; i++)
                if (state[i]) {
                        s->packed[i / 8] = (char)(s->packed[i / 8] | 1 << i % 8);
                        s->packed[n++] = state[i];
                }
        return n;
}

/* Returns its length. */
static size_t unpack(const struct search *s, const char *packed, char *state) {
        size_t n = (s->w->size + 7) / 8;
        for (size_t i = 0; i < s->w->size; i++)
                state[i] = (char)(packed[i / 8] >> i % 8 & 1 ? packed[n++] : 0);
        return n;
}

static uint32_t *slot_of(const struct search *s, const struct search_hash *h) {
        size_t i = h->a & (s->table_size - 1);
        while (s->table[i] != NOBODY && memcmp(at(&s->hashes, s->table[i]), h, sizeof *h) != 0)
                i = (i + 1) & (s->table_size - 1);
        return &s->table[i];
}

static bool make_table(struct search *s, size_t size) {
        if (!reserve(s, size * sizeof *s->table))
                return false;
        s->bytes -= s->table_size * sizeof *s->table;
        free(s->table);
        s->table = xnew_n(uint32_t, size);
        memset(s->table, 0xff, size * sizeof *s->table);
        s->table_size = size;
        for (size_t i = 0; i < s->hashes.n; i++)
                *slot_of(s, at(&s->hashes, i)) = (uint32_t)i;
        return true;
}

/* The number of a state; NOBODY: out of memory. *ret_new: the state is new. */
static uint32_t enter(struct search *s, const void *state, uint32_t parent, bool *ret_new) {
        struct search_hash h = search_hash(state, s->w->size);
        uint32_t *slot;
        *ret_new = false;
        if (s->hashes.n >= s->table_size / 4 * 3 && !make_table(s, 2 * s->table_size))
                return NOBODY;
        slot = slot_of(s, &h);
        if (*slot != NOBODY)
                return *slot;
        uint32_t id = (uint32_t)s->hashes.n;
        void *hash = push(s, &s->hashes), *from = push(s, &s->parents), *served = push(s, &s->served);
        size_t n = pack(s, state);
        void *full = push_many(s, &s->next, n);
        if (!hash || !from || !served || !full || id == NOBODY - 1) {
                s->full = true;
                return NOBODY;
        }
        *slot = id;
        *ret_new = true;
        memcpy(hash, &h, sizeof h);
        memcpy(from, &parent, sizeof parent);
        *(char *)served = s->w->is_served(s->w->u, state);
        memcpy(full, s->packed, n);
        return id;
}

/* ---- the history ---- */

/* The step leads from s->a to the state with this hash (NULL: it breaks a promise). s->b is the new state. */
static bool is_step(struct search *s, unsigned step, const struct search_hash *to) {
        const char *broken = NULL;
        memcpy(s->b, s->a, s->w->size);
        if (!s->w->step(s->w->u, s->b, step, &broken))
                return false;
        if (!to)
                return broken || s->w->check(s->w->u, s->b);
        if (broken)
                return false;
        memcpy(s->state, s->b, s->w->size);
        s->w->rename(s->w->u, s->state);
        struct search_hash h = search_hash(s->state, s->w->size);
        return memcmp(&h, to, sizeof h) == 0;
}

static void print_step(struct search *s, unsigned number, const struct search_hash *to) {
        for (size_t i = 0; i < s->w->n_steps; i++)
                if (is_step(s, s->w->steps[i], to)) {
                        fprintf(s->out, "%4u. ", number);
                        s->w->print(s->w->u, s->a, s->w->steps[i], s->b, s->out);
                        memcpy(s->a, s->b, s->w->size);
                        return;
                }
        BUG_ON(true);
}

/* Prints the steps from the beginning to the state, and the step that breaks a promise, if there is one.
 * Nothing is renamed, so all names stay the same. */
static void print_history(struct search *s, uint32_t id, bool is_broken) {
        size_t n = 0;
        for (uint32_t i = id; i; i = u32_at(&s->parents, i))
                n++;
        uint32_t *ids = xnew_n(uint32_t, n + 1);
        size_t k = n;
        for (uint32_t i = id; i; i = u32_at(&s->parents, i))
                ids[--k] = i;
        s->w->begin(s->w->u, s->a);
        for (k = 0; k < n; k++)
                print_step(s, (unsigned)k + 1, at(&s->hashes, ids[k]));
        if (is_broken)
                print_step(s, (unsigned)n + 1, NULL);
        free(ids);
}

static void fail(struct search *s, const char *broken, uint32_t id) {
        static char text[500];
        snprintf(text, sizeof text, "%s", broken);
        s->ret->end = SEARCH_BROKEN;
        s->ret->broken = text;
        fprintf(s->out, "%s: %s. The shortest history:\n", s->w->name, text);
        print_history(s, id, true);
}

/* ---- the search ---- */

static bool is_over(const struct search *s) {
        return s->full || s->ret->end != SEARCH_HOLDS;
}

static bool try_step(struct search *s, uint32_t id, const void *state, unsigned step, unsigned *n_edges) {
        const char *broken = NULL;
        bool is_new;
        memcpy(s->a, state, s->w->size);
        if (!s->w->step(s->w->u, s->a, step, &broken))
                return true;
        s->ret->transitions++;
        if (!broken)
                broken = s->w->check(s->w->u, s->a);
        if (broken) {
                fail(s, broken, id);
                return false;
        }
        s->w->rename(s->w->u, s->a);
        uint32_t to = enter(s, s->a, id, &is_new);
        if (to == NOBODY)
                return false;
        if (to != id && s->w->is_progress(s->w->u, step)) {
                void *edge = push(s, &s->edges);
                if (!edge)
                        return false;
                memcpy(edge, &to, sizeof to);
                ++*n_edges;
        }
        return true;
}

static void expand(struct search *s, uint32_t id, const void *state) {
        unsigned n_edges = 0;
        for (size_t i = 0; i < s->w->n_steps; i++)
                if (!try_step(s, id, state, s->w->steps[i], &n_edges))
                        return;
        void *n = push(s, &s->n_edges);
        if (n)
                memcpy(n, &(uint16_t){ (uint16_t)n_edges }, sizeof(uint16_t));
}

static double now_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void visit_all(struct search *s) {
        bool is_new;
        uint32_t id = 0;
        s->w->begin(s->w->u, s->a);
        s->w->rename(s->w->u, s->a);
        if (enter(s, s->a, 0, &is_new) == NOBODY)
                return;
        for (;;) {
                struct list t = s->frontier;
                s->frontier = s->next;
                s->next = t;
                s->next.n = 0;
                for (size_t i = 0; i < s->frontier.n && !is_over(s); id++) {
                        i += unpack(s, at(&s->frontier, i), s->state);
                        expand(s, id, s->state);
                }
                if (is_over(s) || !s->next.n)
                        return;
                s->ret->depth++;
                if (!s->l->quiet && s->hashes.n > 1000000)
                        fprintf(stderr, "%s: depth %u, %zu states, %zu MiB\n", s->w->name, s->ret->depth,
                                s->hashes.n, s->bytes >> 20);
        }
}

/* ---- progress ---- */

/* A state is served if one of its continuations is. Most continuations have higher numbers, so few rounds are
 * necessary. */
static size_t spread(struct search *s) {
        size_t edge = s->edges.n, waiting = 0;
        for (size_t i = s->hashes.n; i-- > 0;) {
                uint16_t n;
                char *served = at(&s->served, i);
                memcpy(&n, at(&s->n_edges, i), sizeof n);
                edge -= n;
                for (size_t k = 0; k < n && !*served; k++)
                        *served = *(char *)at(&s->served, u32_at(&s->edges, edge + k));
                waiting += !*served;
        }
        return waiting;
}

static void check_progress(struct search *s) {
        size_t waiting = s->hashes.n, before;
        do {
                before = waiting;
                waiting = spread(s);
        } while (waiting && waiting != before);
        if (!waiting)
                return;
        uint32_t id = 0;
        while (*(char *)at(&s->served, id))
                id++;
        s->ret->end = SEARCH_STUCK;
        fprintf(s->out,
                "%s: after this history a claim waits forever, although nothing fails any more (as after "
                "%zu of %zu states):\n",
                s->w->name, waiting, s->served.n);
        print_history(s, id, false);
}

static void free_all(struct search *s) {
        struct list *lists[] = { &s->hashes, &s->parents,  &s->n_edges, &s->edges,
                                 &s->served, &s->frontier, &s->next };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                free(lists[i]->p);
        free(s->table);
        free(s->a);
        free(s->b);
        free(s->state);
        free(s->packed);
}

void search_run(const struct search_world *w, const struct search_limits *l, FILE *out,
                struct search_result *ret) {
        struct search s = { .w = w,
                            .l = l,
                            .out = out,
                            .ret = ret,
                            .hashes.item = sizeof(struct search_hash),
                            .parents.item = sizeof(uint32_t),
                            .n_edges.item = sizeof(uint16_t),
                            .edges.item = sizeof(uint32_t),
                            .served.item = 1,
                            .frontier.item = 1,
                            .next.item = 1,
                            .a = xcalloc(1, w->size),
                            .b = xcalloc(1, w->size),
                            .state = xcalloc(1, w->size),
                            .packed = xcalloc(2, w->size) };
        double start = now_s();
        *ret = (struct search_result){ .end = SEARCH_HOLDS };
        if (make_table(&s, FIRST_TABLE))
                visit_all(&s);
        if (s.full)
                ret->end = SEARCH_LIMIT;
        else if (ret->end == SEARCH_HOLDS)
                check_progress(&s);
        ret->states = s.hashes.n;
        ret->seconds = now_s() - start;
        free_all(&s);
}
