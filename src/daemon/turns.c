/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/turns.h"

#include <string.h>

static bool has(const int64_t *list, size_t n, int64_t epoch) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == epoch)
                        return true;
        return false;
}

/* A place in one of the lists of the fabric. */
struct listed {
        const struct fabric_domain *domain;
        const struct fabric_seat *seat; /* NULL: not listed */
        bool leaving;
};

struct look {
        const struct turns_memory *m;
        int64_t *left;
        size_t n_left;
        int64_t seen;
        struct listed own;   /* the seat that it has */
        struct listed rival; /* another one in the same domain */
        struct listed next;  /* the earliest that it may take */
};

static bool may_take(const struct turns_memory *m, const struct fabric_seat *s) {
        return s->epoch > m->entered && !has(m->left, m->n_left, s->epoch);
}

static void look_at(struct look *l, const struct fabric_domain *d, const struct fabric_seat *s,
                    bool leaving) {
        const struct turns_memory *m = l->m;
        bool same_domain = m->now.domain && streq(m->now.domain, d->owner.uid);
        if (s->epoch > l->seen)
                l->seen = s->epoch;
        if (same_domain && s->epoch == m->now.epoch) {
                l->own = (struct listed){ d, s, leaving };
                return;
        }
        if (leaving || !may_take(m, s)) {
                l->left[l->n_left++] = s->epoch;
                return;
        }
        if (same_domain)
                l->rival = (struct listed){ d, s, false };
        if (!l->next.seat || s->epoch < l->next.seat->epoch)
                l->next = (struct listed){ d, s, false };
}

static void look(struct look *l, const struct compute_domain_fabric *f, const char *node) {
        for (size_t i = 0; i < f->n_domains; i++) {
                const struct fabric_domain *d = &f->domains[i];
                for (size_t j = 0; j < d->n_seats; j++)
                        if (streq(d->seats[j].node, node))
                                look_at(l, d, &d->seats[j], false);
                for (size_t j = 0; j < d->n_leaving; j++)
                        if (streq(d->leaving[j].node, node))
                                look_at(l, d, &d->leaving[j], true);
        }
}

static size_t count(const struct compute_domain_fabric *f) {
        size_t n = 0;
        for (size_t i = 0; i < f->n_domains; i++)
                n += f->domains[i].n_seats + f->domains[i].n_leaving;
        return n;
}

/* What to do with the seat that it has. */
static void judge_own(const struct look *l, struct turns *t) {
        const struct listed *own = &l->own;
        const struct turns_seat *now = &l->m->now;
        if (own->seat && streq(own->seat->ordered, FABRIC_ORDERED_DELETED))
                t->step = TURNS_END;
        else if (own->seat && own->leaving)
                t->step = TURNS_LEAVE;
        else if (own->seat && (own->seat->index != now->index || !streq(own->domain->infix, now->infix)))
                t->step = TURNS_LEAVE;
        else if (!own->seat && l->rival.seat)
                t->step = TURNS_LEAVE;
        else if (!own->seat)
                t->why = "the fabric's object does not list the seat that this node has: it goes on with it";
}

static void judge_next(const struct look *l, const struct compute_domain_fabric *f, struct turns *t) {
        const struct listed *next = &l->next;
        if (!next->seat) {
                t->why = "no IMEX domain wants this node";
                /* Only the domain of the fabric itself is said to be full in the fabric's object. */
                if (condition_true(f->conditions, f->n_conditions, FABRIC_DOMAIN_FULL))
                        t->why = "the IMEX domain of the fabric has no place for this node: the condition "
                                 "DomainFull of its ComputeDomainFabric says what to do";
                return;
        }
        t->step = TURNS_ENTER;
        t->seat = (struct turns_seat){ .domain = next->domain->owner.uid,
                                       .infix = str_or(next->domain->infix, ""),
                                       .index = next->seat->index,
                                       .epoch = next->seat->epoch,
                                       .port = next->domain->port,
                                       .slots = next->domain->slots };
        t->memory.entered = next->seat->epoch;
}

void turns_decide(const struct compute_domain_fabric *f, const char *node, const struct turns_memory *m,
                  struct arena *a, struct turns *ret) {
        struct look l = { .m = m, .seen = m->seen };
        *ret = (struct turns){ .step = TURNS_STAY, .why = "", .memory = *m };
        if (!f) {
                ret->why = m->now.domain ? "" : "the fabric's object is not there yet";
                return;
        }
        l.left = arena_alloc(a, (count(f) + 1) * sizeof *l.left);
        look(&l, f, node);
        ret->memory.seen = l.seen;
        ret->memory.left = l.left;
        ret->memory.n_left = l.n_left;
        if (m->now.domain)
                judge_own(&l, ret);
        else
                judge_next(&l, f, ret);
}

/* Who is leaving may be so because another has its index. */
static bool lists(const struct imex_peer *peers, size_t n, const struct fabric_seat *s) {
        for (size_t i = 0; i < n; i++)
                if (streq(peers[i].node, s->node) || peers[i].index == s->index)
                        return true;
        return false;
}

bool turns_peers(const struct compute_domain_fabric *f, const char *node, const struct turns_seat *now,
                 struct arena *a, struct imex_peer **ret, size_t *ret_n) {
        const struct fabric_domain *d = fabric_domain_of(f, now->domain);
        size_t n = 0;
        if (!d)
                return false;
        struct imex_peer *peers = arena_alloc(a, (d->n_seats + d->n_leaving + 1) * sizeof *peers);
        for (size_t i = 0; i < d->n_seats + d->n_leaving; i++) {
                bool leaving = i >= d->n_seats;
                const struct fabric_seat *s = leaving ? &d->leaving[i - d->n_seats] : &d->seats[i];
                if (!streq(s->node, node) && s->index != now->index && !lists(peers, n, s))
                        peers[n++] = (struct imex_peer){ .index = s->index,
                                                         .ip = leaving ? "" : str_or(s->ip, ""),
                                                         .node = s->node,
                                                         .boot_id = str_or(s->boot_id, "") };
        }
        *ret = peers;
        *ret_n = n;
        return true;
}

void turns_left(const struct turns_memory *m, struct arena *a, struct turns_memory *ret) {
        int64_t *left = arena_alloc(a, (m->n_left + 1) * sizeof *left);
        if (m->n_left)
                memcpy(left, m->left, m->n_left * sizeof *left);
        left[m->n_left] = m->now.epoch;
        *ret = *m;
        ret->left = left;
        ret->n_left = m->n_left + (m->now.domain != NULL);
        ret->now = (struct turns_seat){ 0 };
}
