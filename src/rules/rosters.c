/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/rosters.h"

#include <string.h>

#include "rules/rules.h"

enum { PORT_BITS = 12 };
_Static_assert(ROSTERS_PORT_LAST - ROSTERS_PORT_FIRST + 1 == 1 << PORT_BITS, "each hash has its port");

int64_t rosters_port(const char *infix) {
        uint32_t hash = 2166136261u; /* FNV-1a */
        for (const char *p = infix; *p; p++)
                hash = (hash ^ (unsigned char)*p) * 16777619u;
        return ROSTERS_PORT_FIRST + (hash >> (32 - PORT_BITS));
}

/* ---- what is known ---- */

static const struct rosters_node *find_node(const struct rosters_input *in, const char *name) {
        size_t low = 0, high = in->n_nodes;
        while (low < high) {
                size_t mid = (low + high) / 2;
                int c = strcmp(in->nodes[mid].name, name);
                if (c == 0)
                        return &in->nodes[mid];
                if (c < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}

static const struct rosters_domain *find_domain(const struct rosters_input *in, const char *uid) {
        for (size_t i = 0; i < in->n_domains; i++)
                if (streq(in->domains[i].owner.uid, uid))
                        return &in->domains[i];
        return NULL;
}

static bool runs(const struct rosters_node *n, const char *uid, int64_t epoch) {
        return n && !n->quiet && streq(n->report.domain, uid) && n->report.epoch == epoch;
}

static bool has_left(const struct rosters_node *n, int64_t epoch) {
        for (size_t i = 0; n && i < n->report.n_left; i++)
                if (n->report.left[i] == epoch)
                        return true;
        return false;
}

/* Is it to have a place in this domain, where it has none? */
static bool comes(const struct rosters_node *n, const char *uid) {
        return streq(n->wanted, uid) && !n->quiet && !n->ending;
}

/* ---- one domain ---- */

struct entry {
        struct fabric_seat seat;
        bool leaving, reported;
};

struct work {
        const struct rosters_input *in;
        struct arena *a;
        const struct fabric_domain *old;     /* NULL: it is new */
        const struct rosters_domain *domain; /* NULL: nothing is known of it */
        const char *uid;
        int64_t slots;
        struct entry *entries;
        size_t n;
};

static struct entry *find_entry(struct work *w, const char *node) {
        for (size_t i = 0; i < w->n; i++)
                if (streq(w->entries[i].seat.node, node))
                        return &w->entries[i];
        return NULL;
}

static bool ending(const struct work *w) {
        return w->domain && (w->domain->ending || w->domain->gone);
}

/* Does the node, which has an entry, have to leave? Not on the word of a cache that fails to show a claim. */
static bool must_leave(const struct work *w, const struct rosters_node *n, bool leaves) {
        if (ending(w))
                return true;
        if (n && streq(n->wanted, w->uid))
                return false;
        return leaves || (n && (n->released || n->wanted));
}

/* It runs a later one in the same domain: this one it never takes again, and that one counts. */
static bool is_overtaken(const struct work *w, const struct rosters_node *n, int64_t epoch) {
        return n && streq(n->report.domain, w->uid) && n->report.epoch > epoch;
}

static bool has_room(const struct work *w, int64_t index) {
        return index >= 0 && index < w->slots;
}

static void keep(struct work *w, const struct fabric_seat *s, bool leaves) {
        const struct rosters_node *n = find_node(w->in, s->node);
        struct entry e = { .seat = *s, .reported = runs(n, w->uid, s->epoch) };
        if ((n && n->quiet) || (has_left(n, s->epoch) && !e.reported) || is_overtaken(w, n, s->epoch) ||
            find_entry(w, s->node))
                return;
        if (e.reported && has_room(w, n->report.index))
                e.seat.index = n->report.index;
        e.leaving = must_leave(w, n, leaves);
        w->entries[w->n++] = e;
}

/* The highest that a node's word counts for. */
static int64_t most_epoch(const struct rosters_input *in) {
        return in->epoch < INT64_MAX - ROSTERS_EPOCHS_AHEAD ? in->epoch + ROSTERS_EPOCHS_AHEAD : INT64_MAX;
}

/* What a node holds wins over what is written: the object may have been lost, or restored. An index for which
 * the domain has no room is no place in it, whatever the node does with it, so the node leaves it. */
static void adopt(struct work *w, const struct rosters_node *n) {
        if (!streq(n->report.domain, w->uid) || n->quiet || has_left(n, n->report.epoch) ||
            find_entry(w, n->name) || n->report.index < 0 || n->report.index >= FABRIC_SLOTS_MOST ||
            n->report.epoch < 0 || n->report.epoch > most_epoch(w->in))
                return;
        w->entries[w->n++] = (struct entry){
                .seat = { .node = n->name, .index = n->report.index, .epoch = n->report.epoch },
                .leaving = must_leave(w, n, true) || !has_room(w, n->report.index),
                .reported = true,
        };
}

/* Two with one index: who does not say that he runs with it gives it up. */
static void part(struct work *w) {
        for (size_t i = 0; i < w->n; i++)
                for (size_t j = 0; j < w->n; j++)
                        if (i != j && w->entries[i].seat.index == w->entries[j].seat.index &&
                            !w->entries[i].leaving && (w->entries[j].reported || j < i) &&
                            !(w->entries[i].reported && i < j))
                                w->entries[i].leaving = true;
}

/* Who comes: nodes that are wanted and have no entry, not even one that they are leaving. */
static const char *give(struct work *w, int64_t slots, int64_t *epoch) {
        const struct rosters_input *in = w->in;
        size_t n_held = w->old ? w->old->n_seats + w->old->n_leaving : 0, n_members = 0, n = 0;
        struct seat *held = arena_alloc(w->a, (n_held + w->n + 1) * sizeof *held),
                    *seats = arena_alloc(w->a, (w->n + in->n_nodes + 1) * sizeof *seats);
        const char **members = arena_alloc(w->a, (w->n + in->n_nodes + 1) * sizeof *members);
        const int64_t *freed;
        int64_t *before;
        size_t n_before = rules_freed_parse(w->old ? w->old->freed : NULL, w->a, &before), n_freed;
        /* Those that stay come first, with the index that they run with. */
        for (size_t i = 0; i < w->n; i++)
                held[n++] = (struct seat){ .node = members[n_members++] = w->entries[i].seat.node,
                                           .index = w->entries[i].seat.index };
        for (size_t i = 0; i < n_held; i++) {
                const struct fabric_seat *s =
                        i < w->old->n_seats ? &w->old->seats[i] : &w->old->leaving[i - w->old->n_seats];
                if (!find_entry(w, s->node))
                        held[n++] = (struct seat){ .node = s->node, .index = s->index };
        }
        for (size_t i = 0; i < in->n_nodes && !ending(w) && !in->lost; i++)
                if (comes(&in->nodes[i], w->uid) && !find_entry(w, in->nodes[i].name))
                        members[n_members++] = in->nodes[i].name;
        /* A node that has left its seat and comes again is a new one. */
        for (size_t i = w->n; i < n; i++)
                held[i].node = arena_printf(w->a, "%s (before)", held[i].node);
        rules_indices(held, n, before, n_before, members, n_members, slots, w->a, seats, &freed, &n_freed);
        for (size_t i = w->n; i < n_members; i++)
                if (seats[i].index >= 0 && *epoch < INT64_MAX)
                        w->entries[w->n++] = (struct entry){
                                .seat = { .node = members[i], .index = seats[i].index, .epoch = ++*epoch }
                        };
        return rules_freed_render(freed, n_freed, w->a);
}

static int by_index(const void *a, const void *b) {
        const struct fabric_seat *x = a, *y = b;
        if (x->index != y->index)
                return x->index < y->index ? -1 : 1;
        return strcmp(x->node, y->node);
}

static void write_down(const struct work *w, struct fabric_domain *ret) {
        struct fabric_seat *seats = arena_alloc(w->a, (w->n + 1) * sizeof *seats),
                           *leaving = arena_alloc(w->a, (w->n + 1) * sizeof *leaving);
        ret->seats = seats;
        ret->leaving = leaving;
        for (size_t i = 0; i < w->n; i++) {
                struct fabric_seat s = w->entries[i].seat;
                s.ip = s.boot_id = "";
                s.ordered = ending(w) ? FABRIC_ORDERED_DELETED : NULL;
                if (w->entries[i].leaving)
                        leaving[ret->n_leaving++] = s;
                else
                        seats[ret->n_seats++] = s;
        }
        qsort(seats, ret->n_seats, sizeof *seats, by_index);
        qsort(leaving, ret->n_leaving, sizeof *leaving, by_index);
}

/* Of a domain that is not written. */
static const char *infix_of(const struct work *w) {
        for (size_t i = 0; i < w->in->n_nodes; i++)
                if (streq(w->in->nodes[i].report.domain, w->uid) && !w->in->nodes[i].quiet &&
                    w->in->nodes[i].report.infix)
                        return w->in->nodes[i].report.infix;
        return w->domain ? w->domain->infix : "";
}

/* False: there is nothing left of it. */
static bool make_domain(struct work *w, int64_t *epoch, struct fabric_domain *ret) {
        const struct rosters_input *in = w->in;
        size_t room = in->n_nodes + 1;
        if (w->old)
                room += w->old->n_seats + w->old->n_leaving;
        w->entries = arena_alloc(w->a, room * sizeof *w->entries);
        w->slots = w->old ? w->old->slots : in->slots;
        for (size_t i = 0; w->old && i < w->old->n_seats; i++)
                keep(w, &w->old->seats[i], false);
        for (size_t i = 0; w->old && i < w->old->n_leaving; i++)
                keep(w, &w->old->leaving[i], true);
        for (size_t i = 0; i < in->n_nodes; i++)
                adopt(w, &in->nodes[i]);
        part(w);
        *ret = (struct fabric_domain){ 0 };
        if (w->old)
                *ret = *w->old;
        ret->n_seats = ret->n_leaving = 0;
        if (w->domain)
                ret->owner = w->domain->owner;
        else if (!w->old)
                ret->owner = (struct fabric_owner){ .kind = "ComputeDomain", .uid = w->uid };
        if (!w->old) {
                ret->infix = infix_of(w);
                ret->slots = w->slots;
                ret->port = rosters_port(ret->infix);
        }
        ret->freed = give(w, ret->slots, epoch);
        write_down(w, ret);
        return w->n || (w->old && !(w->domain && (w->domain->gone || w->domain->stands || w->domain->idle)));
}

/* ---- all of them ---- */

static bool listed_elsewhere(const struct rosters *r, const struct fabric_domain *d, const char *node) {
        bool leaving;
        for (size_t i = 0; i < r->n_domains; i++)
                if (&r->domains[i] != d && fabric_seat_of(&r->domains[i], node, &leaving))
                        return true;
        return false;
}

static void show_addresses(const struct rosters_input *in, struct rosters *r) {
        for (size_t i = 0; i < r->n_domains; i++) {
                struct fabric_domain *d = &r->domains[i];
                for (size_t j = 0; j < d->n_seats; j++) {
                        const struct rosters_node *n = find_node(in, d->seats[j].node);
                        d->seats[j].boot_id = n ? str_or(n->boot_id, "") : "";
                        if (n && n->ip && !listed_elsewhere(r, d, n->name))
                                d->seats[j].ip = n->ip;
                }
        }
}

static void find_full(const struct rosters_input *in, struct arena *a, struct rosters *r) {
        bool leaving;
        r->full = arena_alloc(a, (in->n_nodes + 1) * sizeof *r->full);
        for (size_t i = 0; i < r->n_domains && !in->lost; i++) {
                const struct fabric_domain *d = &r->domains[i];
                const struct rosters_domain *known = find_domain(in, d->owner.uid);
                if (!known || !known->stands)
                        continue;
                r->slots = d->slots;
                for (size_t j = 0; j < in->n_nodes; j++)
                        if (comes(&in->nodes[j], d->owner.uid) &&
                            !fabric_seat_of(d, in->nodes[j].name, &leaving))
                                r->full[r->n_full++] = in->nodes[j].name;
        }
}

static bool seats_equal(const struct fabric_seat *a, const struct fabric_seat *b, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!streq(a[i].node, b[i].node) || a[i].index != b[i].index || a[i].epoch != b[i].epoch ||
                    !streq(str_or(a[i].ip, ""), str_or(b[i].ip, "")) ||
                    !streq(str_or(a[i].boot_id, ""), str_or(b[i].boot_id, "")) ||
                    !streq(str_or(a[i].ordered, ""), str_or(b[i].ordered, "")))
                        return false;
        return true;
}

static bool domains_equal(const struct fabric_domain *a, const struct fabric_domain *b) {
        return streq(a->owner.uid, b->owner.uid) && a->n_seats == b->n_seats &&
               a->n_leaving == b->n_leaving && streq(str_or(a->freed, ""), str_or(b->freed, "")) &&
               seats_equal(a->seats, b->seats, a->n_seats) &&
               seats_equal(a->leaving, b->leaving, a->n_leaving);
}

/* The highest that anybody has seen: an object that was restored must not give one a second time. */
static int64_t last_epoch(const struct rosters_input *in) {
        int64_t last = in->epoch, most = most_epoch(in);
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct rosters_report *r = &in->nodes[i].report;
                if (r->seen > last && r->seen <= most)
                        last = r->seen;
                if (r->domain && r->epoch > last && r->epoch <= most)
                        last = r->epoch;
        }
        for (size_t i = 0; i < in->n_old; i++) {
                const struct fabric_domain *d = &in->old[i];
                for (size_t j = 0; j < d->n_seats; j++)
                        last = d->seats[j].epoch > last ? d->seats[j].epoch : last;
                for (size_t j = 0; j < d->n_leaving; j++)
                        last = d->leaving[j].epoch > last ? d->leaving[j].epoch : last;
        }
        return last;
}

static bool known(const struct rosters_input *in, const char *const *others, size_t n_others,
                  const char *uid) {
        for (size_t i = 0; i < in->n_old; i++)
                if (streq(in->old[i].owner.uid, uid))
                        return true;
        for (size_t i = 0; i < n_others; i++)
                if (streq(others[i], uid))
                        return true;
        return false;
}

/* Domains that are not written yet: those that a node is wanted in, or runs. */
static size_t find_new(const struct rosters_input *in, const char **ret) {
        size_t n = 0;
        for (size_t i = 0; i < in->n_nodes; i++) {
                const char *uids[] = { in->nodes[i].wanted, in->nodes[i].report.domain };
                for (size_t j = 0; j < 2; j++)
                        if (uids[j] && !in->nodes[i].quiet && !known(in, ret, n, uids[j]) &&
                            (j || find_domain(in, uids[j])))
                                ret[n++] = uids[j];
        }
        return n;
}

/* Domains without a place go when there is no room for `n_more`. */
static void make_room(struct rosters *r, size_t n_more) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_domains; i++) {
                const struct fabric_domain *d = &r->domains[i];
                if (d->n_seats || d->n_leaving || r->n_domains - (i - n) + n_more <= ROSTERS_DOMAINS_MOST)
                        r->domains[n++] = *d;
        }
        r->n_domains = n;
}

/* A place that a node has is listed in any case. */
static bool is_held(const struct rosters_input *in, const char *uid) {
        for (size_t i = 0; i < in->n_nodes; i++)
                if (!in->nodes[i].quiet && streq(in->nodes[i].report.domain, uid))
                        return true;
        return false;
}

void rosters_make(const struct rosters_input *in, struct arena *a, struct rosters *ret) {
        const char **fresh = arena_alloc(a, (2 * in->n_nodes + 1) * sizeof *fresh);
        size_t n_fresh = find_new(in, fresh);
        *ret = (struct rosters){ .epoch = last_epoch(in) };
        ret->domains = arena_alloc(a, (in->n_old + n_fresh + 1) * sizeof *ret->domains);
        for (size_t i = 0; i < in->n_old + n_fresh; i++) {
                const struct fabric_domain *old = i < in->n_old ? &in->old[i] : NULL;
                struct work w = { .in = in, .a = a, .old = old };
                w.uid = old ? old->owner.uid : fresh[i - in->n_old];
                if (i == in->n_old)
                        make_room(ret, n_fresh);
                if (!old && ret->n_domains >= ROSTERS_DOMAINS_MOST && !is_held(in, w.uid)) {
                        ret->n_refused++;
                        continue;
                }
                w.domain = find_domain(in, w.uid);
                if (make_domain(&w, &ret->epoch, &ret->domains[ret->n_domains]))
                        ret->n_domains++;
        }
        show_addresses(in, ret);
        find_full(in, a, ret);
        ret->changed = ret->n_domains != in->n_old || ret->epoch != in->epoch;
        for (size_t i = 0; i < ret->n_domains && !ret->changed; i++)
                ret->changed = !domains_equal(&ret->domains[i], &in->old[i]);
}
