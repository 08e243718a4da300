/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/records.h"

#include <inttypes.h>
#include <string.h>
#include <uthash.h>

#include "api/names.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "rules/assignment_facts.h"
#include "rules/rules.h"

enum { AHEAD_S = 60 /* a clock is wrong if it is ahead by more than this */ };

/* ---- keys ---- */

static const char *const names[KEY_KINDS] = {
        [KEY_DOMAIN] = "domain",   [KEY_NODE] = "node",     [KEY_RACK] = "rack", [KEY_FABRIC] = "fabric",
        [KEY_DAEMONS] = "daemons", [KEY_SHARED] = "shared", [KEY_AUTO] = "auto", [KEY_CLAIM] = "claim",
};

const char *key_kind_name(enum key_kind kind) {
        BUG_ON(kind >= KEY_KINDS);
        return names[kind];
}

void key_render(enum key_kind kind, const char *name, struct buf *out) {
        buf_adds(out, key_kind_name(kind));
        buf_addc(out, '/');
        buf_adds(out, name);
}

struct key key_parse(const char *text) {
        const char *slash = strchr(text, '/');

        BUG_ON(!slash);
        for (size_t i = 0; i < KEY_KINDS; i++)
                if (str_eq((struct str){ text, (size_t)(slash - text) }, str_from(names[i])))
                        return (struct key){ (enum key_kind)i, slash + 1 };
        BUG_ON(true); /* there is no such kind of key */
}

/* ---- the caches ---- */

bool records_synced(const struct controller *c) {
        if (!c->started || !c->caches.cds || !records_go_synced(c))
                return false;
        for (size_t i = 0; i < ARRAY_LEN(c->caches.all); i++)
                if (c->caches.all[i] && !kube_informer_synced(c->caches.all[i]))
                        return false;
        return true;
}

bool records_go_synced(const struct controller *c) {
        for (size_t i = 0; i < c->caches.n_namespaces; i++)
                if (!kube_informer_synced(c->caches.namespaces[i].sets) ||
                    !kube_informer_synced(c->caches.namespaces[i].pods) ||
                    !kube_informer_synced(c->caches.namespaces[i].cliques))
                        return false;
        return true;
}

const char *records_stale(const struct controller *c) {
        const struct {
                const struct kube_informer *i;
                const char *name;
        } all[] = { { c->caches.cds, "computedomains" },
                    { c->caches.claims, "resourceclaims" },
                    { c->caches.nodes, "nodes" },
                    { c->caches.rcts, "resourceclaimtemplates" },
                    { c->caches.fabrics, "computedomainfabrics" },
                    { c->caches.daemons, "pods of daemons" } };
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                if (!all[i].i || !kube_informer_current(all[i].i))
                        return all[i].name;
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                const struct controller_namespace *n = &c->caches.namespaces[i];
                if (!kube_informer_current(n->sets))
                        return "daemonsets";
                if (!kube_informer_current(n->pods))
                        return "pods";
                if (!kube_informer_current(n->cliques))
                        return "computedomaincliques";
        }
        return NULL;
}

bool records_reports_stale(const struct controller *c) {
        return records_stale(c) || !kube_informer_current(c->caches.slices) ||
               (c->caches.plugins && !kube_informer_current(c->caches.plugins));
}

void records_catch_up(const struct controller *c) {
        for (size_t i = 0; i < ARRAY_LEN(c->caches.all); i++)
                kube_informer_notify(c->caches.all[i]);
        kube_informer_notify(c->caches.pod_groups);
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                kube_informer_notify(c->caches.namespaces[i].sets);
                kube_informer_notify(c->caches.namespaces[i].pods);
                kube_informer_notify(c->caches.namespaces[i].cliques);
        }
}

/* ---- the queue ---- */

static void queue(struct controller *c, enum key_kind kind, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        /* A follower has nothing to do with changes: it looks at everything when it begins to lead. */
        if (!c->leading || !name || !*name)
                return;
        key_render(kind, name, &key);
        if (!key.failed)
                work_queue_add(c->queue, buf_str(&key));
}

void records_queue_domain(struct controller *c, const char *uid) {
        queue(c, KEY_DOMAIN, uid);
}

void records_queue_node(struct controller *c, const char *name) {
        queue(c, KEY_NODE, name);
}

void records_queue_rack(struct controller *c, const char *id) {
        if (c->config->racks)
                queue(c, KEY_RACK, id);
}

void records_queue_fabric(struct controller *c, const char *clique) {
        queue(c, KEY_FABRIC, clique);
}

void records_queue_auto(struct controller *c, const char *key) {
        queue(c, KEY_AUTO, key);
}

void records_queue_claim(struct controller *c, const char *ns, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        if (!ns || !name)
                return;
        buf_addf(&key, "%s/%s", ns, name);
        queue(c, KEY_CLAIM, buf_str(&key));
}

void records_queue_daemons(struct controller *c) {
        if (c->leading)
                work_queue_add(c->queue, KEY_OF_DAEMONS);
}

void records_queue_rollout(struct controller *c) {
        if (c->leading)
                work_queue_add_after(c->queue, KEY_OF_DAEMONS, CONTROLLER_ROLLOUT_MS);
}

static void records_queue_place(void *u, const struct allocation *x) {
        records_queue_domain(u, x->domain_uid);
}

static bool queue_pod(void *u, const struct kube_object *o) {
        records_queue_domain(u, ((const struct pod *)o)->domain_uid);
        return true;
}

void records_queue_domains_of_node(struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        allocations_on_node(c->allocations, name, records_queue_place, c);
        if (n)
                records_queue_domain(c, n->domain_uid);
        for (size_t i = 0; i < c->caches.n_namespaces; i++)
                kube_informer_each_at(c->caches.namespaces[i].pods, CONTROLLER_PODS_BY_NODE, name, queue_pod,
                                      c);
}

/* ---- paused removals ---- */

static void records_requeue(struct controller *c, struct controller_paused *h) {
        HASH_DEL(c->memory.paused, h);
        free(h);
}

void records_resume(struct controller *c, const char *key) {
        struct controller_paused *h;
        HASH_FIND_STR(c->memory.paused, key, h);
        if (h)
                records_requeue(c, h);
}

void records_pause(struct controller *c, const char *key) {
        struct controller_paused *h;
        HASH_FIND_STR(c->memory.paused, key, h);
        if (h)
                return;
        if (!c->memory.paused)
                log_warn("a cache is stale: removals of labels, daemons, claim templates and finalizers are "
                         "paused until it is current. Additions continue",
                         kv_str("resource", str_or(records_stale(c), "")), kv_str("first", key));
        h = xnew_keyed(struct controller_paused, key, key);
        HASH_ADD_STR(c->memory.paused, key, h);
}

void records_calm_later(struct controller *c) {
        uint64_t now = uv_now(kube_client_loop(c->client)), idle = now + CONTROLLER_IDLE_MS;
        if (!loop_timer_waits(&c->calm))
                c->calm_by_ms = now + CONTROLLER_BUSY_MS;
        loop_timer_at(&c->calm, idle < c->calm_by_ms ? idle : c->calm_by_ms);
}

void records_on_current(struct controller *c, bool is) {
        if (is)
                records_calm_later(c);
        if (!is || !c->memory.paused || records_stale(c))
                return;
        log_info("all caches are current again; continuing with removals",
                 kv_int("held", HASH_COUNT(c->memory.paused)));
        for (struct controller_paused *h = c->memory.paused, *next; h; h = next) {
                next = h->hh.next;
                work_queue_add(c->queue, h->key);
                records_requeue(c, h);
        }
}

/* ---- facts from the caches ---- */

static void seen_key(const char *uid, int64_t reported, struct buf *out) {
        buf_addf(out, "%s/%" PRId64, uid, reported);
}

int64_t records_seen(struct controller *c, const char *uid, int64_t reported) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        seen_key(uid, reported, &key);
        return reported ? first_seen_at(c->memory.known, buf_str(&key), clock_mono_s()) : 0;
}

void records_unseen(struct controller *c, const char *uid, int64_t reported) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        seen_key(uid, reported, &key);
        first_seen_forget(c->memory.known, buf_str(&key));
}

const struct compute_domain *records_domain(const struct controller *c, const char *uid) {
        return uid ? (const struct compute_domain *)kube_informer_first_at(c->caches.cds, CONTROLLER_BY_UID,
                                                                           uid)
                   : NULL;
}

const struct node *records_node(const struct controller *c, const char *name) {
        return (const struct node *)kube_informer_get(c->caches.nodes, NULL, name);
}

bool records_owns(const struct controller *c, const struct compute_domain *cd, const struct rct *r) {
        return rules_own_template(cd, c->config->namespaces, c->config->n_namespaces, r);
}

struct tracing {
        const struct controller *c;
        const struct compute_domain *cd;
        struct mode_traces traces;
};

static bool trace_template(void *u, const struct kube_object *o) {
        struct tracing *t = u;
        if (records_owns(t->c, t->cd, (const struct rct *)o))
                mode_traces_add(&t->traces, (const struct rct *)o);
        return true;
}

/* `cd` may be NULL. */
static struct mode_traces records_traces(const struct controller *c, const char *uid,
                                         const struct compute_domain *cd) {
        struct tracing t = { c, cd, mode_traces_of(cd) };
        kube_informer_each_at(c->caches.rcts, CONTROLLER_BY_DOMAIN, uid, trace_template, &t);
        return t.traces;
}

bool records_other_mode(const struct controller *c, const struct compute_domain *cd) {
        return mode_is_other(c->mode, cd->mode, records_traces(c, cd->o.meta.uid, cd));
}

const struct compute_domain_fabric *records_fabric(const struct controller *c, const char *clique) {
        if (!clique || !*clique)
                return NULL;
        return (const struct compute_domain_fabric *)kube_informer_get(c->caches.fabrics, NULL, clique);
}

static bool choose_daemon(void *u, const struct kube_object *o) {
        const struct daemon_pod **best = u;
        *best = daemon_pod_choose(*best, (const struct daemon_pod *)o);
        return true;
}

const struct daemon_pod *records_daemon(const struct controller *c, const char *node) {
        const struct daemon_pod *best = NULL;
        kube_informer_each_at(c->caches.daemons, CONTROLLER_DAEMONS_BY_NODE, node, choose_daemon, &best);
        return best;
}

static bool choose_plugin(void *u, const struct kube_object *o) {
        const struct plugin_pod **best = u;
        *best = plugin_pod_choose(*best, (const struct plugin_pod *)o);
        return true;
}

const struct plugin_pod *records_plugin(const struct controller *c, const char *node) {
        const struct plugin_pod *best = NULL;
        kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, node, choose_plugin, &best);
        return best;
}

struct newest {
        const struct slice *slice;
        const char *clique;
        bool attributes_count;
};

static bool choose_slice(void *u, const struct kube_object *o) {
        struct newest *n = u;
        n->slice = slice_choose(n->slice, (const struct slice *)o, n->attributes_count, &n->clique);
        return true;
}

const char *records_node_clique(const struct controller *c, const char *node) {
        struct newest n = { .attributes_count = mode_runs_daemons(c->mode) };
        kube_informer_each_at(c->caches.slices, CONTROLLER_BY_NODE, node, choose_slice, &n);
        return n.clique;
}

const char *records_last_clique(const struct controller *c, const char *node) {
        const char *clique = records_node_clique(c, node);
        const struct node *n = clique ? NULL : records_node(c, node);
        return n ? n->clique_id : clique;
}

static bool choose_rack_slice(void *u, const struct kube_object *o) {
        const struct slice **newest = u, *s = (const struct slice *)o;
        if (slice_rack(s) && (!*newest || o->meta.created >= (*newest)->o.meta.created))
                *newest = s;
        return true;
}

const char *records_node_rack(const struct controller *c, const char *node) {
        const struct slice *newest = NULL;
        kube_informer_each_at(c->caches.slices, CONTROLLER_BY_NODE, node, choose_rack_slice, &newest);
        return newest ? slice_rack(newest) : NULL;
}

static bool find_plugin_start(void *u, const struct kube_object *o) {
        int64_t *first = u, at = plugin_pod_initialized_at((const struct plugin_pod *)o);
        /* The kubelet's clock is wrong, so the plugin may have been running for long. */
        if (at > clock_wall_s() + AHEAD_S)
                at = 1;
        if (at && at < *first)
                *first = at;
        return true;
}

int64_t records_plugin_start(const struct controller *c, const char *node, int64_t published) {
        int64_t first = published;
        if (c->caches.plugins)
                kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, node, find_plugin_start,
                                      &first);
        return first;
}

/* ---- what is remembered of a ComputeDomain or Node ---- */

struct controller_domain *records_find(const struct controller *c, const char *uid) {
        struct controller_domain *d;
        HASH_FIND_STR(c->memory.domains, uid, d);
        return d;
}

struct controller_domain *records_make(struct controller *c, const char *uid) {
        struct controller_domain *d = records_find(c, uid);
        if (!d) {
                d = xnew_keyed(struct controller_domain, uid, uid);
                d->c = c;
                d->holder.d = d->shared_holder.d = d;
                HASH_ADD_STR(c->memory.domains, uid, d);
        }
        return d;
}

const struct node_counts *records_node_counts(const struct controller *c, const char *uid) {
        const struct controller_domain *d = records_find(c, uid);
        return d && d->counted ? &d->counts : NULL;
}

void records_forget(struct controller_domain *d) {
        HASH_DEL(d->c->memory.domains, d);
        kube_cancel(d->holder.asking);
        kube_cancel(d->shared_holder.asking);
        kube_cancel(d->asking_claim);
        arena_free(d->holder.arena);
        arena_free(d->shared_holder.arena);
        arena_free(d->claim_holder_arena);
        arena_free(d->events_arena);
        free(d->shortage_message);
        free(d);
}

const struct controller_written *records_written(const struct controller *c, const char *node) {
        struct controller_written *w;
        HASH_FIND_STR(c->memory.written, node, w);
        return w;
}

static void forget_written(struct controller *c, struct controller_written *w) {
        HASH_DEL(c->memory.written, w);
        free(w->domain_uid);
        free(w);
}

void records_forget_written(struct controller *c, const char *node) {
        struct controller_written *w;
        HASH_FIND_STR(c->memory.written, node, w);
        if (w)
                forget_written(c, w);
}

void records_label_written(struct controller *c, const char *node, const char *domain_uid) {
        records_forget_written(c, node);
        struct controller_written *w = xnew_keyed(struct controller_written, node, node);
        w->domain_uid = domain_uid ? xstrdup(domain_uid) : NULL;
        HASH_ADD_STR(c->memory.written, node, w);
}

void records_done(struct controller *c) {
        for (struct controller_domain *d = c->memory.domains, *next; d; d = next) {
                next = d->hh.next;
                records_forget(d);
        }
        while (c->memory.paused)
                records_requeue(c, c->memory.paused);
        while (c->memory.written)
                forget_written(c, c->memory.written);
}

/* ---- Nodes that were deleted ---- */

static void vanished_key(const char *clique, const char *node, struct buf *out) {
        buf_addf(out, "%s/%s", clique ? clique : "", node);
}

void records_missing(struct controller *c, const char *node, bool holder) {
        first_seen_at(c->memory.missing_nodes, node, clock_mono_s());
        if (holder)
                first_seen_at(c->memory.missing_holders, node, clock_mono_s());
}

void records_vanished(struct controller *c, const char *clique, const char *node) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        vanished_key(clique, node, &key);
        first_seen_forget(c->memory.vanished, buf_str(&key));
        first_seen_at(c->memory.vanished, buf_str(&key), clock_mono_s());
}

bool records_note_orphan(void *u, const struct kube_object *daemon) {
        const struct pod *p = &((const struct daemon_pod *)daemon)->pod;
        if (p->node && !records_node(u, p->node))
                records_vanished(u, p->clique_id, p->node);
        return true;
}

void records_exists(struct controller *c, const char *clique, const char *node) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        vanished_key(clique, node, &key);
        first_seen_forget(c->memory.vanished, buf_str(&key));
}

int64_t records_vanished_left(const struct controller *c, const char *clique, int64_t now) {
        _cleanup_(buf_done) struct buf prefix = BUF_INIT(512);
        vanished_key(clique, "", &prefix);
        int64_t here = first_seen_left(c->memory.vanished, buf_str(&prefix), ASSIGNMENT_NODE_MISSING_S, now);
        int64_t anywhere = first_seen_left(c->memory.vanished, "/", ASSIGNMENT_NODE_MISSING_S, now);
        return here > anywhere ? here : anywhere;
}
