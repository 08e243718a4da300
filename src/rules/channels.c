/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/channels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "rules/majority.h"
#include "rules/message.h"

enum { N_CONDITIONS = 7 };

struct work {
        const struct channels_facts *f;
        struct arena *a;
        struct channels_decision *d;
        struct fabric_channel *entries;
        size_t n;
        const struct channels_node **members;
        size_t n_members;
        bool lost;
        bool begins; /* the object has no table of its own yet */
};

static const struct channels_owner *owner_of(const struct work *w, const char *uid) {
        size_t low = 0, high = w->f->n_owners;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int c = strcmp(w->f->owners[mid].uid, uid);
                if (!c)
                        return &w->f->owners[mid];
                if (c < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}

static void recheck(struct work *w, int64_t s) {
        if (s < 1)
                s = 1;
        if (!w->d->recheck_s || s < w->d->recheck_s)
                w->d->recheck_s = s;
}

/* ---- what is taken ---- */

static bool has_entry(const struct work *w, int64_t id, const char *owner) {
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].id == id && streq(w->entries[i].owner.uid, owner))
                        return true;
        return false;
}

static struct fabric_channel *enter(struct work *w, int64_t id, const char *uid) {
        const struct channels_owner *o = owner_of(w, uid);
        struct fabric_channel *x = &w->entries[w->n++];
        *x = (struct fabric_channel){ id, { CD_KIND, o ? o->ns : NULL, o ? o->name : NULL, uid }, 0 };
        return x;
}

/* Another owner has this id, too: a report of before a node was off has come back with it. It stays taken as
 * long as it is reported, and is given to nobody's pods before the other one has let go. */
static bool is_contested(const struct work *w, const struct fabric_channel *e) {
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].id == e->id && !streq(w->entries[i].owner.uid, e->owner.uid))
                        return true;
        return false;
}

static void enter_held(struct work *w, const struct report_hold *h, size_t equals) {
        if (!is_contested(w, enter(w, h->id, h->owner)))
                return;
        for (size_t i = equals; i < w->n; i++)
                if (w->entries[i].id == h->id)
                        w->entries[i].releasing = w->f->now;
}

/* Of two that have an id, the one is right that has told since the table is what it is, and of others the one
 * whose plugin runs: what the other has told is of before it was off. */
static int trust(const struct work *w, const struct channels_node *x) {
        const char *object = w->f->old ? w->f->old->o.meta.uid : "";
        return !x->settled ? 0 : streq(x->uid, object) ? 2 : 1;
}

/* What those nodes hold whose word is worth so much. Of two of them neither is right before the other. */
static void enter_all_held(struct work *w, int worth) {
        size_t equals = w->n;
        for (size_t i = 0; i < w->f->n_nodes; i++) {
                const struct channels_node *x = &w->f->nodes[i];
                for (size_t k = 0; !x->gone && trust(w, x) == worth && k < x->n_held; k++)
                        if (!has_entry(w, x->held[k].id, x->held[k].owner))
                                enter_held(w, &x->held[k], equals);
        }
}

/* Whatever is in the table, was in the one that somebody has deleted, or is held. What is in a copy was true
 * at another time: what is still true of it is held. */
static void gather(struct work *w) {
        const struct channels_facts *f = w->f;
        size_t n = f->n_remembered + f->n_owners;
        for (size_t i = 0; i < f->n_nodes; i++)
                n += f->nodes[i].n_held;
        n += f->old ? f->old->n_channels : 0;
        w->entries = arena_alloc(w->a, (n + 1) * sizeof *w->entries);
        for (size_t i = 0; f->old && !w->begins && i < f->old->n_channels; i++)
                w->entries[w->n++] = f->old->channels[i];
        /* Another leader may have begun a table without them, and given their ids away. */
        for (size_t i = 0; (!f->old || w->begins) && i < f->n_remembered; i++)
                if (!has_entry(w, f->remembered[i].id, f->remembered[i].owner.uid))
                        w->entries[w->n++] = f->remembered[i];
        for (int worth = 2; worth >= 0; worth--)
                enter_all_held(w, worth);
}

/* ---- whose nodes they are ---- */

static bool was_member(const struct work *w, const char *name) {
        return w->f->old && has_string((const char *const *)w->f->old->members, w->f->old->n_members, name);
}

/* A node whose slice is not there may have one of the fabric's channels all the same: kubelets delete the
 * slices of plugins that are down, and etcd may have been restored. It is in the fabric until it reports that
 * it holds nothing there, or is gone. */
static void find_members(struct work *w) {
        const struct channels_facts *f = w->f;
        w->members = arena_alloc(w->a, (f->n_nodes + 1) * sizeof *w->members);
        for (size_t i = 0; i < f->n_nodes; i++) {
                const struct channels_node *x = &f->nodes[i];
                bool was = was_member(w, x->name) || (f->old && x->marked),
                     left = x->moved && x->reported && x->settled;
                bool is = !x->gone && (x->states || x->n_held || (was && !left));
                if (is || (was && f->stale))
                        w->members[w->n_members++] = x;
                w->d->hold = w->d->hold || (!is && was && f->stale);
        }
}

/* ---- conditions ---- */

static void add_condition(struct work *w, const char *type, const char *reason, const char *message) {
        struct compute_domain_fabric *g = &w->d->fabric;
        const struct condition *was =
                w->f->old ? condition_find(w->f->old->conditions, w->f->old->n_conditions, type) : NULL;
        g->conditions[g->n_conditions++] =
                (struct condition){ type, "True", reason, message,
                                    was && streq(was->status, "True") ? was->since : w->f->now };
}

/* ---- a table that may have been lost ---- */

/* Its plugin was here long before the object, so there may have been another one. */
static bool is_older(const struct channels_node *x, const struct compute_domain_fabric *old) {
        return x->states && x->stated && old->o.meta.created - x->stated > CHANNELS_NEW_S;
}

/* And the node was cut off before that was deleted: what it holds nobody tells. */
static bool may_know_another(const struct channels_node *x, const struct compute_domain_fabric *old) {
        return !x->gone && !x->reported && is_older(x, old);
}

/* The object has no table of its own yet. */
static bool table_begins(const struct channels_facts *f) {
        return f->old && !streq(f->old->table_of, f->old->o.meta.uid);
}

static bool is_lost(const struct compute_domain_fabric *f) {
        return condition_true(f->conditions, f->n_conditions, FABRIC_TABLE_LOST);
}

int64_t channels_untold_s(const struct channels_facts *f) {
        int64_t left = f->old ? f->known_since + CHANNELS_QUARANTINE_S - f->now : 0;
        int64_t untold = table_begins(f) || (f->old && is_lost(f->old)) ? f->vanished_s : 0;
        for (size_t i = 0; left > untold && !f->remembers && i < f->n_nodes; i++)
                if (is_older(&f->nodes[i], f->old))
                        untold = left;
        return untold;
}

static void find_loss(struct work *w) {
        const struct compute_domain_fabric *old = w->f->old;
        struct message_list waits = { 0 };
        if (!old)
                return;
        w->d->fabric.table_of = old->o.meta.uid;
        /* While it is said to be lost, nothing that vanishes takes that back. */
        bool signs = is_lost(old) || (w->begins && old->table_of);
        /* Plugins that report to the new table before anybody looks take their signs away. */
        int64_t untold_s = channels_untold_s(w->f);
        signs = signs || (w->begins && untold_s);
        for (size_t i = 0; w->begins && i < w->f->n_owners; i++)
                signs = signs || (w->f->owners[i].oldest && w->f->owners[i].oldest < old->o.meta.created);
        for (size_t i = 0; i < w->f->n_nodes; i++) {
                const char *sees = w->f->nodes[i].uid;
                signs = signs || (sees && *sees && !streq(sees, old->o.meta.uid));
                signs = signs || (w->begins && may_know_another(&w->f->nodes[i], old));
        }
        if (!signs)
                return;
        for (size_t i = 0; i < w->n_members; i++)
                if (!w->members[i]->gone && !streq(w->members[i]->uid, old->o.meta.uid))
                        message_add(&waits, "%s", w->members[i]->name);
        bool any = waits.n;
        const char *silent = message_end(&waits, w->a);
        if (untold_s)
                recheck(w, untold_s);
        w->lost = any || untold_s || w->f->stale;
        w->d->hold = w->d->hold || (w->f->stale && !any);
        if (!w->lost)
                return;
        add_condition(
                w, FABRIC_TABLE_LOST, REASON_NOT_ALL_REPORTED,
                any ? message_of(w->a,
                                 "The table of channels may have been lost or restored, so no ComputeDomain "
                                 "gets a new channel until each Node has reported which it holds. Still to "
                                 "report: %s. Check the kubelet plugin there; delete a Node that is off for "
                                 "good, or taint it node.kubernetes.io/out-of-service",
                                 silent)
                : untold_s
                        ? "The table of channels is new or restored, and containers may still run on Nodes "
                          "that were "
                          "deleted. No ComputeDomain gets a new channel until they have ended, which "
                          "takes at most a minute"
                        : "The table of channels may have been lost or restored, and the controller's "
                          "caches may be stale. No ComputeDomain gets a new channel until they are current");
}

/* ---- what is given back ---- */

/* By our clock: another controller may have marked it. What this decision marks, or another table had, begins
 * now. */
static int64_t released_since(const struct work *w, const struct fabric_channel *e) {
        for (size_t i = 0; w->f->old && i < w->f->old->n_channels; i++) {
                const struct fabric_channel *x = &w->f->old->channels[i];
                if (x->id == e->id && x->releasing == e->releasing && streq(x->owner.uid, e->owner.uid))
                        return w->f->releasing_since[i];
        }
        return w->f->now;
}

static bool holds(const struct channels_node *x, const struct fabric_channel *e) {
        for (size_t i = 0; i < x->n_held; i++)
                if (x->held[i].id == e->id && streq(x->held[i].owner, e->owner.uid))
                        return true;
        return false;
}

enum keeps { KEEPS_NOT, KEEPS_HOLDS, KEEPS_SILENT, KEEPS_LIFELESS };

/* `since`: when the entry began to be released, by our clock. */
static enum keeps keeps(const struct channels_node *x, const struct fabric_channel *e, int64_t since) {
        if (x->gone)
                return KEEPS_NOT;
        if (holds(x, e))
                return KEEPS_HOLDS;
        if (!x->reported || !x->settled)
                return KEEPS_SILENT;
        return x->alive_after > since + CHANNELS_LIFE_S ? KEEPS_NOT : KEEPS_LIFELESS;
}

/* A node shows life if its Lease was renewed between two lists that both began after the release. */
static bool leases_are_asked(const struct work *w, int64_t since) {
        return w->f->leases_before > since + CHANNELS_LIFE_S;
}

/* True: no node can hold it any more. */
static bool let_go(struct work *w, const struct fabric_channel *e, int64_t since, struct message_list *h) {
        static const char *const why[] = { [KEEPS_HOLDS] = "holds it",
                                           [KEEPS_SILENT] = "has no plugin that runs well and reports",
                                           [KEEPS_LIFELESS] =
                                                   "has shown no life since it was to be given back" };
        bool free = true, asked = leases_are_asked(w, since);
        for (size_t i = 0; i < w->n_members; i++) {
                const struct channels_node *x = w->members[i];
                enum keeps k = keeps(x, e, since);
                if (k == KEEPS_NOT)
                        continue;
                free = false;
                if (k == KEEPS_LIFELESS &&
                    (!asked || (x->is_ready && w->f->now - w->f->leases_at >= CHANNELS_RETRY_S)))
                        w->d->ask_leases = true;
                else if (k == KEEPS_LIFELESS && x->is_ready)
                        recheck(w, CHANNELS_RETRY_S);
                if (k == KEEPS_SILENT && x->reported)
                        recheck(w, CHANNELS_SETTLED_S);
                if (k != KEEPS_LIFELESS || asked)
                        message_add(h, "channel %" PRId64 " of ComputeDomain %s%s%s: node %s %s", e->id,
                                    str_or(e->owner.ns, ""), e->owner.ns ? "/" : "",
                                    str_or(e->owner.name, e->owner.uid), x->name, why[k]);
                if (k == KEEPS_HOLDS)
                        break;
        }
        return free;
}

static bool is_assigned_by_rule(const struct fabric_channel *e) {
        return !e->owner.kind || streq(e->owner.kind, CD_KIND);
}

/* Whether the entry goes. An id that another owner has, too, is of no use to this one, whatever he claims:
 * he gets another, and it only has to be sure that no node holds it for him. */
static bool is_free(struct work *w, const struct fabric_channel *e, struct message_list *h) {
        const struct channels_owner *o = owner_of(w, e->owner.uid);
        int64_t since = released_since(w, e), left = since + CHANNELS_QUARANTINE_S - w->f->now;
        bool contested = is_contested(w, e);
        if (!o || (o->claimed && !contested) || w->lost)
                return false;
        if (left > 0) {
                int64_t left_life = since + CHANNELS_LIFE_S + 1 - w->f->now;
                recheck(w, left_life > 0 ? left_life : left);
                w->d->ask_leases = w->d->ask_leases || (left_life <= 0 && !leases_are_asked(w, since));
                return false;
        }
        if (!let_go(w, e, since, h))
                return false;
        if (w->f->stale) {
                w->d->hold = true;
                return false;
        }
        if (!o->confirmed && !contested)
                w->d->ask[w->d->n_ask++] = o;
        return o->confirmed || contested;
}

/* Whose owner has gone; and takes back whose owner came back. */
static void mark(struct work *w) {
        for (size_t i = 0; i < w->n; i++) {
                struct fabric_channel *e = &w->entries[i];
                const struct channels_owner *o = owner_of(w, e->owner.uid);
                if (!is_assigned_by_rule(e))
                        continue;
                if (o && o->lives && o->claimed && e->releasing && !is_contested(w, e)) {
                        e->releasing = 0;
                        w->d->urgent = true;
                } else if (!e->releasing && (!o || !o->lives)) {
                        if ((o && o->ends) || !w->f->stale)
                                e->releasing = w->f->now;
                        else
                                w->d->hold = true;
                }
        }
}

/* ---- what is given ---- */

static bool is_taken(const struct work *w, int64_t id) {
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].id == id)
                        return true;
        return false;
}

static int by_age(const void *x, const void *y) {
        const struct channels_owner *a = *(const struct channels_owner *const *)x,
                                    *b = *(const struct channels_owner *const *)y;
        return a->oldest < b->oldest ? -1 : a->oldest > b->oldest ? 1 : strcmp(a->uid, b->uid);
}

/* One namespace has at most half of what the others leave free, so that nobody can take a rack from all. */
static bool is_modest(const struct work *w, const char *ns, int64_t ids) {
        int64_t own = 0, others = 0;
        for (size_t i = 0; i < w->n; i++) {
                bool is = ns && streq(w->entries[i].owner.ns, ns);
                own += is;
                others += !is;
        }
        return own < (ids - others + 1) / 2;
}

/* Of living owners that need none now, as many as are waited for, those first that were given first. `ns`:
 * only of that namespace. */
static void reclaim(struct work *w, size_t wanted, const char *ns) {
        int64_t next = w->d->fabric.next;
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].releasing && wanted && (!ns || streq(w->entries[i].owner.ns, ns)))
                        wanted--;
        w->d->hold = w->d->hold || (wanted && w->f->stale);
        while (wanted && !w->f->stale) {
                struct fabric_channel *oldest = NULL;
                for (size_t i = 0; i < w->n; i++) {
                        struct fabric_channel *e = &w->entries[i];
                        const struct channels_owner *o = owner_of(w, e->owner.uid);
                        if (e->releasing || !is_assigned_by_rule(e) || !o || o->claimed ||
                            (ns && !streq(e->owner.ns, ns)))
                                continue;
                        bool held = false;
                        for (size_t k = 0; k < w->n_members; k++)
                                held = held || holds(w->members[k], e);
                        /* In the order of the ring, from `next` on. */
                        if (!held && (!oldest || (e->id < next) < (oldest->id < next) ||
                                      ((e->id < next) == (oldest->id < next) && e->id < oldest->id)))
                                oldest = e;
                }
                if (!oldest)
                        return;
                oldest->releasing = w->f->now;
                recheck(w, CHANNELS_QUARANTINE_S);
                wanted--;
        }
}

/* For those whose namespace has its half: in each of these namespaces as many as wait there. */
static void reclaim_of_each(struct work *w, const struct channels_owner *const *waiting, size_t n) {
        for (size_t i = 0; i < n; i++) {
                size_t first = n, wanted = 0;
                for (size_t k = n; k-- > 0;)
                        if (streq(waiting[k]->ns, waiting[i]->ns)) {
                                first = k;
                                wanted++;
                        }
                if (first == i)
                        reclaim(w, wanted, waiting[i]->ns);
        }
}

static bool is_count_told(const struct work *w) {
        bool told = w->d->fabric.channel_count > 0;
        for (size_t i = 0; i < w->n_members; i++)
                told = told || w->members[i]->count >= 0;
        return told;
}

static void assign(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        const struct channels_owner **wants = arena_alloc(w->a, (w->f->n_owners + 1) * sizeof *wants);
        const struct channels_owner **greedy = arena_alloc(w->a, (w->f->n_owners + 1) * sizeof *greedy);
        size_t n = 0, n_full = 0, n_greedy = 0;
        int64_t end = g->channel_count < FABRIC_CHANNELS_MOST ? g->channel_count : FABRIC_CHANNELS_MOST;
        for (size_t i = 0; i < w->f->n_owners; i++) {
                const struct channels_owner *o = &w->f->owners[i];
                bool has = false;
                for (size_t k = 0; k < w->n; k++)
                        has = has || (streq(w->entries[k].owner.uid, o->uid) &&
                                      !(w->entries[k].releasing && is_contested(w, &w->entries[k])));
                if (o->lives && o->wants && !has)
                        wants[n++] = o;
        }
        w->d->waiting = n;
        /* The object comes first: a claim that is older than it might have had a channel by another one. */
        if (!n || w->lost || !w->f->old)
                return;
        if (end < 2) {
                bool told = is_count_told(w);
                add_condition(w, FABRIC_CHANNELS_EXHAUSTED, told ? REASON_NO_CHANNELS : REASON_COUNT_UNKNOWN,
                              told ? "The driver of most nodes has no IMEX channels but channel 0, which "
                                     "belongs to no ComputeDomain: set NVreg_ImexChannelCount on all nodes"
                                   : "No kubelet plugin has told yet how many IMEX channels its node has");
                return;
        }
        qsort(wants, n, sizeof *wants, by_age);
        if (g->next < 1 || g->next >= end)
                g->next = 1;
        for (size_t i = 0; i < n; i++) {
                int64_t tried = 0, id = g->next;
                for (; tried < end - 1 && is_taken(w, id); tried++)
                        id = id + 1 < end ? id + 1 : 1;
                if (tried == end - 1) {
                        n_full = n - i;
                        break;
                }
                if (!is_modest(w, wants[i]->ns, end - 1)) {
                        greedy[n_greedy++] = wants[i];
                        continue;
                }
                w->d->assigned[w->d->n_assigned++] = *enter(w, id, wants[i]->uid);
                g->next = id + 1 < end ? id + 1 : 1;
        }
        w->d->waiting = n_full + n_greedy;
        w->d->urgent = w->d->urgent || w->d->n_assigned;
        if (n_full) {
                reclaim(w, n_full, NULL);
                add_condition(w, FABRIC_CHANNELS_EXHAUSTED, REASON_NONE_FREE,
                              message_of(w->a,
                                         "All %" PRId64
                                         " channels of this fabric are taken, and %zu ComputeDomains "
                                         "wait for one: delete ComputeDomains that nobody needs, or raise "
                                         "NVreg_ImexChannelCount on all nodes",
                                         end - 1, n_full));
        } else if (n_greedy) {
                reclaim_of_each(w, greedy, n_greedy);
                /* The ComputeDomains that wait repeat it, and no tenant is to read of another one. */
                add_condition(w, FABRIC_CHANNELS_EXHAUSTED, REASON_NAMESPACE_HAS_HALF,
                              message_of(w->a,
                                         "%zu ComputeDomains wait because their namespace has half of the "
                                         "channels that others leave free: delete ComputeDomains there that "
                                         "nobody needs",
                                         n_greedy));
        }
}

/* ---- what it comes to ---- */

static void tell_differing(struct work *w, const struct majority *m) {
        struct majority_words told;
        if (majority_differ(m, w->a, &told))
                add_condition(w, FABRIC_NODES_DIFFER, told.reason, told.message);
        if (majority_withhold(m, w->a, &told))
                add_condition(w, FABRIC_NODES_WITHHOLD, told.reason, told.message);
}

static int by_id(const void *x, const void *y) {
        const struct fabric_channel *a = x, *b = y;
        return a->id < b->id ? -1 : a->id > b->id ? 1 : strcmp(a->owner.uid, b->owner.uid);
}

static size_t count_owners(const struct work *w) {
        size_t n = 0;
        for (size_t i = 0; i < w->n; i++) {
                bool first = true;
                for (size_t k = 0; k < i; k++)
                        first = first && !streq(w->entries[k].owner.uid, w->entries[i].owner.uid);
                n += first;
        }
        return n;
}

static bool same_channels(const struct compute_domain_fabric *x, const struct compute_domain_fabric *y) {
        bool same = x->n_channels == y->n_channels;
        for (size_t i = 0; same && i < x->n_channels; i++) {
                const struct fabric_channel *a = &x->channels[i], *b = &y->channels[i];
                same = a->id == b->id && a->releasing == b->releasing && streq(a->owner.uid, b->owner.uid) &&
                       streq(a->owner.ns, b->owner.ns) && streq(a->owner.name, b->owner.name);
        }
        return same;
}

static bool same_conditions(const struct compute_domain_fabric *x, const struct compute_domain_fabric *y) {
        bool same = x->n_conditions == y->n_conditions;
        for (size_t i = 0; same && i < x->n_conditions; i++) {
                const struct condition *a = &x->conditions[i], *b = &y->conditions[i];
                same = streq(a->type, b->type) && streq(a->status, b->status) &&
                       streq(a->reason, b->reason) && streq(a->message, b->message);
        }
        return same;
}

static bool same_members(const struct compute_domain_fabric *x, const struct compute_domain_fabric *y) {
        bool same = x->n_members == y->n_members;
        for (size_t i = 0; same && i < x->n_members; i++)
                same = streq(x->members[i], y->members[i]);
        return same;
}

static bool same(const struct compute_domain_fabric *x, const struct compute_domain_fabric *y) {
        return streq(x->rack, y->rack) && streq(x->empty_since, y->empty_since) &&
               streq(x->table_of, y->table_of) && x->nodes == y->nodes &&
               x->domain_count == y->domain_count && x->channels_in_use == y->channels_in_use &&
               x->channel_count == y->channel_count && streq(x->imex_version, y->imex_version) &&
               x->next == y->next && same_members(x, y) && same_conditions(x, y) && same_channels(x, y);
}

static void note_members(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        g->members = arena_alloc(w->a, (w->n_members + 1) * sizeof *g->members);
        for (size_t i = 0; i < w->n_members; i++)
                g->members[g->n_members++] = w->members[i]->name;
        g->nodes = (int64_t)g->n_members;
}

/* Without Node, entry or holder, for how long? True: for a day. */
static bool is_over(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        int64_t since = 0, now = w->f->now;
        if (!w->f->old || w->n_members || w->n || g->n_domains)
                return false;
        /* What is no time, or one of the future, is a clock's mistake or a person's: the day begins now. */
        const char *told = w->f->old->empty_since;
        if (told && jd_time(told, &since) && since > 0 && since <= now) {
                g->empty_since = told;
        } else {
                struct buf b = BUF_INIT(64);
                struct jw t = JW(&b);
                jw_time(&t, NULL, now);
                since = now;
                g->empty_since = arena_strndup(w->a, buf_str(&b) + 1, b.n - 2); /* without its quotes */
                buf_done(&b);
        }
        recheck(w, since + CHANNELS_EMPTY_S - now);
        if (now - since >= CHANNELS_EMPTY_S && w->f->stale)
                w->d->hold = true;
        return now - since >= CHANNELS_EMPTY_S && !w->f->stale;
}

/* The IMEX domains of the partition. */
static void take_assignments(struct work *w) {
        const struct assignment *r = w->f->assignments;
        struct compute_domain_fabric *g = &w->d->fabric;
        if (!r)
                return;
        g->domains = r->domains;
        g->n_domains = r->n_domains;
        g->removals = r->removals;
        g->n_removals = r->n_removals;
        g->epoch = r->epoch;
        g->recount = r->recount;
        for (size_t i = 0; i < r->n_domains; i++)
                g->domain_count += !fabric_domain_stands(&r->domains[i]);
        w->d->urgent = w->d->urgent || r->changed;
        if (w->f->recount_why)
                add_condition(w, FABRIC_ASSIGNMENTS_LOST, REASON_NOT_ALL_REPORTED, w->f->recount_why);
        if (w->f->full_why)
                add_condition(w, FABRIC_DOMAIN_FULL, REASON_NO_INDEX_LEFT, w->f->full_why);
        if (r->n_refused)
                add_condition(
                        w, FABRIC_DOMAINS_EXHAUSTED, REASON_TOO_MANY_DOMAINS,
                        message_of(w->a,
                                   "%d ComputeDomains have nodes of this partition, which is as many as "
                                   "its object has room for, and %zu wait: delete ComputeDomains or "
                                   "pods that nobody needs",
                                   ASSIGNMENT_DOMAINS_MAX, r->n_refused));
}

void channels_decide(const struct channels_facts *f, struct arena *a, struct channels_decision *ret) {
        struct work w = { .f = f, .a = a, .d = ret };
        struct message_list held = { .between = "; " };
        struct majority m;
        *ret = (struct channels_decision){ 0 };
        struct compute_domain_fabric *g = &ret->fabric;
        if (f->old)
                *g = *f->old;
        w.begins = table_begins(f);
        g->o.meta.name = f->fabric;
        g->empty_since = NULL;
        g->n_members = g->n_conditions = 0;
        g->conditions = arena_alloc(a, N_CONDITIONS * sizeof *g->conditions);
        ret->ask = arena_alloc(a, (f->n_owners + 1) * sizeof *ret->ask);
        ret->assigned = arena_alloc(a, (f->n_owners + 1) * sizeof *ret->assigned);
        gather(&w);
        find_members(&w);
        note_members(&w);
        majority_find(w.members, w.n_members, f->old, &m);
        g->channel_count = m.channel_count;
        g->rack = m.rack;
        g->imex_version = m.imex_version;
        mark(&w);
        find_loss(&w);
        assign(&w); /* before anything is freed: what is freed now is given by a later write */
        size_t kept = 0;
        for (size_t i = 0; i < w.n; i++) {
                bool releasing = w.entries[i].releasing;
                if (releasing && is_free(&w, &w.entries[i], &held))
                        continue;
                ret->releasing += releasing;
                w.entries[kept++] = w.entries[i];
        }
        w.n = kept;
        bool is_held = held.n;
        const char *who = message_end(&held, a);
        if (is_held)
                add_condition(
                        &w, FABRIC_CHANNELS_HELD, REASON_NODES_HOLD_CHANNELS,
                        message_of(a,
                                   "Channels that nobody needs any more are given to nobody else: %s. A Node "
                                   "that is off for good can be deleted, or tainted "
                                   "node.kubernetes.io/out-of-service",
                                   who));
        tell_differing(&w, &m);
        if (w.n)
                qsort(w.entries, w.n, sizeof *w.entries, by_id);
        g->channels = w.entries;
        g->n_channels = w.n;
        g->channels_in_use = (int64_t)w.n;
        g->domain_count = (int64_t)count_owners(&w);
        take_assignments(&w);
        if (!f->old)
                ret->step = w.n_members || w.n ? CHANNELS_CREATE : CHANNELS_KEEP;
        else if (is_over(&w))
                ret->step = CHANNELS_DELETE;
        else if (!same(g, f->old) || (f->assignments && f->assignments->changed))
                ret->step = CHANNELS_PATCH;
        ret->urgent = ret->urgent || !f->old;
}
