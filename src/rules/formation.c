/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/formation.h"

#include <stdio.h>
#include <string.h>
#include <uthash.h>

#include "api/names.h"
#include "rules/rules.h"

const char *formation_text(struct arena *a, const char *fmt, ...) {
        struct buf b = BUF_INIT(4096);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        const char *s = arena_strdup(a, buf_str(&b));
        buf_done(&b);
        return s;
}

static const struct clique_daemon *entry_in(const struct clique *c, const char *node) {
        for (size_t i = 0; c && i < c->n_daemons; i++)
                if (streq(c->daemons[i].node, node))
                        return &c->daemons[i];
        return NULL;
}

/* An entry of a clique; all of a domain's are sorted by node, because domains may have thousands. */
struct seat {
        const char *node, *clique;
};

struct seats {
        struct seat *list;
        size_t n;
};

static int by_node(const void *x, const void *y) {
        return strcmp(((const struct seat *)x)->node, ((const struct seat *)y)->node);
}

static struct seats sort_seats(const struct formation_input *in, struct arena *a) {
        struct seats s = { 0 };
        size_t n = 0;
        for (size_t i = 0; i < in->n_cliques; i++)
                n += in->cliques[i]->n_daemons;
        s.list = arena_alloc(a, (n + 1) * sizeof *s.list);
        for (size_t i = 0; i < in->n_cliques; i++)
                for (size_t k = 0; in->cliques[i]->clique_id && k < in->cliques[i]->n_daemons; k++)
                        s.list[s.n++] =
                                (struct seat){ in->cliques[i]->daemons[k].node, in->cliques[i]->clique_id };
        qsort(s.list, s.n, sizeof *s.list, by_node);
        return s;
}

/* The clique that holds the node's entry, NULL for none; of several (the node was moved) the one that the
 * daemon itself confirms, else the slice's. */
static const char *find_seat(const struct seats *s, const struct formation_node *n) {
        size_t low = 0, high = s->n;
        const char *found = NULL, *says = n->pod ? n->pod->clique_id : NULL;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(s->list[middle].node, n->name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (int best = 0; low < s->n && streq(s->list[low].node, n->name); low++) {
                int rank = streq(s->list[low].clique, says)        ? 3
                           : streq(s->list[low].clique, n->clique) ? 2
                                                                   : 1;
                if (rank > best) {
                        best = rank;
                        found = s->list[low].clique;
                }
        }
        return found;
}

/* Which clique the node is in: "" for none, NULL when nobody knows. A daemon that runs stays where its entry
 * is until it says something else that the node's slice confirms: two daemons with one id are worse than one
 * in the wrong place. */
static const char *clique_of(const struct formation_node *n, const char *entry_clique) {
        const char *says = n->pod ? n->pod->clique_id : NULL;
        if (says && !*says)
                return "";
        if (says && (streq(says, entry_clique) || streq(says, n->clique)))
                return says;
        if (entry_clique && (n->pod || !n->clique))
                return entry_clique;
        return n->clique;
}

static const char *pod_ip(const struct formation_node *n) {
        return n->pod && n->pod->n_ips ? str_or(n->pod->ips[0].ip, "") : "";
}

static const char *with_message(struct arena *a, const char *what, const char *message) {
        return message && *message ? formation_text(a, "%s: %.300s", what, message) : what;
}

/* Why a container does not run, or NULL. ContainerCreating and PodInitializing are the way up, not down. */
static const char *container_down(const struct pod *p, struct arena *a) {
        for (size_t i = 0; i < p->n_containers; i++) {
                const struct pod_container *c = &p->containers[i];
                const struct pod_container_why *w = c->terminated ? c->terminated : c->waiting;
                if (!w || streq(w->reason, "ContainerCreating") || streq(w->reason, "PodInitializing"))
                        continue;
                /* Its message is how long the pause is now. */
                if (streq(w->reason, "CrashLoopBackOff"))
                        return formation_text(
                                a,
                                "daemon Pod %s: CrashLoopBackOff; kubectl -n %s logs --previous %s "
                                "says why it ends",
                                p->o.meta.name, p->o.meta.ns, p->o.meta.name);
                return with_message(a,
                                    formation_text(a, "daemon Pod %s: %s", p->o.meta.name,
                                                   str_or(w->reason, "container is down")),
                                    w->message);
        }
        return NULL;
}

/* What judging needs beyond the node, and when it would say something else though nothing happens. */
struct judging {
        const struct formation_input *in;
        struct arena *a;
        int64_t now, recheck_s;
        bool no_pod; /* somebody waits for a daemon pod */
};

static void look_again(struct judging *j, int64_t left_s) {
        if (left_s > 0 && (!j->recheck_s || left_s < j->recheck_s))
                j->recheck_s = left_s;
}

static int by_text(const void *x, const void *y) {
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The scheduler's reasons without what moves at each of its attempts: how many nodes there are and how many
 * each reason is about, which also decides the order. A daemon pod fits one node only, so that all the others
 * do not match says nothing; nor does what follows the reasons, why nothing can be pushed aside for it. "0/3
 * nodes are available: 1 cannot allocate all claims, 2 node(s) didn't match Pod's node affinity/selector.
 * ..." */
static const char *scheduler_says(const char *message, struct arena *a) {
        enum { REASONS = 16 };
        static const char head[] = " nodes are available: ", tail[] = ". ", noise[] = "node(s) didn't match";
        const char *from = message ? strstr(message, head) : NULL, *list[REASONS];
        size_t n = 0;
        if (!from)
                return message;
        from += sizeof head - 1;
        const char *to = strstr(from, tail);
        struct str rest = { from, to ? (size_t)(to - from) : strlen(from) }, part;
        while (n < REASONS && str_next_field(&rest, ',', &part)) {
                part = str_trim(part);
                while (part.n && ((*part.p >= '0' && *part.p <= '9') || *part.p == ' ')) {
                        part.p++;
                        part.n--;
                }
                if (part.n && part.p[part.n - 1] == '.')
                        part.n--;
                if (part.n && strncmp(part.p, noise, sizeof noise - 1) != 0)
                        list[n++] = arena_strndup(a, part.p, part.n);
        }
        qsort(list, n, sizeof *list, by_text);
        struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < n; i++)
                buf_addf(&b, "%s%s", i ? ", " : "", list[i]);
        const char *s = n ? arena_strdup(a, buf_str(&b)) : "no node matches";
        buf_done(&b);
        return s;
}

static void judge(struct formation_member *m, enum formation_why why, const char *message) {
        m->why = why;
        m->message = message;
}

/* For a moment nothing fits any pod: its claim is being made, or the daemon before it is leaving. */
static void judge_pending(struct formation_member *m, const struct pod *p, struct judging *j) {
        const struct condition *c = condition_find(p->conditions, p->n_conditions, "PodScheduled");
        if (!c || !streq(c->status, "False")) {
                judge(m, FORMATION_STARTING,
                      formation_text(j->a, "daemon Pod %s is starting", p->o.meta.name));
                return;
        }
        int64_t left_s = c->since + FORMATION_SCHEDULED_S - j->now;
        judge(m, left_s > 0 ? FORMATION_STARTING : FORMATION_FAILING,
              with_message(j->a, formation_text(j->a, "daemon Pod %s cannot be scheduled", p->o.meta.name),
                           scheduler_says(c->message, j->a)));
        look_again(j, left_s);
}

/* The Go driver's daemons do not report; their probe says the same. */
static void judge_foreign(struct formation_member *m, const struct pod *p, struct arena *a) {
        const struct condition *c = condition_find(p->conditions, p->n_conditions, "Ready");
        if (c && streq(c->status, "True"))
                judge(m, FORMATION_READY, "");
        else
                judge(m, FORMATION_STARTING, formation_text(a, "daemon Pod %s is not ready", p->o.meta.name));
}

static void judge_daemon(struct formation_member *m, const struct formation_node *n, struct judging *j) {
        struct arena *a = j->a;
        const struct pod *p = n->pod;
        const struct condition *ready = condition_find(p->conditions, p->n_conditions, "Ready");
        const char *down;
        int64_t index;
        if (ready && streq(ready->status, "False") && streq(ready->reason, "NodeNotReady"))
                judge(m, FORMATION_LOST, formation_text(a, "daemon Pod %s is out of reach", p->o.meta.name));
        else if (p->o.meta.deleted)
                judge(m, FORMATION_STARTING,
                      formation_text(a, "daemon Pod %s is being deleted", p->o.meta.name));
        else if ((down = container_down(p, a)))
                judge(m, FORMATION_FAILING, down);
        else if (!p->template_hash)
                judge_foreign(m, p, a);
        else if (!p->ready)
                judge_pending(m, p, j);
        else if (p->clique_id && *p->clique_id && n->clique && !streq(p->clique_id, n->clique))
                judge(m, FORMATION_FAILING,
                      formation_text(
                              a, "daemon Pod %s claims clique %.63s, but the node's ResourceSlice states %s",
                              p->o.meta.name, p->clique_id, *n->clique ? n->clique : "none"));
        else if (!streq(p->ready, "true"))
                judge(m, streq(p->state, "BACKOFF") || p->awaited ? FORMATION_FAILING : FORMATION_STARTING,
                      with_message(a,
                                   formation_text(a, "IMEX daemon is %.40s", str_or(p->state, "not ready")),
                                   p->reason));
        else if (!*m->ip || !p->clique_id ||
                 (m->clique && *m->clique && !str_to_i64(str_from(p->index), &index)))
                judge_pending(m, p, j);
        else if (m->clique && *m->clique && index != m->index)
                judge(m, FORMATION_STARTING,
                      formation_text(a, "IMEX daemon changes from index %lld to %lld", (long long)index,
                                     (long long)m->index));
        else
                judge(m, FORMATION_READY, "");
}

static void read_peers(struct formation_member *m, const struct pod *p) {
        struct str rest = str_from(p ? p->peers : NULL), connected = { 0 };
        m->peers_connected = m->peers_known = -1;
        if (!str_next_field(&rest, '/', &connected) || !rest.p ||
            !str_to_i64(connected, &m->peers_connected) || !str_to_i64(rest, &m->peers_known))
                m->peers_connected = m->peers_known = -1;
}

static int64_t gone_left_s(const struct formation_input *in, const struct formation_node *n) {
        return n->gone_since ? n->gone_since + FORMATION_NODE_GONE_S - in->now : FORMATION_NODE_GONE_S;
}

static void judge_gone(struct formation_member *m, const struct formation_node *n, struct judging *j) {
        int64_t left_s = gone_left_s(j->in, n);
        judge(m, FORMATION_LOST,
              "its Node object is gone; its index is kept for a minute, in case its daemon lives");
        look_again(j, left_s);
}

static void judge_member(struct formation_member *m, const struct formation_node *n, struct judging *j) {
        struct arena *a = j->a;
        m->ip = pod_ip(n);
        m->foreign = n->pod && !n->pod->template_hash;
        read_peers(m, n->pod);
        /* What is not written yet may come out differently when more nodes come before it is: nobody is told
         * of it. */
        m->listed = m->clique && (!*m->clique || m->written >= 0);
        if (!n->wanted && n->pod && n->pod->o.meta.deleted)
                judge(m, FORMATION_LEAVING, "its daemon is ending");
        else if (!n->pod && n->held_by)
                judge(m, FORMATION_HELD,
                      formation_text(a, "the node is held by %.300s until its last pod there is gone",
                                     n->held_by));
        else if (!n->node)
                judge_gone(m, n, j);
        else if (!node_ready(n->node))
                judge(m, FORMATION_LOST, "the Node is not ready");
        else if (m->clique && *m->clique && m->index < 0 && !m->address_first)
                judge(m, FORMATION_FULL, "no index is left in its clique");
        else if (n->pod)
                judge_daemon(m, n, j);
        else if (!m->clique)
                judge(m, FORMATION_STARTING, "its ResourceSlice does not state a clique yet");
        else {
                judge(m, FORMATION_STARTING, "no daemon Pod yet");
                j->no_pod = true;
        }
        /* A node that another domain holds has no place here until that one is gone; one that leaves has been
         * told of. */
        if (m->why == FORMATION_HELD || m->why == FORMATION_LEAVING)
                m->listed = false;
}

/* Nothing can run there under the index that the node has: the operator vouches for it, or its Node has been
 * gone for long enough. */
static bool runs_nothing(const struct formation_input *in, const struct formation_node *n) {
        return n->node ? node_out_of_service(n->node) : !in->stale && gone_left_s(in, n) <= 0;
}

/* Everyone who belongs: wanted, or with an entry under which something may still run. Where a cache may miss
 * something, an entry is reason enough to stay. */
static size_t gather(const struct formation_input *in, struct formation_member *members,
                     const struct formation_node **ret_nodes, struct arena *a) {
        struct seats seats = sort_seats(in, a);
        size_t n = 0;
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct formation_node *node = &in->nodes[i];
                const char *entry_clique = find_seat(&seats, node);
                if (runs_nothing(in, node))
                        continue;
                const char *clique = clique_of(node, entry_clique);
                bool stays = (entry_clique && (node->pod || in->stale)) || (node->pod && clique && !*clique);
                bool comes = node->wanted && (node->node || entry_clique);
                if (!comes && !stays)
                        continue;
                members[n] = (struct formation_member){ .node = node->name,
                                                        .clique = clique,
                                                        .index = -1,
                                                        .written = -1,
                                                        .boot_id = node->node ? node_boot_id(node->node) : "",
                                                        .of_clique = FORMATION_NO_CLIQUE,
                                                        .wanted = node->wanted };
                ret_nodes[n++] = node;
        }
        return n;
}

static size_t parse_freed(const struct clique *old, struct arena *a, int64_t **ret) {
        struct str rest = str_from(
                           old ? jd_pair_get(old->annotations, old->n_annotations, CD_ANNOTATION_FREED)
                               : NULL),
                   part;
        size_t n = 0;
        *ret = arena_alloc(a, (rest.n + 1) * sizeof **ret);
        while (rest.n && str_next_field(&rest, ',', &part))
                if (str_to_i64(str_trim(part), &(*ret)[n]))
                        n++;
        return n;
}

static const char *render_freed(const int64_t *freed, size_t n, struct arena *a) {
        struct buf b = BUF_INIT(1 << 16);
        for (size_t i = 0; i < n; i++)
                buf_addf(&b, "%s%lld", i ? "," : "", (long long)freed[i]);
        const char *s = n && !b.failed ? arena_strdup(a, buf_str(&b)) : NULL;
        buf_done(&b);
        return s;
}

static bool wants_index(const struct formation_member *m, const struct formation_node *n,
                        const char *clique) {
        return streq(m->clique, clique) && (n->pod || !n->held_by);
}

/* The index that a node's daemon says it runs with in this clique, -1 for none. */
static int64_t running_index(const struct formation_node *n, const char *clique, int64_t max_nodes) {
        int64_t index;
        if (!n->pod || !streq(n->pod->clique_id, clique) || !str_to_i64(str_from(n->pod->index), &index))
                return -1;
        return index < max_nodes ? index : -1;
}

static int64_t index_in(const struct clique *c, const char *node) {
        const struct clique_daemon *e = entry_in(c, node);
        return e ? e->index : -1;
}

/* The members of one clique, in the order of all. */
struct group {
        size_t *members; /* indices */
        size_t n;
};

/* The Go driver's daemons send SIGUSR1 at each change of an address, and nvidia-imex ignores the second
 * within five seconds: they have to see a node for the first time with its address, and no address go that
 * another one follows. */
static bool has_foreign(const struct formation_node *const *nodes, const struct group *g) {
        for (size_t i = 0; i < g->n; i++) {
                const struct pod *p = nodes[g->members[i]]->pod;
                if (p && !p->template_hash)
                        return true;
        }
        return false;
}

static void assign_indices(const struct formation_input *in, struct formation_member *members,
                           const struct formation_node *const *nodes, const struct group *g,
                           struct formation_clique *c, struct arena *a) {
        const struct clique *old = c->old;
        const bool foreign = has_foreign(nodes, g);
        size_t n_held = old ? old->n_daemons : 0, n = 0, n_new_freed, most = g->n + 1;
        struct rules_slot *held = arena_alloc(a, (n_held + most) * sizeof *held),
                          *slots = arena_alloc(a, most * sizeof *slots);
        const char **names = arena_alloc(a, most * sizeof *names);
        struct formation_member **of = arena_alloc(a, most * sizeof *of);
        const int64_t *new_freed;
        int64_t *freed;
        size_t n_freed = parse_freed(old, a, &freed);
        for (size_t i = 0; old && i < old->n_daemons; i++)
                held[i] = (struct rules_slot){ old->daemons[i].node, old->daemons[i].index };
        for (size_t i = 0; i < g->n; i++) {
                struct formation_member *m = &members[g->members[i]];
                const struct formation_node *node = nodes[g->members[i]];
                int64_t runs_with = running_index(node, c->clique_id, in->max_nodes);
                if (!wants_index(m, node, c->clique_id))
                        continue;
                m->address_first = foreign && !*pod_ip(node) && !entry_in(old, m->node);
                if (m->address_first)
                        continue;
                /* The entry is lost (somebody deleted the clique), but the daemon lives: it keeps the id that
                 * it has. */
                if (runs_with >= 0 && !entry_in(old, m->node))
                        held[n_held++] = (struct rules_slot){ m->node, runs_with };
                m->written = index_in(old, m->node);
                of[n] = m;
                names[n++] = m->node;
        }
        rules_indices(held, n_held, freed, n_freed, names, n, in->max_nodes, a, slots, &new_freed,
                      &n_new_freed);
        for (size_t i = 0; i < n; i++)
                of[i]->index = slots[i].index;
        c->freed = render_freed(new_freed, n_new_freed, a);
}

static int by_index(const void *x, const void *y) {
        const struct clique_daemon *a = x, *b = y;
        return a->index < b->index ? -1 : a->index > b->index;
}

static const char *annotation(const struct clique *c, const char *key) {
        return c ? jd_pair_get(c->annotations, c->n_annotations, key) : NULL;
}

/* Compares with what is there: first what a daemon waits for, then the rest. */
static void compare(const struct formation_input *in, struct formation_clique *c) {
        const struct clique *old = c->old;
        c->urgent = c->changed = false;
        for (size_t i = 0; i < c->n_daemons; i++) {
                const struct clique_daemon *d = &c->daemons[i], *was = entry_in(old, d->node);
                bool ip_differs = !was || !streq(str_or(was->ip, ""), d->ip);
                if (!was || was->index != d->index || (ip_differs && !in->dns_names))
                        c->urgent = true;
                if (ip_differs || !streq(was->status, d->status) || !streq(was->clique_id, d->clique_id))
                        c->changed = true;
                /* One that is missing comes with the next write: the server's schema may be one that drops
                 * it. */
                if (was && was->boot_id && !streq(was->boot_id, d->boot_id))
                        c->changed = true;
        }
        c->changed = c->changed || c->urgent || (old && (old->n_daemons != c->n_daemons || old->n_owners)) ||
                     (c->n_daemons && (!streq(annotation(old, CD_ANNOTATION_INFIX), c->infix) ||
                                       !streq(annotation(old, CD_ANNOTATION_NUM_NODES), c->num_nodes))) ||
                     (old && !streq(annotation(old, CD_ANNOTATION_FREED), c->freed));
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
static void choose_names(const struct formation_input *in, const struct formation_node *const *nodes,
                         const struct group *g, struct formation_clique *c) {
        bool anybody_runs = false;
        for (size_t i = 0; i < g->n; i++)
                anybody_runs = anybody_runs || nodes[g->members[i]]->pod;
        c->infix = annotation(c->old, CD_ANNOTATION_INFIX);
        if (c->infix)
                return;
        c->adopted =
                c->old && c->old->n_daemons ? true : anybody_runs && noted_as_adopted(in->cd, c->clique_id);
        if (!c->adopted)
                c->infix = in->infix;
}

static void render_entries(const struct formation_input *in, const struct formation_member *members,
                           const struct formation_node *const *nodes, const struct group *g,
                           struct formation_clique *c, struct arena *a) {
        const bool foreign = has_foreign(nodes, g);
        c->daemons = arena_alloc(a, (g->n + 1) * sizeof *c->daemons);
        for (size_t i = 0; i < g->n; i++) {
                const struct formation_member *m = &members[g->members[i]];
                if (m->index < 0)
                        continue;
                const struct clique_daemon *was = foreign && !*m->ip ? entry_in(c->old, m->node) : NULL;
                c->n_listed += m->listed;
                c->daemons[c->n_daemons++] =
                        (struct clique_daemon){ m->node,   was ? str_or(was->ip, "") : m->ip,
                                                m->clique, m->why == FORMATION_READY ? "Ready" : "NotReady",
                                                m->index,  m->boot_id };
        }
        qsort(c->daemons, c->n_daemons, sizeof *c->daemons, by_index);
        c->num_nodes = formation_text(a, "%lld", (long long)in->cd->num_nodes);
}

/* Where a clique is in the formation, by its id. */
struct place {
        UT_hash_handle hh;
        size_t at;
};

static size_t place_of(struct place *places, const char *id) {
        struct place *p;
        HASH_FIND_STR(places, id, p);
        return p ? p->at : FORMATION_NO_CLIQUE;
}

static void add_clique(struct formation *f, struct place **places, const char *id, const struct clique *old,
                       struct arena *a) {
        struct place *p = arena_alloc(a, sizeof *p);
        p->at = f->n_cliques;
        HASH_ADD_KEYPTR(hh, *places, id, strlen(id), p);
        f->cliques[f->n_cliques++] = (struct formation_clique){ .clique_id = id, .old = old };
}

static void find_cliques(const struct formation_input *in, const struct formation_node *const *nodes,
                         struct formation *f, struct arena *a) {
        struct place *places = NULL;
        for (size_t i = 0; i < in->n_cliques; i++) {
                const char *id = in->cliques[i]->clique_id;
                if (id && place_of(places, id) == FORMATION_NO_CLIQUE)
                        add_clique(f, &places, id, in->cliques[i], a);
        }
        for (size_t i = 0; i < f->n_members; i++) {
                struct formation_member *m = &f->members[i];
                if (!m->clique || !*m->clique)
                        continue;
                if (place_of(places, m->clique) == FORMATION_NO_CLIQUE && wants_index(m, nodes[i], m->clique))
                        add_clique(f, &places, m->clique, NULL, a);
                m->of_clique = place_of(places, m->clique);
        }
        HASH_CLEAR(hh, places);
}

static struct group *group_members(const struct formation *f, struct arena *a) {
        struct group *groups = arena_alloc(a, (f->n_cliques + 1) * sizeof *groups);
        size_t *list = arena_alloc(a, (f->n_members + 1) * sizeof *list);
        memset(groups, 0, (f->n_cliques + 1) * sizeof *groups);
        for (size_t i = 0; i < f->n_members; i++)
                if (f->members[i].of_clique != FORMATION_NO_CLIQUE)
                        groups[f->members[i].of_clique].n++;
        for (size_t i = 0; i < f->n_cliques; i++) {
                groups[i].members = list;
                list += groups[i].n;
                groups[i].n = 0;
        }
        for (size_t i = 0; i < f->n_members; i++) {
                size_t at = f->members[i].of_clique;
                if (at != FORMATION_NO_CLIQUE)
                        groups[at].members[groups[at].n++] = i;
        }
        return groups;
}

static const char *name_adopted(const struct formation_input *in, const struct formation *f,
                                struct arena *a) {
        struct buf b = BUF_INIT(64 << 10);
        for (size_t i = 0; i < f->n_cliques; i++)
                if (f->cliques[i].adopted)
                        buf_addf(&b, "%s%s%s", b.n ? "" : in->cd->o.meta.uid, b.n ? "," : ":",
                                 f->cliques[i].clique_id);
        const char *s = b.n && !b.failed ? arena_strdup(a, buf_str(&b)) : NULL;
        buf_done(&b);
        return s;
}

void formation_make(const struct formation_input *in, struct arena *a, struct formation *ret) {
        const struct formation_node **nodes = arena_alloc(a, (in->n_nodes + 1) * sizeof *nodes);
        struct judging j = { .in = in, .a = a, .now = in->now };
        *ret = (struct formation){
                .members = arena_alloc(a, (in->n_nodes + 1) * sizeof *ret->members),
                .cliques = arena_alloc(a, (in->n_nodes + in->n_cliques + 1) * sizeof *ret->cliques),
        };
        ret->n_members = gather(in, ret->members, nodes, a);
        find_cliques(in, nodes, ret, a);
        struct group *groups = group_members(ret, a);
        for (size_t i = 0; i < ret->n_cliques; i++)
                assign_indices(in, ret->members, nodes, &groups[i], &ret->cliques[i], a);
        for (size_t i = 0; i < ret->n_members; i++)
                judge_member(&ret->members[i], nodes[i], &j);
        ret->recheck_s = j.recheck_s;
        if (j.no_pod && in->daemonset)
                ret->hint = in->daemonset;
        for (size_t i = 0; i < ret->n_cliques; i++) {
                render_entries(in, ret->members, nodes, &groups[i], &ret->cliques[i], a);
                choose_names(in, nodes, &groups[i], &ret->cliques[i]);
                compare(in, &ret->cliques[i]);
        }
        ret->adopted = name_adopted(in, ret, a);
}
