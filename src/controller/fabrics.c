/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/fabrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/assignments.h"
#include "controller/checks.h"
#include "controller/fabric_memory.h"
#include "model/channel_report.h"
#include "rules/channels.h"

enum { MAX_BODY = 1 << 20, GATHER_MS = 150, INTERVAL_MS = 1000 };

/* ---- which objects a change concerns ---- */

static bool queue_fabric(void *u, const struct kube_object *o) {
        records_queue_fabric(u, o->meta.name);
        return true;
}

static bool fabrics_queue_slice(void *u, const struct kube_object *o) {
        const char *clique;
        if (slice_clique((const struct slice *)o, &clique) && *clique)
                records_queue_fabric(u, clique);
        return true;
}

static void add_key(kube_key_fn *add, void *v, const char *key) {
        if (key)
                add(v, key);
}

static int fabrics_by_text(const void *x, const void *y) {
        return strcmp(x, *(const char *const *)y);
}

/* Saves the memory for a second key of nearly all assigned nodes. */
static bool is_fabric_member(const struct compute_domain_fabric *f, const char *node) {
        return node && f->n_members &&
               bsearch(node, f->members, f->n_members, sizeof *f->members, fabrics_by_text);
}

void fabrics_keys(const struct kube_object *o, kube_key_fn *add, void *v) {
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        for (size_t i = 0; i < f->n_members; i++)
                add_key(add, v, f->members[i]);
        for (size_t i = 0; i < f->n_domains; i++) {
                add_key(add, v, f->domains[i].owner.uid);
                for (size_t k = 0; k < f->domains[i].n_assignments; k++)
                        if (!is_fabric_member(f, f->domains[i].assignments[k].node))
                                add_key(add, v, f->domains[i].assignments[k].node);
        }
        for (size_t i = 0; i < f->n_removals; i++)
                add_key(add, v, f->removals[i].node);
        for (size_t i = 0; i < f->n_channels; i++)
                add_key(add, v, f->channels[i].owner.uid);
}

void fabrics_queue_all(struct controller *c) {
        kube_informer_each(c->caches.fabrics, queue_fabric, c);
        kube_informer_each(c->caches.slices, fabrics_queue_slice, c);
}

struct search {
        struct controller *c;
        const char *text;
};

static bool queue_if_member(void *u, const struct kube_object *o) {
        const struct search *s = u;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        if (has_string((const char *const *)f->members, f->n_members, s->text))
                records_queue_fabric(s->c, f->o.meta.name);
        return true;
}

void fabrics_queue_of_node(struct controller *c, const char *node) {
        if (!node)
                return;
        records_queue_fabric(c, records_node_clique(c, node));
        kube_informer_each_with(c->caches.fabrics, node, queue_if_member, &(struct search){ c, node });
}

static bool is_marked_on(const struct compute_domain_fabric *f, const char *node) {
        for (size_t i = 0; i < f->n_removals; i++)
                if (streq(f->removals[i].node, node))
                        return true;
        return false;
}

static bool fabrics_queue_if_listed(void *u, const struct kube_object *o) {
        const struct search *s = u;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        if (assignments_list(f, s->text) || is_marked_on(f, s->text))
                records_queue_fabric(s->c, o->meta.name);
        return true;
}

void fabrics_queue_listing(struct controller *c, const char *node) {
        if (node)
                kube_informer_each_with(c->caches.fabrics, node, fabrics_queue_if_listed,
                                        &(struct search){ c, node });
}

static bool has_owner(const struct compute_domain_fabric *f, const char *uid) {
        for (size_t i = 0; i < f->n_channels; i++)
                if (streq(f->channels[i].owner.uid, uid))
                        return true;
        for (size_t i = 0; i < f->n_domains; i++)
                if (streq(f->domains[i].owner.uid, uid))
                        return true;
        return false;
}

static bool queue_if_owner(void *u, const struct kube_object *o) {
        const struct search *s = u;
        if (has_owner((const struct compute_domain_fabric *)o, s->text))
                records_queue_fabric(s->c, o->meta.name);
        return true;
}

static void fabrics_queue_place(void *u, const struct allocation *x) {
        struct controller *c = u;
        records_queue_fabric(c, records_node_clique(c, x->node));
}

void fabrics_queue_of_domain(struct controller *c, const char *uid) {
        if (!uid)
                return;
        allocations_of_domain(c->allocations, uid, fabrics_queue_place, c);
        kube_informer_each_with(c->caches.fabrics, uid, queue_if_owner, &(struct search){ c, uid });
}

void fabrics_plugin_changed(struct controller *c, const struct plugin_pod *was, const struct plugin_pod *is) {
        bool same = was && is && streq(was->o.meta.uid, is->o.meta.uid) &&
                    plugin_pod_ready_since(was) == plugin_pod_ready_since(is);
        if (was && !same)
                records_unseen(c, was->o.meta.uid, plugin_pod_ready_since(was));
        if (was && is && streq(was->node, is->node) && streq(was->host_channels, is->host_channels) &&
            streq(was->unprepared, is->unprepared) &&
            plugin_pod_ready_since(was) == plugin_pod_ready_since(is) &&
            plugin_pod_ended(was) == plugin_pod_ended(is))
                return;
        fabrics_queue_of_node(c, is ? is->node : was->node);
}

/* ---- Events and keys of a change ---- */

static bool had(const struct compute_domain_fabric *f, const struct fabric_channel *e) {
        for (size_t i = 0; f && i < f->n_channels; i++)
                if (f->channels[i].id == e->id && streq(f->channels[i].owner.uid, e->owner.uid))
                        return true;
        return false;
}

static void report_channels(struct controller *c, const struct compute_domain_fabric *was,
                            const struct compute_domain_fabric *is) {
        for (size_t i = 0; i < is->n_channels; i++) {
                const struct fabric_channel *e = &is->channels[i];
                const struct compute_domain *cd = records_domain(c, e->owner.uid);
                if (had(was, e) || !cd)
                        continue;
                const struct event_about about = { CD_API_VERSION, CD_KIND, cd->o.meta.ns, cd->o.meta.name,
                                                   cd->o.meta.uid };
                event_record(c->events, &about, EVENT_NORMAL, CONDITION_CHANNEL_ASSIGNED,
                             "channel %lld on %s", (long long)e->id, str_or(is->rack, is->o.meta.name));
        }
}

static void report_conditions(struct controller *c, const struct compute_domain_fabric *was,
                              const struct compute_domain_fabric *is) {
        const struct event_about about = { CD_API_VERSION, CD_FABRIC_KIND, NULL, is->o.meta.name,
                                           is->o.meta.uid };
        for (size_t i = 0; i < is->n_conditions; i++)
                if (!was || !condition_find(was->conditions, was->n_conditions, is->conditions[i].type))
                        event_record(c->events, &about, EVENT_WARNING, is->conditions[i].type, "%s",
                                     str_or(is->conditions[i].message, ""));
}

static void queue_owners(struct controller *c, const struct compute_domain_fabric *f) {
        for (size_t i = 0; f && i < f->n_channels; i++)
                records_queue_domain(c, f->channels[i].owner.uid);
        for (size_t i = 0; f && i < f->n_domains; i++)
                if (!fabric_domain_is_standing(&f->domains[i]))
                        records_queue_domain(c, f->domains[i].owner.uid);
}

static bool fabrics_queue_owners(void *u, const struct kube_object *o) {
        queue_owners(u, (const struct compute_domain_fabric *)o);
        return true;
}

void fabrics_queue_owners_on(struct controller *c, const char *node) {
        kube_informer_each_with(c->caches.fabrics, node, fabrics_queue_owners, c);
}

/* A node keeps its daemon while the object lists an assignment for it. */
static void queue_assigned(struct controller *c, const struct compute_domain_fabric *f) {
        for (size_t i = 0; f && i < f->n_domains; i++)
                for (size_t k = 0; k < f->domains[i].n_assignments; k++)
                        records_queue_node(c, f->domains[i].assignments[k].node);
        for (size_t i = 0; f && i < f->n_removals; i++)
                records_queue_node(c, f->removals[i].node);
        if (f && f->n_removals)
                records_queue_rollout(c);
}

static void queue_domain_of(void *u, const struct allocation *x) {
        records_queue_domain(u, x->domain_uid);
}

void fabrics_changed(struct controller *c, const struct compute_domain_fabric *was,
                     const struct compute_domain_fabric *is) {
        bool same = was && is && streq(was->o.meta.uid, is->o.meta.uid);
        for (size_t i = 0; was && i < was->n_domains; i++) {
                const struct fabric_domain *d = &was->domains[i];
                if (!d->n_assignments && (!same || !fabric_domain_at(is, d->owner.uid)))
                        assignments_forget(c, was->o.meta.name, d->owner.uid);
        }
        fabric_memory_changed(c, was, is);
        records_queue_fabric(c, is ? is->o.meta.name : was->o.meta.name);
        if (!c->leading)
                return;
        if (was && is) {
                report_channels(c, was, is);
                report_conditions(c, was, is);
        }
        queue_owners(c, was);
        queue_owners(c, is);
        queue_assigned(c, was);
        queue_assigned(c, is);
        /* ComputeDomains that wait for a channel have no entry, so find them by their claims. */
        for (size_t i = 0; is && is->n_conditions && i < is->n_members; i++)
                allocations_on_node(c->allocations, is->members[i], queue_domain_of, c);
}

/* ---- facts about a partition ---- */

struct fabric_facts {
        struct controller *c;
        struct arena *a;
        const char *clique, *key;
        const struct compute_domain_fabric *old;
        const struct compute_domain_fabric *lost;
        struct channels_node *nodes;
        size_t n_nodes, cap_nodes;
        struct channels_owner *owners;
        size_t n_owners, cap_owners;
        int64_t now, mono, recheck_s; /* now: wall clock, which rules/channels uses; mono: clock_mono_s() */
};

static void fabrics_add_node(struct fabric_facts *k, const char *name) {
        if (!name || !*name)
                return;
        GROW(k->nodes, k->n_nodes, k->cap_nodes);
        k->nodes[k->n_nodes++] = (struct channels_node){ .name = name, .count = -1 };
}

static bool fabrics_add_stating(void *u, const struct kube_object *o) {
        struct fabric_facts *k = u;
        const struct slice *s = (const struct slice *)o;
        size_t n = k->n_nodes;
        fabrics_add_node(k, s->node);
        if (k->n_nodes > n)
                k->nodes[n].stated = records_plugin_start(k->c, s->node, o->meta.created);
        return true;
}

static bool add_marked(void *u, const struct kube_object *o) {
        fabrics_add_node(u, o->meta.name);
        return true;
}

/* Skips reports that do not contain the clique ID, because decoding the reports of all Pods is expensive. */
static bool add_reporting(void *u, const struct kube_object *o) {
        struct fabric_facts *k = u;
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        if (p->host_channels && strstr(p->host_channels, k->clique))
                fabrics_add_node(k, p->node);
        return true;
}

static int nodes_by_name(const void *x, const void *y) {
        return strcmp(((const struct channels_node *)x)->name, ((const struct channels_node *)y)->name);
}

struct reports {
        struct fabric_facts *k;
        struct channels_node *node;
        const struct plugin_pod *newest; /* of those that have a report */
        bool living;                     /* a Pod that has not ended has a report */
        struct channel_report_held held; /* by all Pods of the node */
};

static bool fabrics_find_living(void *u, const struct kube_object *o) {
        struct reports *r = u;
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        r->living = r->living || (p->host_channels && !plugin_pod_ended(p));
        return true;
}

/* Converts a time of clock_mono_s() to the wall clock; 0 (never) stays 0. */
static int64_t day_time(const struct fabric_facts *k, int64_t mono) {
        return mono ? mono - k->mono + k->now : 0;
}

/* The Pod has been Ready for a while, by the controller's clock and not the kubelet's. */
static bool fabrics_is_settled(const struct fabric_facts *k, const struct plugin_pod *p) {
        int64_t since = records_seen(k->c, p->o.meta.uid, plugin_pod_ready_since(p));
        return since && since + CHANNELS_SETTLED_S <= k->mono;
}

static bool fabrics_read_report(void *u, const struct kube_object *o) {
        struct reports *r = u;
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        struct channels_node *x = r->node;
        struct channel_report report;
        struct err e;
        bool newer = !r->newest || p->o.meta.created >= r->newest->o.meta.created;
        if (r->living && plugin_pod_ended(p))
                return true;
        if (newer)
                r->newest = p;
        if (!p->host_channels ||
            channel_report_decode((struct str){ p->host_channels, strlen(p->host_channels) }, r->k->a,
                                  &report, &e) < 0) {
                if (p->host_channels)
                        log_warn("cannot read a kubelet plugin's report about its channels, so its node may "
                                 "hold any channel",
                                 kv_str("pod", p->o.meta.name), kv_err(&e));
                if (newer)
                        x->reported = x->settled = false;
                return true;
        }
        const struct channel_report_fabric *f = channel_report_of(&report, r->k->clique);
        channel_report_add_held(f, r->k->a, &r->held);
        if (!newer)
                return true;
        x->reported = true;
        x->settled = fabrics_is_settled(r->k, p);
        x->uid = f ? f->uid : NULL;
        x->count = f ? f->count : -1;
        x->imex = f ? f->imex : NULL;
        x->withheld = f ? f->withheld : NULL;
        return true;
}

/* When the controller first saw each entry of the object as releasing; in the arena. */
static const int64_t *releasing_since(const struct fabric_facts *k) {
        size_t n = k->old ? k->old->n_channels : 0;
        int64_t *ret = arena_alloc(k->a, (n + 1) * sizeof *ret);
        for (size_t i = 0; i < n; i++) {
                const struct fabric_channel *e = &k->old->channels[i];
                _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
                buf_addf(&key, "%s/%" PRId64 "/%s/%" PRId64, k->clique, e->id, str_or(e->owner.uid, ""),
                         e->releasing);
                ret[i] = e->releasing
                                 ? day_time(k, first_seen_at(k->c->memory.releasing, buf_str(&key), k->mono))
                                 : 0;
        }
        return ret;
}

static void gather_node(struct fabric_facts *k, struct channels_node *x) {
        struct controller *c = k->c;
        const struct node *node = records_node(c, x->name);
        const char *clique = records_node_clique(c, x->name);
        struct reports r = { .k = k, .node = x };
        x->states = clique && streq(clique, k->clique);
        x->moved = clique && !x->states;
        x->marked = node && streq(node->clique_id, k->clique);
        x->rack = records_node_rack(c, x->name);
        x->is_ready = node && node_ready(node);
        x->alive_after = day_time(k, leases_alive_after(c->leases, x->name));
        /* The taint of an earlier version proves nothing: it may have been removed since. */
        x->gone = node ? node_out_of_service(node) && !node->partial
                       : first_seen_for(c->memory.missing_nodes, x->name, ASSIGNMENT_NODE_MISSING_S, k->mono,
                                        &k->recheck_s);
        if (!mode_assigns_channels(c->mode)) {
                /* The plugin assigns no channels and reports none. A channel of the earlier isolation is held
                 * until its claim is deleted. The controller asks the API server about the claim, if the
                 * kubelet is alive. */
                x->reported = x->settled = true;
                x->uid = k->old ? k->old->o.meta.uid : NULL;
                return;
        }
        kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, x->name, fabrics_find_living,
                              &r);
        kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, x->name, fabrics_read_report,
                              &r);
        x->held = r.held.list;
        x->n_held = r.held.n;
        if (!r.held.too_many)
                return;
        log_warn("the kubelet plugin's Pods of a node report too many channels, so the node may hold any "
                 "channel",
                 kv_str("node", x->name), kv_str("partition", k->clique));
        x->reported = x->settled = false;
        x->uid = NULL;
}

static void gather_nodes(struct fabric_facts *k) {
        size_t kept = 0;
        kube_informer_each_at(k->c->caches.slices, CONTROLLER_SLICES_BY_CLIQUE, k->clique,
                              fabrics_add_stating, k);
        kube_informer_each_at(k->c->caches.nodes, CONTROLLER_NODES_BY_CLIQUE, k->clique, add_marked, k);
        for (size_t i = 0; k->old && i < k->old->n_members; i++)
                fabrics_add_node(k, k->old->members[i]);
        /* If the object was lost, only the reports show which nodes may hold which channels. */
        if (k->c->caches.plugins && (!k->old || !fabric_is_own(k->old)))
                kube_informer_each(k->c->caches.plugins, add_reporting, k);
        if (k->n_nodes)
                qsort(k->nodes, k->n_nodes, sizeof *k->nodes, nodes_by_name);
        for (size_t i = 0; i < k->n_nodes; i++) {
                if (kept && streq(k->nodes[kept - 1].name, k->nodes[i].name)) {
                        if (!k->nodes[kept - 1].stated)
                                k->nodes[kept - 1].stated = k->nodes[i].stated;
                        continue;
                }
                k->nodes[kept] = k->nodes[i];
                gather_node(k, &k->nodes[kept++]);
        }
        k->n_nodes = kept;
}

/* ---- possible owners of channels ---- */

static void add_owner(struct fabric_facts *k, const char *uid, const struct fabric_owner *known) {
        GROW(k->owners, k->n_owners, k->cap_owners);
        k->owners[k->n_owners++] = (struct channels_owner){ .uid = uid,
                                                            .ns = known ? known->ns : NULL,
                                                            .name = known ? known->name : NULL };
}

static void add_placed(void *u, const struct allocation *x) {
        add_owner(u, x->domain_uid, NULL);
}

static int owners_by_uid(const void *x, const void *y) {
        return strcmp(((const struct channels_owner *)x)->uid, ((const struct channels_owner *)y)->uid);
}

struct placing {
        const struct fabric_facts *k;
        const struct compute_domain *cd;
        struct channels_owner *o;
};

static void gather_place(void *u, const struct allocation *x) {
        struct placing *p = u;
        const struct fabric_facts *k = p->k;
        const struct channels_node key = { .name = x->node };
        const struct channels_node *node =
                k->n_nodes ? bsearch(&key, k->nodes, k->n_nodes, sizeof key, nodes_by_name) : NULL;
        if (!node && records_node_clique(k->c, x->node))
                return;
        /* The plugin refuses a claim in another namespace, so it holds no channel. */
        if (p->o->ns && !streq(p->o->ns, x->ns))
                return;
        p->o->claimed = true;
        if (!node || !node->states || !p->cd)
                return;
        p->o->wants = true;
        if (!p->o->oldest || x->created < p->o->oldest)
                p->o->oldest = x->created;
}

/* Whether the API server has confirmed that the owner does not exist and has no claim on the nodes. `ask`:
 * also sends the questions that have no valid answer. */
static bool is_confirmed(const struct fabric_facts *k, const struct channels_owner *o, bool ask) {
        struct live_read *confirm = k->c->live_read;
        bool all = true;
        if (!o->lives && !o->ends)
                all = ask ? live_read_absent(confirm, LIVE_READ_DOMAIN, NULL, o->uid, k->key)
                          : live_read_known(confirm, LIVE_READ_DOMAIN, NULL, o->uid);
        for (size_t i = 0; i < k->n_nodes && (all || ask); i++) {
                _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
                live_read_on_node(o->uid, k->nodes[i].name, &key);
                bool known = ask ? live_read_absent(confirm, LIVE_READ_CLAIM, o->ns, buf_str(&key), k->key)
                                 : live_read_known(confirm, LIVE_READ_CLAIM, o->ns, buf_str(&key));
                all = all && known;
        }
        return all;
}

static void gather_owner(struct fabric_facts *k, struct channels_owner *o) {
        const struct compute_domain *cd = records_domain(k->c, o->uid);
        struct placing p = { k, cd, o };
        if (cd) {
                o->ns = cd->o.meta.ns;
                o->name = cd->o.meta.name;
                o->ends = domain_ends(cd);
                o->lives = !o->ends && !records_other_mode(k->c, cd);
        }
        allocations_of_domain(k->c->allocations, o->uid, gather_place, &p);
        /* A ComputeDomain that was formed in another mode may exist, but gets no channel. */
        o->wants = o->wants && o->lives && mode_assigns_channels(k->c->mode);
        o->confirmed = (!cd || o->ends || o->lives) && is_confirmed(k, o, false);
}

static void gather_owners(struct fabric_facts *k) {
        const struct compute_domain_fabric *tables[] = { k->old, k->lost };
        size_t kept = 0;
        for (size_t t = 0; t < ARRAY_LEN(tables); t++)
                for (size_t i = 0; tables[t] && i < tables[t]->n_channels; i++)
                        add_owner(k, tables[t]->channels[i].owner.uid, &tables[t]->channels[i].owner);
        for (size_t i = 0; mode_assigns_channels(k->c->mode) && i < k->n_nodes; i++) {
                allocations_on_node(k->c->allocations, k->nodes[i].name, add_placed, k);
                for (size_t h = 0; h < k->nodes[i].n_held; h++)
                        add_owner(k, k->nodes[i].held[h].owner, NULL);
        }
        if (k->n_owners)
                qsort(k->owners, k->n_owners, sizeof *k->owners, owners_by_uid);
        for (size_t i = 0; i < k->n_owners; i++) {
                if (kept && streq(k->owners[kept - 1].uid, k->owners[i].uid)) {
                        struct channels_owner *o = &k->owners[kept - 1];
                        o->ns = o->ns ? o->ns : k->owners[i].ns;
                        o->name = o->name ? o->name : k->owners[i].name;
                        continue;
                }
                k->owners[kept++] = k->owners[i];
        }
        k->n_owners = kept;
        for (size_t i = 0; i < kept; i++)
                gather_owner(k, &k->owners[i]);
}

/* ---- decide and write ---- */

static void fabrics_submit(const struct fabric_facts *k, const struct channels_decision *d) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        enum kube_verb verb = d->step == CHANNELS_CREATE  ? KUBE_CREATE
                              : d->step == CHANNELS_PATCH ? KUBE_MERGE_PATCH
                                                          : KUBE_DELETE;
        if (verb == KUBE_DELETE)
                objects_delete(&k->old->o.meta, k->old->o.meta.rv, &b);
        else
                objects_fabric(&d->fabric, k->old, &b);
        struct writes_request r = {
                .requester = k->key,
                .verb = verb,
                .res = &kube_fabrics,
                .name = k->clique,
                .body = { buf_str(&b), b.n },
                .batch_ms = d->urgent ? 0 : GATHER_MS,
                .interval_ms = d->urgent ? 0 : INTERVAL_MS,
                .cache = k->c->caches.fabrics,
        };
        if (b.failed)
                writes_cannot(k->c->writes, &r,
                              "the object would be larger than the API server accepts. Delete unused "
                              "ComputeDomains");
        else
                writes_try(k->c->writes, &r);
}

static void report_failed_check(const struct fabric_facts *k, enum checks_rule rule, const char *why) {
        const struct event_about about = { CD_API_VERSION, CD_FABRIC_KIND, NULL, k->clique,
                                           k->old ? k->old->o.meta.uid : NULL };

        if (why)
                checks_failed(k->c, rule, &about, why);
}

static void fabrics_key_of(const char *clique, struct buf *out) {
        key_render(KEY_FABRIC, clique, out);
}

/* In host-managed mode, daemons of an earlier mode may still run. */
static bool has_daemons(const struct controller *c, const char *clique) {
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        return mode_runs_daemons(c->mode) || (f && f->epoch) ||
               kube_informer_first_at(c->caches.daemons, CONTROLLER_DAEMONS_BY_CLIQUE, clique);
}

/* The facts for rules/channels. `assignments` gets the facts that both rules use. */
static struct channels_facts channels_facts_of(const struct fabric_facts *k,
                                               struct assignments *assignments) {
        struct controller *c = k->c;
        struct channels_facts facts = {
                .fabric = k->clique,
                .old = k->old,
                .remembered = k->lost ? k->lost->channels : NULL,
                .n_remembered = k->lost ? k->lost->n_channels : 0,
                .remembers = k->lost && !condition_true(k->lost->conditions, k->lost->n_conditions,
                                                        FABRIC_CHANNELS_INCOMPLETE),
                .complete_since = day_time(k, c->memory.complete_since),
                .was_older = k->old && first_seen_get(c->memory.older, k->old->o.meta.uid),
                .restored_s =
                        mode_assigns_channels(c->mode) ? fabric_memory_restored_s(c, k->clique, k->mono) : 0,
                .releasing_since = releasing_since(k),
                .vanished_s =
                        first_seen_left(c->memory.missing_holders, "", ASSIGNMENT_NODE_MISSING_S, k->mono),
                .nodes = k->nodes,
                .n_nodes = k->n_nodes,
                .owners = k->owners,
                .n_owners = k->n_owners,
                .stale = records_reports_stale(c),
                .leases_at = day_time(k, leases_at(c->leases)),
                .leases_before = day_time(k, leases_before(c->leases)),
                .now = k->now
        };
        if (channels_older_s(&facts))
                first_seen_at(c->memory.older, k->old->o.meta.uid, k->mono);
        *assignments = (struct assignments){ .stale = facts.stale,
                                             .settle_s = channels_unreported_s(&facts),
                                             .unlisted_s = channels_unlisted_s(&facts),
                                             .rolled_back = fabric_memory_awaits_recount(c, k->clique) };
        return facts;
}

/* Decides the assignments of nodes, then the channels. A result that fails its check is not written. */
static void fabrics_decide(struct fabric_facts *k, bool daemons, struct assignments *assignments,
                           struct channels_decision *ret) {
        struct channels_facts facts = channels_facts_of(k, assignments);
        if (daemons) {
                assignments_make(k->c, k->old, k->clique, k->key, k->a, assignments);
                report_failed_check(k, CHECKS_ASSIGNMENT, assignments->broken);
                facts.wrong = assignments->broken;
                facts.assignments = &assignments->decision;
                facts.recount_why = assignments->recount_why;
                facts.full_why = assignments->full_why;
        }
        channels_decide(&facts, k->a, ret);
        const char *broken = channels_check(&facts, ret, k->a);
        report_failed_check(k, CHECKS_CHANNELS, broken);
        if (broken)
                channels_keep(&facts, broken, k->a, ret);
}

/* Keeps the earlier of the two times; 0: never. */
static void take_earlier(int64_t s, int64_t *ret) {
        if (s && (!*ret || s < *ret))
                *ret = s;
}

/* Sends the questions to the API server, and plans the next visit. */
static void fabrics_follow_up(struct fabric_facts *k, const struct assignments *assignments,
                              const struct channels_decision *d) {
        struct controller *c = k->c;
        if (d->pause || assignments->pause)
                records_pause(c, k->key);
        if (d->ask_leases)
                leases_ask(c->leases, k->key);
        for (size_t i = 0; i < d->n_ask; i++)
                is_confirmed(k, d->ask[i], true);
        int64_t recheck_s = d->recheck_s;
        take_earlier(assignments->recheck_s, &recheck_s);
        take_earlier(k->recheck_s, &recheck_s);
        if (recheck_s)
                work_queue_add_after(c->queue, k->key, (unsigned)recheck_s * 1000U);
}

void fabrics_reconcile(struct controller *c, const char *clique) {
        _cleanup_(arena_freep) struct arena *a = arena_new(16 << 10);
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        struct assignments assignments;
        struct channels_decision d;
        bool daemons = has_daemons(c, clique);
        if (mode_assigns_channels(c->mode) ? !c->caches.plugins : !daemons)
                return;
        if (!str_is_dns_subdomain(clique)) {
                log_error("a ResourceSlice has a clique ID that is no valid object name, so ComputeDomains "
                          "get no channel in this partition",
                          kv_str("clique", clique));
                return;
        }
        fabrics_key_of(clique, &key);
        struct fabric_facts k = {
                .c = c,
                .a = a,
                .clique = clique,
                .key = buf_str(&key),
                .old = records_fabric(c, clique),
                .lost = fabric_memory_lost(c, clique),
                .now = clock_wall_s(),
                .mono = clock_mono_s(),
        };
        gather_nodes(&k);
        gather_owners(&k);
        fabrics_decide(&k, daemons, &assignments, &d);
        writes_begin(c->writes, k.key);
        if (d.step != CHANNELS_KEEP)
                fabrics_submit(&k, &d);
        writes_end(c->writes, k.key);
        fabrics_follow_up(&k, &assignments, &d);
        free(k.nodes);
        free(k.owners);
}
