/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/seats.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/str.h"

/* A node, and the domains in which it has a place or is touched. Seats borrow its name. */
struct place {
        UT_hash_handle hh;
        struct domain **domains;
        size_t n;
        char name[];
};

struct domain {
        UT_hash_handle hh;
        struct seat_facts *nodes; /* sorted by name */
        size_t n, cap;
        struct place **touched;
        size_t n_touched, cap_touched;
        bool all;
        struct formation_memory *memory;
        char uid[];
};

struct seats {
        struct seats_source source;
        struct domain *domains;
        struct place *places;
        uint64_t version;
};

struct seats *seats_new(const struct seats_source *source) {
        struct seats *s = xnew(struct seats);
        s->source = *source;
        return s;
}

/* ---- places ---- */

static bool is_in(const struct place *p, const struct domain *d) {
        for (size_t i = 0; i < p->n; i++)
                if (p->domains[i] == d)
                        return true;
        return false;
}

static struct place *enter(struct seats *s, struct domain *d, const char *name) {
        struct place *p;
        HASH_FIND_STR(s->places, name, p);
        if (!p) {
                size_t n = strlen(name) + 1;
                p = xcalloc(1, sizeof *p + n);
                memcpy(p->name, name, n);
                HASH_ADD_STR(s->places, name, p);
        }
        if (!is_in(p, d)) {
                p->domains = xrealloc(p->domains, (p->n + 1) * sizeof(struct domain *));
                p->domains[p->n++] = d;
        }
        return p;
}

static void leave(struct seats *s, struct domain *d, struct place *p) {
        for (size_t i = 0; i < p->n; i++)
                if (p->domains[i] == d)
                        p->domains[i--] = p->domains[--p->n];
        if (p->n)
                return;
        HASH_DEL(s->places, p);
        free(p->domains);
        free(p);
}

static struct place *place_at(const struct seats *s, const char *name) {
        struct place *p;
        HASH_FIND_STR(s->places, name, p);
        return p;
}

/* ---- one domain ---- */

static struct domain *find(const struct seats *s, const char *uid) {
        struct domain *d = NULL;
        if (uid)
                HASH_FIND_STR(s->domains, uid, d);
        return d;
}

static size_t position(const struct domain *d, const char *name) {
        size_t low = 0, high = d->n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(d->nodes[middle].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool has(const struct domain *d, size_t at, const char *name) {
        return at < d->n && streq(d->nodes[at].name, name);
}

static void let_go(struct seat_facts *seat) {
        free((void *)(uintptr_t)seat->held_by);
}

static void make_room(struct domain *d) {
        if (d->n < d->cap)
                return;
        d->cap = d->cap ? d->cap + d->cap / 4 + 1 : 4;
        d->nodes = xrealloc(d->nodes, d->cap * sizeof *d->nodes);
}

/* Nothing is remembered of a seat whose objects may be gone: touched means changed. */
static void look(struct seats *s, struct domain *d, struct place *p, struct arena *a) {
        struct seat_facts seat = { .name = p->name };
        size_t at = position(d, p->name);
        bool is = s->source.look(s->source.u, d->uid, &seat, a);
        bool was = has(d, at, p->name);
        if (was)
                let_go(&d->nodes[at]);
        if (was && !is) {
                memmove(&d->nodes[at], &d->nodes[at + 1], (d->n - at - 1) * sizeof *d->nodes);
                d->n--;
        }
        if (!is) {
                leave(s, d, p);
                return;
        }
        if (!was) {
                make_room(d);
                memmove(&d->nodes[at + 1], &d->nodes[at], (d->n - at) * sizeof *d->nodes);
                d->n++;
        }
        seat.held_by = xstrdup_or_null(seat.held_by);
        seat.version = ++s->version;
        d->nodes[at] = seat;
}

static bool is_settled(const struct seat_facts *seat) {
        return seat->node && !seat->held_by && seat->wanted;
}

/* Nobody says when these change. */
static void look_at_unsettled(struct seats *s, struct domain *d, struct arena *a) {
        for (size_t i = 0; i < d->n; i++) {
                struct seat_facts *was = &d->nodes[i], seat = { .name = was->name };
                if (is_settled(was) || !s->source.look(s->source.u, d->uid, &seat, a))
                        continue;
                if (seat.node == was->node && seat.gone_since == was->gone_since &&
                    seat.wanted == was->wanted && seat.released == was->released && seat.pod == was->pod &&
                    streq(seat.clique, was->clique) && streq(seat.held_by, was->held_by))
                        continue;
                let_go(was);
                seat.held_by = xstrdup_or_null(seat.held_by);
                seat.version = ++s->version;
                *was = seat;
        }
}

static int by_name(const void *x, const void *y) {
        return strcmp((*(struct place *const *)x)->name, (*(struct place *const *)y)->name);
}

/* Each once, in the order of names. */
static void sort_touched(struct domain *d) {
        size_t n = 0;
        if (d->n_touched)
                qsort(d->touched, d->n_touched, sizeof(struct place *), by_name);
        for (size_t i = 0; i < d->n_touched; i++)
                if (!n || d->touched[n - 1] != d->touched[i])
                        d->touched[n++] = d->touched[i];
        d->n_touched = n;
}

/* A domain that nobody looks at may be touched for ever, by nodes that say that they live. */
static void add_touched(struct domain *d, struct place *p) {
        if (d->n_touched == d->cap_touched) {
                sort_touched(d);
                if (2 * d->n_touched >= d->cap_touched)
                        GROW(d->touched, d->cap_touched, d->cap_touched);
        }
        d->touched[d->n_touched++] = p;
}

struct gathering {
        struct seats *s;
        struct domain *d;
};

static void add_name(void *u, const char *name) {
        struct gathering *g = u;
        add_touched(g->d, enter(g->s, g->d, name));
}

static void look_at_touched(struct seats *s, struct domain *d, struct arena *a) {
        sort_touched(d); /* where all are new, each is put behind the others */
        for (size_t i = 0; i < d->n_touched; i++)
                look(s, d, d->touched[i], a);
        free(TAKE(d->touched));
        d->n_touched = d->cap_touched = 0;
}

static struct domain *make(struct seats *s, const char *uid) {
        struct domain *d = find(s, uid);
        size_t n = strlen(uid) + 1;
        if (d)
                return d;
        d = xcalloc(1, sizeof *d + n);
        memcpy(d->uid, uid, n);
        d->all = true;
        HASH_ADD_STR(s->domains, uid, d);
        return d;
}

size_t seats_of(struct seats *s, const char *uid, const struct seat_facts **ret) {
        struct domain *d = make(s, uid);
        struct arena *a = arena_new(512);
        if (d->all) {
                for (size_t i = 0; i < d->n; i++) /* what has no place any more goes too */
                        add_name(&(struct gathering){ s, d }, d->nodes[i].name);
                s->source.names(s->source.u, uid, add_name, &(struct gathering){ s, d });
        }
        d->all = false;
        look_at_touched(s, d, a);
        look_at_unsettled(s, d, a); /* behind the others: what a touched seat points to may be gone */
        arena_free(a);
        *ret = d->nodes;
        return d->n;
}

struct formation_memory *seats_memory(struct seats *s, const char *uid) {
        struct domain *d = make(s, uid);
        if (!d->memory)
                d->memory = formation_memory_new();
        return d->memory;
}

/* ---- changes ---- */

void seats_touch(struct seats *s, const char *uid, const char *node) {
        struct domain *d = find(s, uid);
        if (d && !d->all && node && *node)
                add_touched(d, enter(s, d, node));
}

void seats_touch_node(struct seats *s, const char *node) {
        struct place *p = node ? place_at(s, node) : NULL;
        for (size_t i = 0; p && i < p->n; i++)
                if (!p->domains[i]->all)
                        add_touched(p->domains[i], p);
}

void seats_touch_all(struct seats *s, const char *uid) {
        struct domain *d = find(s, uid);
        if (d)
                d->all = true;
        for (d = s->domains; !uid && d; d = d->hh.next)
                d->all = true;
}

static void drop(struct seats *s, struct domain *d) {
        sort_touched(d);
        for (size_t i = 0; i < d->n_touched; i++)
                if (!has(d, position(d, d->touched[i]->name), d->touched[i]->name))
                        leave(s, d, d->touched[i]);
        for (size_t i = 0; i < d->n; i++) {
                let_go(&d->nodes[i]);
                leave(s, d, place_at(s, d->nodes[i].name));
        }
        formation_memory_free(d->memory);
        HASH_DEL(s->domains, d);
        free(d->touched);
        free(d->nodes);
        free(d);
}

void seats_forget(struct seats *s, const char *uid) {
        struct domain *d = find(s, uid);
        if (d)
                drop(s, d);
}

void seats_free(struct seats *s) {
        if (!s)
                return;
        while (s->domains)
                drop(s, s->domains);
        free(s);
}
