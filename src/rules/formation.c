/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/formation.h"

#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

#include "rules/judge.h"
#include "rules/message.h"
#include "rules/rules.h"

static const struct seat *entry_in(const struct clique *c, const char *node) {
        for (size_t i = 0; c && i < c->imex.n_seats; i++)
                if (streq(c->imex.seats[i].node, node))
                        return &c->imex.seats[i];
        return NULL;
}

/* How good a clique's word is that it has the node's entry, when several say so (the node was moved): best is
 * the one that the daemon itself confirms, then the slice's. */
static int rank_of(const struct seat_facts *n, const char *clique) {
        return n->pod && streq(clique, n->pod->clique_id) ? 3 : streq(clique, n->clique) ? 2 : 1;
}

static size_t find_node(const struct seat_facts *const *nodes, size_t n, const char *name) {
        size_t low = 0, high = n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(nodes[middle]->name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < n && streq(nodes[low]->name, name) ? low : n;
}

/* The clique that holds the entry of each of these nodes, sorted by name; NULL for none. */
static const char **find_entries(const struct formation_input *in, const struct seat_facts *const *nodes,
                                 size_t n, struct arena *a) {
        const char **found = arena_alloc(a, (n + 1) * sizeof *found);
        for (size_t i = 0; n && i < in->n_cliques + in->n_lost; i++) {
                const struct clique *c = i < in->n_cliques ? in->cliques[i] : in->lost[i - in->n_cliques];
                for (size_t k = 0; c->imex.clique_id && k < c->imex.n_seats; k++) {
                        size_t at = find_node(nodes, n, c->imex.seats[k].node);
                        if (at < n && (!found[at] ||
                                       rank_of(nodes[at], c->imex.clique_id) > rank_of(nodes[at], found[at])))
                                found[at] = c->imex.clique_id;
                }
        }
        return found;
}

/* Which clique the node is in: "" for none, NULL when nobody knows. It stays where its entry is until its
 * daemon says something else that the node's slice confirms: two daemons with one id are worse than one in
 * the wrong place, and one that is not seen may run. */
static const char *clique_of(const struct seat_facts *n, const char *entry_clique) {
        const char *says = n->pod ? n->pod->clique_id : NULL;
        if (says && !*says)
                return "";
        if (says && (streq(says, entry_clique) || streq(says, n->clique)))
                return says;
        return entry_clique ? entry_clique : n->clique;
}

/* Nothing can run there under the index that the node has: the operator vouches for it, or its Node has been
 * gone for long enough. */
static bool runs_nothing(const struct formation_input *in, const struct seat_facts *n) {
        return n->node ? node_out_of_service(n->node) : !in->stale && judge_gone_left_s(in->now, n) <= 0;
}

/* The label of a domain brings its daemon there, at any time. */
static bool labelled(const struct formation_input *in, const struct seat_facts *n) {
        return n->node && streq(n->node->domain_uid, in->cd->o.meta.uid);
}

/* Does the node belong: wanted, or with an entry under which something may still run? Where a cache may miss
 * something, an entry is reason enough to stay; and where none does, until the server itself has said that no
 * claim wants it and no daemon is there: a watch that is merely slow may not show yet for whom another leader
 * has just written it, nor a daemon that has begun since. Who came back then would be given another index
 * than the one with which that daemon runs, for pods by then. */
static bool belongs(const struct formation_input *in, const struct seat_facts *n, const char *entry,
                    const char *clique) {
        bool stays = (entry && (n->pod || in->stale || !n->released || labelled(in, n))) ||
                     (n->pod && clique && !*clique);
        bool comes = n->wanted && (n->node || entry);
        return !runs_nothing(in, n) && (comes || stays);
}

static struct formed_seat member_of(const struct seat_facts *n, const char *clique) {
        return (struct formed_seat){ .seat = { .node = n->name,
                                               .clique_id = clique,
                                               .index = -1,
                                               .boot_id = n->node ? node_boot_id(n->node) : "" },
                                     .written = -1,
                                     .of_imex = FORMATION_NO_IMEX,
                                     .wanted = n->wanted };
}

/* ---- what was found last time ---- */

/* Of one node: its member, while version says that nothing has changed. */
struct recalled_node {
        uint64_t version;
        bool belongs;
        struct formed_seat member;
};

/* Of one clique: what follows from its object and its members. */
struct recalled_imex {
        TAILQ_ENTRY(recalled_imex) entry;
        struct arena *a; /* of the texts and lists of the clique and of its members */
        struct formed_imex formed;
        size_t n; /* members */
        bool no_pod, lasting, seen;
        char id[];
};

struct formation_memory {
        struct recalled_node *nodes; /* in the order of the last input */
        size_t n_nodes;
        TAILQ_HEAD(, recalled_imex) cliques; /* mostly few, and mostly in the order of the last formation */
        struct recalled_imex *next;          /* behind the one that was found last; NULL: the first */
        /* What all of it depends on. */
        char *adopted, *infix;
        int64_t num_nodes, max_nodes;
        bool dns_names, stale;
};

struct formation_memory *formation_memory_new(void) {
        struct formation_memory *m = xnew(struct formation_memory);
        TAILQ_INIT(&m->cliques);
        return m;
}

static void forget_clique(struct formation_memory *m, struct recalled_imex *c) {
        TAILQ_REMOVE(&m->cliques, c, entry);
        if (c->formed.old)
                kube_object_unref(&c->formed.old->o);
        arena_free(c->a);
        free(c);
}

static void forget(struct formation_memory *m) {
        while (!TAILQ_EMPTY(&m->cliques))
                forget_clique(m, TAILQ_FIRST(&m->cliques));
        free(TAKE(m->nodes));
        m->n_nodes = 0;
        free(TAKE(m->adopted));
        free(TAKE(m->infix));
}

void formation_memory_free(struct formation_memory *m) {
        if (!m)
                return;
        forget(m);
        free(m);
}

static void recall(struct formation_memory *m, const struct formation_input *in) {
        if (!m)
                return;
        if (!streq(m->adopted, in->cd->adopted) || !streq(m->infix, in->infix) ||
            m->num_nodes != in->cd->num_nodes || m->max_nodes != in->max_nodes ||
            m->dns_names != in->dns_names || m->stale != in->stale || in->n_lost)
                forget(m);
        if (!m->infix) {
                m->adopted = xstrdup_or_null(in->cd->adopted);
                m->infix = xstrdup_or_null(in->infix);
        }
        m->num_nodes = in->cd->num_nodes;
        m->max_nodes = in->max_nodes;
        m->dns_names = in->dns_names;
        m->stale = in->stale;
}

/* Whether the node is as it was, found by its version: both lists have the same order. What a Node that is
 * gone means is a matter of time. */
static const struct recalled_node *recall_node(const struct formation_memory *m, const struct seat_facts *n,
                                               size_t *at) {
        enum { NEAR = 64 }; /* so many may have come or gone between two that stayed */
        if (!m || !n->version || !n->node)
                return NULL;
        for (size_t i = *at; i < m->n_nodes && i < *at + NEAR; i++)
                if (m->nodes[i].version == n->version) {
                        *at = i + 1;
                        return &m->nodes[i];
                }
        return NULL;
}

/* Who belongs, and of whom nothing has changed. */
struct gathered {
        const struct seat_facts **nodes; /* in the order of the members, as the next */
        bool *same;
        struct recalled_node *recalled;    /* of all nodes of the input, to be remembered; its members lack */
        const struct seat_facts **leavers; /* who does not belong, and has a daemon yet */
        size_t n_leavers;
};

static size_t gather(const struct formation_input *in, struct formed_seat *members, struct gathered *g,
                     struct arena *a) {
        const struct seat_facts **fresh = arena_alloc(a, (in->n_nodes + 1) * sizeof *fresh);
        const struct recalled_node **old = arena_alloc(a, (in->n_nodes + 1) * sizeof *old);
        size_t n = 0, n_fresh = 0, at = 0;
        g->nodes = arena_alloc(a, (in->n_nodes + 1) * sizeof *g->nodes);
        g->same = arena_alloc(a, in->n_nodes + 1);
        g->leavers = arena_alloc(a, (in->n_nodes + 1) * sizeof *g->leavers);
        g->n_leavers = 0;
        g->recalled = in->memory ? xnew_n(struct recalled_node, in->n_nodes + 1) : NULL;
        for (size_t i = 0; i < in->n_nodes; i++) {
                old[i] = recall_node(in->memory, &in->nodes[i], &at);
                if (!old[i])
                        fresh[n_fresh++] = &in->nodes[i];
        }
        const char **entries = find_entries(in, fresh, n_fresh, a);
        n_fresh = 0;
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct seat_facts *node = &in->nodes[i];
                const char *entry = old[i] ? NULL : entries[n_fresh++];
                const char *clique = old[i] ? NULL : clique_of(node, entry);
                bool is = old[i] ? old[i]->belongs : belongs(in, node, entry, clique);
                if (g->recalled)
                        g->recalled[i] = (struct recalled_node){ .version = node->version, .belongs = is };
                if (!is && node->pod)
                        g->leavers[g->n_leavers++] = node;
                if (!is)
                        continue;
                members[n] = old[i] ? old[i]->member : member_of(node, clique);
                members[n].of_imex = FORMATION_NO_IMEX;
                g->same[n] = old[i] != NULL;
                g->nodes[n++] = node;
        }
        return n;
}

/* For the next time. */
static void remember(const struct formation_input *in, const struct formation *f, struct gathered *g) {
        struct formation_memory *m = in->memory;
        size_t n = 0;
        if (!m)
                return;
        for (size_t i = 0; i < in->n_nodes; i++)
                if (g->recalled[i].belongs)
                        g->recalled[i].member = f->members[n++];
        free(m->nodes);
        m->nodes = g->recalled;
        m->n_nodes = in->n_nodes;
        m->next = NULL;
        for (struct recalled_imex *c = TAILQ_FIRST(&m->cliques), *next; c; c = next) {
                next = TAILQ_NEXT(c, entry);
                if (!c->seen)
                        forget_clique(m, c);
                else
                        c->seen = false;
        }
}

/* What the clique's object said before somebody deleted it, from lost[*at] on; NULL: nothing more. */
static const struct clique *next_lost(const struct formation_input *in, const char *clique, size_t *at) {
        while (*at < in->n_lost) {
                const struct clique *lost = in->lost[(*at)++];
                if (streq(lost->imex.clique_id, clique))
                        return lost;
        }
        return NULL;
}

/* What the object says; of none, nothing. */
static const struct imex_domain *imex_of(const struct clique *c) {
        static const struct imex_domain nothing;
        return c ? &c->imex : &nothing;
}

static bool wants_index(const struct formed_seat *m, const struct seat_facts *n, const char *clique) {
        return streq(m->seat.clique_id, clique) && (n->pod || !n->held_by);
}

/* The index that a node's daemon says it runs with in this clique, -1 for none. */
static int64_t running_index(const struct seat_facts *n, const char *clique, int64_t max_nodes) {
        int64_t index;
        if (!n->pod || !streq(n->pod->clique_id, clique) || !str_to_i64(str_from(n->pod->index), &index))
                return -1;
        return index < max_nodes ? index : -1;
}

/* The members of one clique, in the order of all. */
struct group {
        size_t *members; /* indices */
        size_t n;
};

/* The Go driver's daemons send SIGUSR1 at each change of an address, and nvidia-imex ignores the second
 * within five seconds: they have to see a node for the first time with its address, and no address go that
 * another one follows. */
static bool has_foreign(const struct seat_facts *const *nodes, const struct group *g) {
        for (size_t i = 0; i < g->n; i++) {
                const struct pod *p = nodes[g->members[i]]->pod;
                if (p && !p->template_hash)
                        return true;
        }
        return false;
}

static void assign_indices(const struct formation_input *in, struct formed_seat *members,
                           const struct gathered *who, const struct group *g, struct formed_imex *c,
                           struct arena *a, struct arena *scratch) {
        const struct seat_facts *const *nodes = who->nodes;
        const struct clique *old = c->old, *lost;
        const bool foreign = has_foreign(nodes, g);
        size_t n_held = imex_of(old)->n_seats, n = 0, n_new_freed, most = g->n + who->n_leavers + 1,
               n_lost = 0, at = 0;
        while ((lost = next_lost(in, c->imex.clique_id, &at)))
                n_lost += lost->imex.n_seats;
        struct seat *held = arena_alloc(scratch, (n_held + n_lost + most) * sizeof *held),
                    *seats = arena_alloc(scratch, most * sizeof *seats);
        const char **names = arena_alloc(scratch, most * sizeof *names);
        struct formed_seat **of = arena_alloc(scratch, most * sizeof *of);
        const int64_t *new_freed;
        int64_t *freed;
        at = 0;
        size_t n_freed = rules_freed_parse(imex_of(old ? old : next_lost(in, c->imex.clique_id, &at))->freed,
                                           scratch, &freed);
        for (size_t i = 0; old && i < old->imex.n_seats; i++)
                held[i] = old->imex.seats[i];
        for (at = 0; (lost = next_lost(in, c->imex.clique_id, &at));)
                for (size_t i = 0; i < lost->imex.n_seats; i++)
                        if (!entry_in(old, lost->imex.seats[i].node))
                                held[n_held++] = lost->imex.seats[i];
        for (size_t i = 0; i < g->n; i++) {
                struct formed_seat *m = &members[g->members[i]];
                const struct seat_facts *node = nodes[g->members[i]];
                const struct seat *entry = entry_in(old, node->name);
                int64_t runs_with = running_index(node, c->imex.clique_id, in->max_nodes);
                if (!entry && !wants_index(m, node, c->imex.clique_id))
                        continue;
                m->address_first = foreign && !*judge_ip(node) && !entry;
                if (m->address_first)
                        continue;
                /* The entry is lost (somebody deleted the clique), but the daemon lives: it keeps the id that
                 * it has. */
                if (runs_with >= 0 && !entry)
                        held[n_held++] = (struct seat){ .node = m->seat.node, .index = runs_with };
                m->written = entry ? entry->index : -1;
                of[n] = m;
                names[n++] = m->seat.node;
        }
        /* The index of who has lost his entry so, and ends, is the last that others get. */
        for (size_t i = 0; !old && i < who->n_leavers; i++) {
                int64_t runs_with = running_index(who->leavers[i], c->imex.clique_id, in->max_nodes);
                if (runs_with >= 0)
                        held[n_held++] = (struct seat){ .node = who->leavers[i]->name, .index = runs_with };
        }
        rules_indices(held, n_held, freed, n_freed, names, n, in->max_nodes, scratch, seats, &new_freed,
                      &n_new_freed);
        for (size_t i = 0; i < n; i++)
                of[i]->seat.index = seats[i].index;
        c->imex.freed = rules_freed_render(new_freed, n_new_freed, a);
}

static int by_index(const void *x, const void *y) {
        const struct seat *a = x, *b = y;
        return a->index < b->index ? -1 : a->index > b->index;
}

/* Compares with what is there: first what a daemon waits for, then the rest. */
static void compare(const struct formation_input *in, struct formed_imex *c) {
        const struct imex_domain *now = &c->imex, *was = imex_of(c->old);
        c->urgent = c->changed = false;
        for (size_t i = 0; i < now->n_seats; i++) {
                const struct seat *is = &now->seats[i], *old = entry_in(c->old, is->node);
                bool ip_differs = !old || !streq(str_or(old->ip, ""), is->ip);
                if (!old || old->index != is->index || (ip_differs && !in->dns_names))
                        c->urgent = true;
                if (ip_differs || !streq(old->status, is->status) || !streq(old->clique_id, is->clique_id))
                        c->changed = true;
                /* One that is missing comes with the next write: the server's schema may be one that drops
                 * it. */
                if (old && old->boot_id && !streq(old->boot_id, is->boot_id))
                        c->changed = true;
        }
        c->changed =
                c->changed || c->urgent ||
                (c->old &&
                 (was->n_seats != now->n_seats || c->old->n_owners || !streq(was->freed, now->freed))) ||
                (now->n_seats && (!streq(was->infix, now->infix) || !streq(was->num_nodes, now->num_nodes)));
}

/* Is the clique among those that the domain was noted to have taken over? */
static bool noted_as_adopted(const struct compute_domain *cd, const char *clique_id) {
        struct str rest = str_from(cd->adopted), part = { 0 };
        if (!str_next_field(&rest, ':', &part) || !str_eq(part, str_from(cd->o.meta.uid)))
                return false;
        while (str_next_field(&rest, ',', &part))
                if (str_eq(part, str_from(clique_id)))
                        return true;
        return false;
}

/* Names are fixed while anybody uses them, because IMEX refuses a changed node list for good: a clique that
 * had entries and no infix when we found it keeps the Go driver's, also when somebody deletes it meanwhile.
 */
static void choose_names(const struct formation_input *in, const struct seat_facts *const *nodes,
                         const struct group *g, struct formed_imex *c, struct arena *a) {
        bool anybody_runs = false;
        for (size_t i = 0; i < g->n; i++)
                anybody_runs = anybody_runs || nodes[g->members[i]]->pod;
        c->imex.infix = imex_of(c->old)->infix;
        if (c->imex.infix)
                return;
        c->adopted =
                imex_of(c->old)->n_seats ? true : anybody_runs && noted_as_adopted(in->cd, c->imex.clique_id);
        if (!c->adopted)
                c->imex.infix = in->infix ? arena_strdup(a, in->infix) : NULL;
}

static void render_entries(const struct formation_input *in, const struct formed_seat *members,
                           const struct seat_facts *const *nodes, const struct group *g,
                           struct formed_imex *c, struct arena *a) {
        const bool foreign = has_foreign(nodes, g);
        c->imex.seats = arena_alloc(a, (g->n + 1) * sizeof *c->imex.seats);
        for (size_t i = 0; i < g->n; i++) {
                const struct formed_seat *m = &members[g->members[i]];
                if (m->seat.index < 0)
                        continue;
                bool keeps = foreign || m->why == FORMATION_LEAVING;
                const struct seat *was = keeps && !*m->seat.ip ? entry_in(c->old, m->seat.node) : NULL;
                c->n_listed += m->listed;
                c->imex.seats[c->imex.n_seats] = m->seat;
                if (was)
                        c->imex.seats[c->imex.n_seats].ip = str_or(was->ip, "");
                c->imex.n_seats++;
        }
        qsort(c->imex.seats, c->imex.n_seats, sizeof *c->imex.seats, by_index);
        c->imex.num_nodes = message_of(a, "%lld", (long long)in->cd->num_nodes);
}

/* Where a clique is in the formation, by its id. */
struct place {
        UT_hash_handle hh;
        size_t at;
};

static size_t place_of(struct place *places, const char *id) {
        struct place *p;
        HASH_FIND_STR(places, id, p);
        return p ? p->at : FORMATION_NO_IMEX;
}

static void add_clique(struct formation *f, struct place **places, const char *id, const struct clique *old,
                       struct arena *a) {
        struct place *p = arena_alloc(a, sizeof *p);
        p->at = f->n_imex;
        HASH_ADD_KEYPTR(hh, *places, id, strlen(id), p);
        f->imex[f->n_imex++] = (struct formed_imex){ .imex.clique_id = id, .old = old };
}

static void find_cliques(const struct formation_input *in, const struct seat_facts *const *nodes,
                         struct formation *f, struct arena *a) {
        struct place *places = NULL;
        size_t last = FORMATION_NO_IMEX;
        for (size_t i = 0; i < in->n_cliques; i++) {
                const char *id = in->cliques[i]->imex.clique_id;
                if (id && place_of(places, id) == FORMATION_NO_IMEX)
                        add_clique(f, &places, id, in->cliques[i], a);
        }
        for (size_t i = 0; i < f->n_members; i++) {
                struct formed_seat *m = &f->members[i];
                if (!m->seat.clique_id || !*m->seat.clique_id)
                        continue;
                /* Neighbours mostly share a clique. */
                if (last != FORMATION_NO_IMEX && streq(f->imex[last].imex.clique_id, m->seat.clique_id)) {
                        m->of_imex = last;
                        continue;
                }
                if (place_of(places, m->seat.clique_id) == FORMATION_NO_IMEX &&
                    wants_index(m, nodes[i], m->seat.clique_id))
                        add_clique(f, &places, m->seat.clique_id, NULL, a);
                m->of_imex = last = place_of(places, m->seat.clique_id);
        }
        HASH_CLEAR(hh, places);
}

static struct group *group_members(const struct formation *f, struct arena *a) {
        struct group *groups = arena_alloc(a, (f->n_imex + 1) * sizeof *groups);
        size_t *list = arena_alloc(a, (f->n_members + 1) * sizeof *list);
        memset(groups, 0, (f->n_imex + 1) * sizeof *groups);
        for (size_t i = 0; i < f->n_members; i++)
                if (f->members[i].of_imex != FORMATION_NO_IMEX)
                        groups[f->members[i].of_imex].n++;
        for (size_t i = 0; i < f->n_imex; i++) {
                groups[i].members = list;
                list += groups[i].n;
                groups[i].n = 0;
        }
        for (size_t i = 0; i < f->n_members; i++) {
                size_t at = f->members[i].of_imex;
                if (at != FORMATION_NO_IMEX)
                        groups[at].members[groups[at].n++] = i;
        }
        return groups;
}

static const char *name_adopted(const struct formation_input *in, const struct formation *f,
                                struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 << 10);
        for (size_t i = 0; i < f->n_imex; i++)
                if (f->imex[i].adopted)
                        buf_addf(&b, "%s%s%s", b.n ? "" : in->cd->o.meta.uid, b.n ? "," : ":",
                                 f->imex[i].imex.clique_id);
        return b.n && !b.failed ? arena_strdup(a, buf_str(&b)) : NULL;
}

static bool is_as_it_was(const struct recalled_imex *c, const struct clique *old, const struct group *g,
                         const bool *same) {
        if (!c->lasting || c->formed.old != old || c->n != g->n)
                return false;
        for (size_t i = 0; i < g->n; i++)
                if (!same[g->members[i]])
                        return false;
        return true;
}

static struct recalled_imex *behind(struct formation_memory *m, struct recalled_imex *r) {
        r = r ? TAILQ_NEXT(r, entry) : NULL;
        return r ? r : TAILQ_FIRST(&m->cliques);
}

static struct recalled_imex *find_clique(struct formation_memory *m, const char *id) {
        struct recalled_imex *first = m->next ? m->next : behind(m, NULL), *r = first;
        while (r && !streq(r->id, id)) {
                r = behind(m, r);
                if (r == first)
                        return NULL;
        }
        if (r)
                m->next = TAILQ_NEXT(r, entry);
        return r;
}

/* What is to be remembered of the clique, empty where it is not as it was. */
static struct recalled_imex *recall_clique(struct formation_memory *m, const struct formed_imex *c,
                                           const struct group *g, const bool *same) {
        struct recalled_imex *r = find_clique(m, c->imex.clique_id);
        size_t n = strlen(c->imex.clique_id) + 1;
        if (r && !is_as_it_was(r, c->old, g, same)) {
                forget_clique(m, r);
                r = NULL;
        }
        if (!r) {
                r = xcalloc(1, sizeof *r + n);
                memcpy(r->id, c->imex.clique_id, n);
                if (m->next)
                        TAILQ_INSERT_BEFORE(m->next, r, entry);
                else
                        TAILQ_INSERT_TAIL(&m->cliques, r, entry);
        }
        r->seen = true;
        return r;
}

/* What is only needed meanwhile comes from `scratch`. */
static void make_clique(const struct formation_input *in, struct formation *f, const struct gathered *who,
                        const struct group *g, struct formed_imex *c, struct judging *j,
                        struct arena *scratch) {
        const struct seat_facts *const *nodes = who->nodes;
        for (size_t i = 0; i < g->n; i++) {
                struct formed_seat *m = &f->members[g->members[i]];
                size_t of_imex = m->of_imex;
                *m = member_of(nodes[g->members[i]], m->seat.clique_id);
                m->of_imex = of_imex;
        }
        assign_indices(in, f->members, who, g, c, j->a, scratch);
        for (size_t i = 0; i < g->n; i++)
                judge_member(&f->members[g->members[i]], nodes[g->members[i]], j);
        render_entries(in, f->members, nodes, g, c, j->a);
        choose_names(in, nodes, g, c, j->a);
        compare(in, c);
}

/* One IMEX domain of it: what was found last time, if nothing of it has changed. */
static void settle_clique(const struct formation_input *in, struct formation *f, const struct gathered *who,
                          const struct group *g, struct formed_imex *c, struct judging *all) {
        struct recalled_imex *r = in->memory ? recall_clique(in->memory, c, g, who->same) : NULL;
        if (r && r->a) {
                const char *id = c->imex.clique_id;
                *c = r->formed;
                c->imex.clique_id = id;
                all->no_pod = all->no_pod || r->no_pod;
                return;
        }
        struct judging j = { .a = r ? arena_new((g->n + 1) * sizeof(struct seat) + 64) : all->a,
                             .now = in->now,
                             .stale = in->stale };
        make_clique(in, f, who, g, c, &j, all->a);
        all->no_pod = all->no_pod || j.no_pod;
        judge_look_again(all, j.recheck_s);
        if (!r)
                return;
        r->a = j.a;
        r->formed = *c;
        r->formed.old = c->old ? (const struct clique *)kube_object_ref(&c->old->o) : NULL;
        r->n = g->n;
        r->no_pod = j.no_pod;
        /* Without an object those count who do not belong, and what was lost. */
        r->lasting = !j.recheck_s && c->old && !in->n_lost;
}

/* Whether this entry of a lost clique says more of a member than what is there. */
static bool lacks_entry(const struct formation *f, const struct seat *lost) {
        for (size_t i = 0; i < f->n_members; i++)
                if (streq(f->members[i].seat.node, lost->node))
                        return f->members[i].seat.index >= 0 && f->members[i].written < 0;
        return false;
}

void formation_make(const struct formation_input *in, struct arena *a, struct formation *ret) {
        struct gathered who;
        struct judging j = { .a = a, .now = in->now, .stale = in->stale };
        *ret = (struct formation){
                .members = arena_alloc(a, (in->n_nodes + 1) * sizeof *ret->members),
                .imex = arena_alloc(a, (in->n_nodes + in->n_cliques + 1) * sizeof *ret->imex),
        };
        recall(in->memory, in);
        ret->n_members = gather(in, ret->members, &who, a);
        find_cliques(in, who.nodes, ret, a);
        struct group *groups = group_members(ret, a);
        for (size_t i = 0; i < ret->n_imex; i++)
                settle_clique(in, ret, &who, &groups[i], &ret->imex[i], &j);
        for (size_t i = 0; i < ret->n_members; i++)
                if (ret->members[i].of_imex == FORMATION_NO_IMEX) {
                        ret->members[i] = member_of(who.nodes[i], ret->members[i].seat.clique_id);
                        judge_member(&ret->members[i], who.nodes[i], &j);
                }
        ret->recheck_s = j.recheck_s;
        for (size_t i = 0; i < in->n_lost; i++)
                for (size_t k = 0; k < in->lost[i]->imex.n_seats; k++)
                        ret->needs_lost = ret->needs_lost || lacks_entry(ret, &in->lost[i]->imex.seats[k]);
        for (size_t i = 0; in->stale && i < ret->n_members; i++)
                ret->held = ret->held || !ret->members[i].wanted || !who.nodes[i]->node;
        if (j.no_pod && in->daemonset)
                ret->hint = in->daemonset;
        ret->adopted = name_adopted(in, ret, a);
        remember(in, ret, &who);
}
