/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/channels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/stderr.h"
#include "rules/majority.h"
#include "rules/message.h"
#include "rules/sorted.h"

enum { N_CONDITIONS = 8 };

struct work {
        const struct channels_facts *f;
        struct arena *a;
        struct channels_decision *d;
        struct fabric_channel *entries;
        size_t n;
        const struct channels_node **members;
        size_t n_members;
        bool lost;
        bool begins; /* the object has no table yet */
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

static void channels_recheck(struct work *w, int64_t s) {
        if (s < 1)
                s = 1;
        if (!w->d->recheck_s || s < w->d->recheck_s)
                w->d->recheck_s = s;
}

/* ---- taken IDs ---- */

static const struct fabric_channel *find_entry(const struct fabric_channel *list, size_t n, int64_t id,
                                               const char *owner) {
        for (size_t i = 0; i < n; i++)
                if (list[i].id == id && streq(list[i].owner.uid, owner))
                        return &list[i];
        return NULL;
}

static struct fabric_channel *channels_enter(struct work *w, int64_t id, const char *uid) {
        const struct channels_owner *o = owner_of(w, uid);
        struct fabric_channel *x = &w->entries[w->n++];
        *x = (struct fabric_channel){ id, { CD_KIND, o ? o->ns : NULL, o ? o->name : NULL, uid }, 0 };
        return x;
}

/* Another owner has this ID, too, because an old report has returned with a node that was off. The ID stays
 * taken as long as it is reported. No pod gets it before the other owner has released it. */
static bool is_contested(const struct work *w, const struct fabric_channel *e) {
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].id == e->id && !streq(w->entries[i].owner.uid, e->owner.uid))
                        return true;
        return false;
}

static void enter_held(struct work *w, const struct channel_report_hold *h, size_t equals) {
        if (!is_contested(w, channels_enter(w, h->id, h->owner)))
                return;
        for (size_t i = equals; i < w->n; i++)
                if (w->entries[i].id == h->id)
                        w->entries[i].releasing = w->f->now;
}

/* If two owners have the same ID, the report that was made for the present table counts most, and then the
 * report of a running plugin. Other reports are from before the node was off. */
static int trust(const struct work *w, const struct channels_node *x) {
        const char *object = w->f->old ? w->f->old->o.meta.uid : "";
        return !x->settled ? 0 : streq(x->uid, object) ? 2 : 1;
}

/* No ComputeDomain ever gets another ID, so only a false report has one. */
static bool is_assignable(int64_t id) {
        return id >= 1 && id < FABRIC_CHANNELS_MAX;
}

/* Enters the channels that nodes with this trust hold. Two of these nodes have equal rights. */
static void enter_all_held(struct work *w, int level) {
        size_t equals = w->n;
        for (size_t i = 0; i < w->f->n_nodes; i++) {
                const struct channels_node *x = &w->f->nodes[i];
                for (size_t k = 0; !x->gone && trust(w, x) == level && k < x->n_held; k++)
                        if (is_assignable(x->held[k].id) &&
                            !find_entry(w->entries, w->n, x->held[k].id, x->held[k].owner))
                                enter_held(w, &x->held[k], equals);
        }
}

/* Collects all entries: of the table, of a table that somebody has deleted, and of held channels. The entries
 * of a copy may be out of date: those that still apply are held. */
static void channels_gather(struct work *w) {
        const struct channels_facts *f = w->f;
        size_t n = f->n_remembered + f->n_owners;
        for (size_t i = 0; i < f->n_nodes; i++)
                n += f->nodes[i].n_held;
        n += f->old ? f->old->n_channels : 0;
        w->entries = arena_alloc(w->a, (n + 1) * sizeof *w->entries);
        for (size_t i = 0; f->old && !w->begins && i < f->old->n_channels; i++)
                w->entries[w->n++] = f->old->channels[i];
        /* Not if the object has a table: another leader may have begun it without these entries, and assigned
         * their IDs to others. */
        for (size_t i = 0; (!f->old || w->begins) && i < f->n_remembered; i++)
                if (!find_entry(w->entries, w->n, f->remembered[i].id, f->remembered[i].owner.uid))
                        w->entries[w->n++] = f->remembered[i];
        for (int level = 2; level >= 0; level--)
                enter_all_held(w, level);
}

/* ---- the nodes of the partition ---- */

static bool was_member(const struct work *w, const char *name) {
        return w->f->old && has_string((const char *const *)w->f->old->members, w->f->old->n_members, name);
}

/* A node without a ResourceSlice may still have one of the partition's channels: kubelets delete the slices
 * of plugins that do not run, and etcd may have been restored. The node belongs to the partition until it
 * reports that it holds nothing there, or is gone. */
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
                w->d->pause = w->d->pause || (!is && was && f->stale);
        }
}

/* ---- conditions ---- */

static void add_condition(struct work *w, const char *type, const char *reason, const char *message) {
        struct compute_domain_fabric *g = &w->d->fabric;
        BUG_ON(g->n_conditions == N_CONDITIONS);
        const struct condition *was =
                w->f->old ? condition_find(w->f->old->conditions, w->f->old->n_conditions, type) : NULL;
        g->conditions[g->n_conditions++] =
                (struct condition){ type, condition_status_name(STATUS_TRUE), reason, message,
                                    was && condition_status_decode(was->status) == STATUS_TRUE ? was->since
                                                                                               : w->f->now };
}

/* ---- a table that may have been lost ---- */

/* Its plugin ran long before the object was created, so there may have been an earlier object. */
static bool is_older(const struct channels_node *x, const struct compute_domain_fabric *old) {
        return x->states && x->stated && old->o.meta.created - x->stated > CHANNELS_NEW_S;
}

/* And the node may have been cut off before that object was deleted, so no report shows what it holds. */
static bool may_know_another(const struct channels_node *x, const struct compute_domain_fabric *old) {
        return !x->gone && !x->reported && is_older(x, old);
}

static bool table_begins(const struct channels_facts *f) {
        return f->old && !streq(f->old->table_of, f->old->o.meta.uid);
}

static bool is_lost(const struct compute_domain_fabric *f) {
        return condition_true(f->conditions, f->n_conditions, FABRIC_CHANNELS_INCOMPLETE);
}

static bool table_is_new(const struct channels_facts *f) {
        return table_begins(f) || (f->old && is_lost(f->old));
}

static int64_t longer(int64_t a, int64_t b) {
        return a > b ? a : b;
}

/* Once found, it lasts: the plugin's Pod may be replaced. */
int64_t channels_older_s(const struct channels_facts *f) {
        int64_t left = f->old ? f->complete_since + CHANNELS_QUARANTINE_S - f->now : 0;
        bool older = f->was_older;
        if (left <= 0 || f->remembers)
                return 0;
        for (size_t i = 0; !older && i < f->n_nodes; i++)
                older = is_older(&f->nodes[i], f->old);
        return older ? left : 0;
}

int64_t channels_unlisted_s(const struct channels_facts *f) {
        return table_is_new(f) ? channels_older_s(f) : 0;
}

int64_t channels_unreported_s(const struct channels_facts *f) {
        return longer(table_is_new(f) ? f->vanished_s : 0, channels_older_s(f));
}

/* Another controller may have seen the restore. */
static int64_t restored_s(const struct channels_facts *f) {
        const struct condition *c =
                condition_find(f->old->conditions, f->old->n_conditions, FABRIC_CHANNELS_INCOMPLETE);
        bool marked = is_lost(f->old) && streq(c->reason, REASON_TABLE_RESTORED);
        return longer(f->restored_s, marked ? f->complete_since + CHANNELS_RESTORED_S - f->now : 0);
}

static void find_loss(struct work *w) {
        const struct compute_domain_fabric *old = w->f->old;
        struct message_list waits = { 0 };
        if (!old)
                return;
        w->d->fabric.table_of = old->o.meta.uid;
        /* While the condition reports that the table is lost, signs that disappear do not end it. */
        bool signs = is_lost(old) || (w->begins && old->table_of);
        /* Plugins may report to the new table before the controller sees their signs. */
        int64_t restored = restored_s(w->f), wait_s = longer(channels_unreported_s(w->f), restored);
        signs = signs || (w->begins && wait_s) || restored;
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
        if (wait_s)
                channels_recheck(w, wait_s);
        w->lost = any || wait_s || w->f->stale;
        w->d->pause = w->d->pause || (w->f->stale && !any);
        if (!w->lost)
                return;
        add_condition(
                w, FABRIC_CHANNELS_INCOMPLETE, restored ? REASON_TABLE_RESTORED : REASON_NOT_ALL_REPORTED,
                any ? message_of(
                              w->a,
                              "The table of channels may have been lost or restored. No ComputeDomain gets a "
                              "new channel until each Node has reported the channels that it holds. Still to "
                              "report: %s. Check the kubelet plugin there. If a Node is off permanently, "
                              "delete it, or taint it with node.kubernetes.io/out-of-service",
                              silent)
                : restored
                        ? "The table of channels was restored. No ComputeDomain gets a new channel until all "
                          "kubelet plugins have noticed it and reported their channels again, which takes at "
                          "most three minutes"
                : wait_s
                        ? "The table of channels is new or restored, and containers may still run on deleted "
                          "Nodes. No ComputeDomain gets a new channel until they have ended, which takes at "
                          "most a minute"
                        : "The table of channels may have been lost or restored, and the controller's "
                          "caches may be stale. No ComputeDomain gets a new channel until they are current");
}

/* ---- channels that are released ---- */

/* When the release of the entry began, by this controller's clock, because another controller may have marked
 * it. For an entry that this decision marks, or that comes from another table, it begins now. */
static int64_t released_since(const struct work *w, const struct fabric_channel *e) {
        for (size_t i = 0; w->f->old && i < w->f->old->n_channels; i++) {
                const struct fabric_channel *x = &w->f->old->channels[i];
                if (x->id == e->id && x->releasing == e->releasing && streq(x->owner.uid, e->owner.uid))
                        return w->f->releasing_since[i];
        }
        return w->f->now;
}

static bool channels_holds(const struct channels_node *x, const struct fabric_channel *e) {
        for (size_t i = 0; i < x->n_held; i++)
                if (x->held[i].id == e->id && streq(x->held[i].owner, e->owner.uid))
                        return true;
        return false;
}

enum keeps { KEEPS_NOT, KEEPS_HOLDS, KEEPS_SILENT, KEEPS_LIFELESS };

/* `since`: when the release of the entry began, by this controller's clock. */
static enum keeps keeps(const struct channels_node *x, const struct fabric_channel *e, int64_t since) {
        if (x->gone)
                return KEEPS_NOT;
        if (channels_holds(x, e))
                return KEEPS_HOLDS;
        if (!x->reported || !x->settled)
                return KEEPS_SILENT;
        return x->alive_after > since + CHANNELS_LIFE_S ? KEEPS_NOT : KEEPS_LIFELESS;
}

static bool leases_are_asked(const struct work *w, int64_t since) {
        return w->f->leases_before > since + CHANNELS_LIFE_S;
}

/* True: no node can hold the channel any more. Otherwise `h` lists the nodes that may. */
static bool is_held_nowhere(struct work *w, const struct fabric_channel *e, int64_t since,
                            struct message_list *h) {
        static const char *const why[] = {
                [KEEPS_HOLDS] = "holds it",
                [KEEPS_SILENT] = "has no plugin that is Ready and reports",
                [KEEPS_LIFELESS] = "has not renewed its Lease since the channel was released"
        };
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
                        channels_recheck(w, CHANNELS_RETRY_S);
                if (k == KEEPS_SILENT && x->reported)
                        channels_recheck(w, CHANNELS_SETTLED_S);
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

/* Can the entry be removed? If another owner has the same ID, this owner cannot use it even if it has claims:
 * it gets another ID. Then it is only required that no node holds the ID for this owner. */
static bool is_free(struct work *w, const struct fabric_channel *e, struct message_list *h) {
        const struct channels_owner *o = owner_of(w, e->owner.uid);
        int64_t since = released_since(w, e), left = since + CHANNELS_QUARANTINE_S - w->f->now;
        bool contested = is_contested(w, e);
        if (!o || (o->claimed && !contested) || w->lost)
                return false;
        if (left > 0) {
                int64_t left_life = since + CHANNELS_LIFE_S + 1 - w->f->now;
                channels_recheck(w, left_life > 0 ? left_life : left);
                w->d->ask_leases = w->d->ask_leases || (left_life <= 0 && !leases_are_asked(w, since));
                return false;
        }
        if (!is_held_nowhere(w, e, since, h))
                return false;
        if (w->f->stale) {
                w->d->pause = true;
                return false;
        }
        if (!o->confirmed && !contested)
                w->d->ask[w->d->n_ask++] = o;
        return o->confirmed || contested;
}

/* Marks entries whose owner no longer exists as releasing, and withdraws the mark if the owner has claims
 * again. */
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
                                w->d->pause = true;
                }
        }
}

/* ---- channels that are assigned ---- */

static bool channels_is_taken(const struct work *w, int64_t id) {
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

/* A namespace may have at most half of the channels that the others leave free, so that no tenant can use up
 * all channels of a partition. */
static bool may_have_more(const struct work *w, const char *ns, int64_t ids) {
        int64_t own = 0, others = 0;
        for (size_t i = 0; i < w->n; i++) {
                bool is = ns && streq(w->entries[i].owner.ns, ns);
                own += is;
                others += !is;
        }
        return own < (ids - others + 1) / 2;
}

/* Begins to release as many entries as ComputeDomains wait for, of owners that live but need no channel now.
 * The channels that were assigned first are released first. `ns`: only of that namespace; NULL: of all. */
static void reclaim(struct work *w, size_t wanted, const char *ns) {
        int64_t next = w->d->fabric.next;
        for (size_t i = 0; i < w->n; i++)
                if (w->entries[i].releasing && wanted && (!ns || streq(w->entries[i].owner.ns, ns)))
                        wanted--;
        w->d->pause = w->d->pause || (wanted && w->f->stale);
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
                                held = held || channels_holds(w->members[k], e);
                        /* The order of assignment is a ring that begins at `next`. */
                        if (!held && (!oldest || (e->id < next) < (oldest->id < next) ||
                                      ((e->id < next) == (oldest->id < next) && e->id < oldest->id)))
                                oldest = e;
                }
                if (!oldest)
                        return;
                oldest->releasing = w->f->now;
                channels_recheck(w, CHANNELS_QUARANTINE_S);
                wanted--;
        }
}

/* For ComputeDomains whose namespace has its half of the channels: releases in each of these namespaces as
 * many entries as wait there. */
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

static bool is_count_reported(const struct work *w) {
        bool reported = w->d->fabric.channel_count > 0;
        for (size_t i = 0; i < w->n_members; i++)
                reported = reported || w->members[i]->count >= 0;
        return reported;
}

static void channels_assign(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        const struct channels_owner **wants = arena_alloc(w->a, (w->f->n_owners + 1) * sizeof *wants);
        const struct channels_owner **greedy = arena_alloc(w->a, (w->f->n_owners + 1) * sizeof *greedy);
        size_t n = 0, n_full = 0, n_greedy = 0;
        int64_t end = g->channel_count < FABRIC_CHANNELS_MAX ? g->channel_count : FABRIC_CHANNELS_MAX;
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
        /* The object must exist first: a claim that is older than the object might have had a channel from an
         * earlier object. */
        if (!n || w->lost || !w->f->old)
                return;
        if (end < 2) {
                bool reported = is_count_reported(w);
                add_condition(
                        w, FABRIC_CHANNELS_EXHAUSTED,
                        reported ? REASON_NO_CHANNELS : REASON_CHANNEL_COUNT_UNKNOWN,
                        reported ? "The driver of most nodes has only IMEX channel 0, which cannot be "
                                   "assigned. Set NVreg_ImexChannelCount on all nodes"
                                 : "No kubelet plugin has reported yet how many IMEX channels its node has");
                return;
        }
        qsort(wants, n, sizeof *wants, by_age);
        if (g->next < 1 || g->next >= end)
                g->next = 1;
        for (size_t i = 0; i < n; i++) {
                int64_t tried = 0, id = g->next;
                for (; tried < end - 1 && channels_is_taken(w, id); tried++)
                        id = id + 1 < end ? id + 1 : 1;
                if (tried == end - 1) {
                        n_full = n - i;
                        break;
                }
                if (!may_have_more(w, wants[i]->ns, end - 1)) {
                        greedy[n_greedy++] = wants[i];
                        continue;
                }
                w->d->assigned[w->d->n_assigned++] = *channels_enter(w, id, wants[i]->uid);
                g->next = id + 1 < end ? id + 1 : 1;
        }
        w->d->waiting = n_full + n_greedy;
        w->d->urgent = w->d->urgent || w->d->n_assigned;
        if (n_full) {
                reclaim(w, n_full, NULL);
                add_condition(w, FABRIC_CHANNELS_EXHAUSTED, REASON_ALL_CHANNELS_ASSIGNED,
                              message_of(w->a,
                                         "All %" PRId64
                                         " channels of this partition are assigned, and %zu %s for one. "
                                         "Delete ComputeDomains that are not needed, or raise "
                                         "NVreg_ImexChannelCount on all nodes",
                                         end - 1, n_full,
                                         n_full == 1 ? "ComputeDomain waits" : "ComputeDomains wait"));
        } else if (n_greedy) {
                reclaim_of_each(w, greedy, n_greedy);
                /* The waiting ComputeDomains repeat this message, and a tenant must not see the
                 * ComputeDomains of another one. */
                add_condition(
                        w, FABRIC_CHANNELS_EXHAUSTED, REASON_NAMESPACE_LIMIT_REACHED,
                        message_of(w->a,
                                   "%zu %s because their namespace has half of the channels "
                                   "that others leave free. Delete ComputeDomains there that are not needed",
                                   n_greedy, n_greedy == 1 ? "ComputeDomain waits" : "ComputeDomains wait"));
        }
}

/* ---- the decision ---- */

static void report_differing(struct work *w, const struct majority *m) {
        struct majority_words words;
        if (majority_differ(m, w->a, &words))
                add_condition(w, FABRIC_NODES_DIFFER, words.reason, words.message);
        if (majority_withhold(m, w->a, &words))
                add_condition(w, FABRIC_NODES_WITHHOLD, words.reason, words.message);
}

static int channels_by_id(const void *x, const void *y) {
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

static void note_members(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        g->members = arena_alloc(w->a, (w->n_members + 1) * sizeof *g->members);
        for (size_t i = 0; i < w->n_members; i++)
                g->members[g->n_members++] = w->members[i]->name;
        g->nodes = (int64_t)g->n_members;
}

/* Records since when the object has had no node, entry or IMEX domain. True: for a day. */
static bool is_over(struct work *w) {
        struct compute_domain_fabric *g = &w->d->fabric;
        int64_t since = 0, now = w->f->now;
        if (!w->f->old || w->n_members || w->n || g->n_domains)
                return false;
        /* A text that is no time, or a time in the future, is wrong: the day begins now. */
        const char *recorded = w->f->old->empty_since;
        if (recorded && jd_time(recorded, &since) && since > 0 && since <= now) {
                g->empty_since = recorded;
        } else {
                char text[32];
                str_time(now, text);
                since = now;
                g->empty_since = arena_strdup(w->a, text);
        }
        channels_recheck(w, since + CHANNELS_EMPTY_S - now);
        if (now - since >= CHANNELS_EMPTY_S && w->f->stale)
                w->d->pause = true;
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
                g->domain_count += !fabric_domain_is_standing(&r->domains[i]);
        /* A node with false reports can make a recount begin again and again. */
        w->d->urgent = w->d->urgent || (r->changed && !r->ahead);
        if (w->f->recount_why)
                add_condition(w, FABRIC_ASSIGNMENTS_INCOMPLETE, REASON_NOT_ALL_REPORTED, w->f->recount_why);
        if (w->f->full_why)
                add_condition(w, FABRIC_DOMAIN_FULL, REASON_NO_INDEX_LEFT, w->f->full_why);
        if (w->f->wrong)
                add_condition(w, FABRIC_DECISION_WRONG, FABRIC_DECISION_WRONG, w->f->wrong);
        if (r->n_refused)
                add_condition(w, FABRIC_DOMAINS_EXHAUSTED, REASON_TOO_MANY_DOMAINS,
                              message_of(w->a,
                                         "%d ComputeDomains have nodes of this partition. Its fabric object "
                                         "has no room for more, and %zu wait. Delete ComputeDomains or pods "
                                         "that are not needed",
                                         ASSIGNMENT_DOMAINS_MAX, r->n_refused));
}

void channels_decide(const struct channels_facts *f, struct arena *a, struct channels_decision *ret) {
        BUG_ON(!f->fabric || f->now <= 0);
        BUG_ON_UNSORTED(f->nodes, f->n_nodes, name);
        BUG_ON_UNSORTED(f->owners, f->n_owners, uid);
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
        channels_gather(&w);
        find_members(&w);
        note_members(&w);
        majority_find(w.members, w.n_members, f->old, &m);
        g->channel_count = m.channel_count;
        g->rack = m.rack;
        g->imex_version = m.imex_version;
        mark(&w);
        find_loss(&w);
        channels_assign(
                &w); /* before anything is freed: a channel that is freed now is assigned by a later write */
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
        const char *nodes = message_end(&held, a);
        if (is_held)
                add_condition(&w, FABRIC_CHANNELS_HELD, REASON_NODES_HOLD_CHANNELS,
                              message_of(a,
                                         "Some channels are no longer needed, but cannot be assigned again "
                                         "yet: %s. If a Node is off permanently, delete it, or taint it with "
                                         "node.kubernetes.io/out-of-service",
                                         nodes));
        report_differing(&w, &m);
        if (w.n)
                qsort(w.entries, w.n, sizeof *w.entries, channels_by_id);
        g->channels = w.entries;
        g->n_channels = w.n;
        g->channels_in_use = (int64_t)w.n;
        g->domain_count = (int64_t)count_owners(&w);
        take_assignments(&w);
        if (!f->old)
                ret->step = w.n_members || w.n ? CHANNELS_CREATE : CHANNELS_KEEP;
        else if (is_over(&w))
                ret->step = CHANNELS_DELETE;
        else if (!jd_equal(compute_domain_fabric_fields, g, f->old) ||
                 (f->assignments && f->assignments->changed))
                ret->step = CHANNELS_PATCH;
        ret->urgent = ret->urgent || !f->old;
}

/* ---- what must hold ---- */

/* Another ComputeDomain that has the channel, in an entry or by the report of a node that may still run. */
static const char *other_owner(const struct channels_facts *f, const struct compute_domain_fabric *g,
                               const struct fabric_channel *e) {
        for (size_t i = 0; i < g->n_channels; i++)
                if (g->channels[i].id == e->id && !streq(g->channels[i].owner.uid, e->owner.uid))
                        return g->channels[i].owner.uid;
        for (size_t i = 0; i < f->n_nodes; i++)
                for (size_t k = 0; !f->nodes[i].gone && k < f->nodes[i].n_held; k++)
                        if (f->nodes[i].held[k].id == e->id &&
                            !streq(f->nodes[i].held[k].owner, e->owner.uid))
                                return f->nodes[i].held[k].owner;
        return NULL;
}

const char *channels_check(const struct channels_facts *f, const struct channels_decision *d,
                           struct arena *a) {
        const struct compute_domain_fabric *g = &d->fabric, *old = table_begins(f) ? NULL : f->old;

        for (size_t i = 0; i < g->n_channels; i++)
                if (!is_assignable(g->channels[i].id))
                        return arena_printf(a, "ComputeDomain %s has channel %lld", g->channels[i].owner.uid,
                                            (long long)g->channels[i].id);
        for (size_t i = 0; i < d->n_assigned; i++) {
                const struct fabric_channel *e = &d->assigned[i];
                const char *other = other_owner(f, g, e);
                if (!find_entry(g->channels, g->n_channels, e->id, e->owner.uid))
                        return arena_printf(a,
                                            "channel %lld is assigned to ComputeDomain %s without an entry",
                                            (long long)e->id, e->owner.uid);
                if (other)
                        return arena_printf(a, "channel %lld of ComputeDomain %s is assigned to %s",
                                            (long long)e->id, other, e->owner.uid);
        }
        for (size_t i = 0; old && i < old->n_channels; i++) {
                const struct fabric_channel *e = &old->channels[i];
                if (!e->releasing && !find_entry(g->channels, g->n_channels, e->id, e->owner.uid))
                        return arena_printf(a, "channel %lld of ComputeDomain %s is freed before its release",
                                            (long long)e->id, e->owner.uid);
        }
        return NULL;
}

void channels_keep(const struct channels_facts *f, const char *why, struct arena *a,
                   struct channels_decision *ret) {
        struct work w = { .f = f, .a = a, .d = ret };

        *ret = (struct channels_decision){ 0 };
        if (!f->old)
                return;
        ret->fabric = *f->old;
        ret->fabric.conditions = arena_alloc(a, N_CONDITIONS * sizeof *ret->fabric.conditions);
        ret->fabric.n_conditions = 0;
        for (size_t i = 0; i < f->old->n_conditions && ret->fabric.n_conditions < N_CONDITIONS - 1; i++)
                if (!streq(f->old->conditions[i].type, FABRIC_DECISION_WRONG))
                        ret->fabric.conditions[ret->fabric.n_conditions++] = f->old->conditions[i];
        add_condition(&w, FABRIC_DECISION_WRONG, FABRIC_DECISION_WRONG, why);
        ret->step =
                jd_equal(compute_domain_fabric_fields, &ret->fabric, f->old) ? CHANNELS_KEEP : CHANNELS_PATCH;
}
