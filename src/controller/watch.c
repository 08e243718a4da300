/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/watch.h"

#include "api/names.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/allocations.h"
#include "controller/auto_domains.h"
#include "controller/daemons.h"
#include "controller/fabrics.h"
#include "controller/labels.h"
#include "controller/node_reads.h"
#include "controller/pod_groups.h"
#include "controller/rack_domains.h"
#include "controller/records.h"
#include "controller/shared_claims.h"
#include "controller/shared_device.h"
#include "model/channel_report.h"

/* ---- keys of indexes ---- */

static const char *uid_of(const struct kube_object *o) {
        return o->meta.uid;
}

#define INDEX(fn, type, member)                                                                              \
        static const char *fn(const struct kube_object *o) {                                                 \
                return ((const struct type *)o)->member;                                                     \
        }
INDEX(node_domain, node, domain_uid)
INDEX(node_clique, node, clique_id)
INDEX(slice_node, slice, node)
INDEX(rct_domain, rct, domain_uid)
INDEX(set_domain, daemonset, domain_uid)
INDEX(pod_domain, pod, domain_uid)
INDEX(pod_node, pod, node)
INDEX(clique_domain, clique, domain_uid)
INDEX(cd_rack, compute_domain, rack)
INDEX(plugin_node, plugin_pod, node)
INDEX(daemon_node, daemon_pod, pod.node)
INDEX(daemon_clique, daemon_pod, pod.clique_id)
INDEX(claim_awaited, claim_record, awaits)
INDEX(claim_made_for, claim_record, owner)
INDEX(claim_named, claim_record, named)
INDEX(auto_pod_domain, auto_pod, key)

static const char *claim_grouped(const struct kube_object *o) {
        const struct claim_record *r = (const struct claim_record *)o;
        return r->group ? r->group->domain_uid : NULL;
}

static const char *clique_of_slice(const struct kube_object *o) {
        const char *clique;
        return slice_clique((const struct slice *)o, &clique) && *clique ? clique : NULL;
}

static const char *rack_of_slice(const struct kube_object *o) {
        return slice_rack((const struct slice *)o);
}

/* ---- keys that a change concerns ---- */

static void watch_queue_place(void *u, const struct allocation *x) {
        records_queue_domain(u, x->domain_uid);
}

/* NULL: the claim is a shared one, so its allocation names no node. */
static const char *node_of(const struct allocation *x) {
        return streq(x->node, CD_POOL_SHARED) ? NULL : x->node;
}

static void queue_place_node(void *u, const struct allocation *x) {
        records_queue_node(u, node_of(x));
}

static bool queue_node_object(void *u, const struct kube_object *o) {
        records_queue_node(u, o->meta.name);
        return true;
}

static bool queue_pod_domain(void *u, const struct kube_object *o) {
        records_queue_domain(u, ((const struct pod *)o)->domain_uid);
        return true;
}

/* ---- ComputeDomains that the plugin of a node uses ---- */

struct used {
        struct arena *a;
        const char **uids;
        size_t n, cap;
        bool reported;
};

static void add_used(struct used *x, const char *uid) {
        if (has_string(x->uids, x->n, uid))
                return;
        ARENA_GROW(x->a, x->uids, x->n, x->cap);
        x->uids[x->n++] = uid;
}

/* Each Pod counts, because a Pod that has ended may have reported what still runs. */
static bool read_used(void *u, const struct kube_object *o) {
        struct used *x = u;
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        struct channel_report r;
        struct err e;
        if (!p->host_channels || channel_report_decode(str_from(p->host_channels), x->a, &r, &e) < 0)
                return true;
        x->reported = true;
        for (size_t i = 0; i < r.n_fabrics; i++) {
                for (size_t k = 0; k < r.fabrics[i].n_held; k++)
                        add_used(x, r.fabrics[i].held[k].owner);
                for (size_t k = 0; k < r.fabrics[i].n_asks; k++)
                        add_used(x, r.fabrics[i].asks[k]);
        }
        return true;
}

static void use_changed(void *u, const char *uid) {
        records_queue_domain(u, uid);
}

/* While no plugin of an existing Node reports, for example while an upgrade replaces its Pod, the pods of the
 * node keep their channels. */
static void note_used(struct controller *c, const char *node) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct used x = { .a = a };
        if (!node || !mode_assigns_channels(c->mode) || !c->caches.plugins)
                return;
        kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, node, read_used, &x);
        bool exists = records_node(c, node), had = first_seen_get(c->memory.reporting, node);
        if (!x.reported && exists)
                return;
        allocations_used(c->allocations, node, x.uids, x.n, use_changed, c);
        if (x.reported)
                first_seen_at(c->memory.reporting, node, clock_mono_s());
        else
                first_seen_forget(c->memory.reporting, node);
        if (!had || !exists)
                fabrics_queue_owners_on(c, node);
}

/* ---- changes ---- */

/* A ComputeDomain gets its mode in the annotation after its creation. */
static void queue_shared_claims(struct controller *c, const struct compute_domain *was,
                                const struct compute_domain *is) {
        if (is && domain_shares(is) && (!was || !streq(was->mode, is->mode)))
                shared_claims_queue_of(c, is->o.meta.uid);
}

static void cd_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct kube_object *o = now ? now : old;
        records_queue_domain(c, o->meta.uid);
        if (now && (!old || !streq(old->meta.uid, now->meta.uid)) &&
            domain_shares((const struct compute_domain *)now)) {
                shared_device_changed(c);
                pod_groups_watch(c, (const struct compute_domain *)now);
        }
        queue_shared_claims(c, (const struct compute_domain *)old, (const struct compute_domain *)now);
        auto_domains_changed(c, old, now);
        rack_domains_queue_of(c, (const struct compute_domain *)old);
        rack_domains_queue_of(c, (const struct compute_domain *)now);
        if (!now)
                rack_domains_queue_freed(c, (const struct compute_domain *)old);
        if (old && now && streq(old->meta.uid, now->meta.uid) && !old->meta.deleted == !now->meta.deleted &&
            domain_ends((const struct compute_domain *)old) ==
                    domain_ends((const struct compute_domain *)now))
                return;
        fabrics_queue_of_domain(c, o->meta.uid);
        /* It was created, began to end, or was deleted, which changes labels. */
        allocations_of_domain(c->allocations, o->meta.uid, queue_place_node, c);
        kube_informer_each_at(c->caches.nodes, CONTROLLER_BY_DOMAIN, o->meta.uid, queue_node_object, c);
        if (old && now && !streq(old->meta.uid, now->meta.uid))
                cd_changed(u, old, NULL);
}

/* Not the claims of daemons: the reports of the daemons contain what the rules use of them. */
static bool claim_is_ours(void *u, const struct kube_object *o) {
        const struct claim *c = (const struct claim *)o;
        for (size_t i = 0; i < c->n_results; i++)
                if (claim_result_is_channel(&c->results[i]))
                        return true;
        /* A PodGroup that does not fit on one node never gets its claim allocated, nor reserved. */
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct claim_group group;
        return claim_of_group(c, a, &group) || claim_awaits(c, a) || claim_named_for(c, a) ||
               claim_domain_owner(c) || (claim_asks_for_shared(c, a) && claim_group_owner(c, &group));
}

static bool slice_is_ours(void *u, const struct kube_object *o) {
        return streq(((const struct slice *)o)->driver, CD_DRIVER);
}

/* The status names the finalizers of a claim that is being deleted. */
static bool differs_in_finalizers(const struct claim_record *was, const struct claim_record *is) {
        const struct claim_shared *before = was->shared, *after = is->shared;
        if (!is->o.meta.deleted || !before || !after)
                return false;
        for (size_t i = 0; i < after->n_finalizers; i++)
                if (!has_string(before->finalizers, before->n_finalizers, after->finalizers[i]))
                        return true;
        return before->n_finalizers != after->n_finalizers;
}

/* Does the change of a claim concern the status of the ComputeDomain that owns it? */
static bool differs_for_owner(const struct claim_record *was, const struct claim_record *is) {
        return !was || !is || !streq(was->owner, is->owner) || was->full != is->full ||
               !was->o.meta.deleted != !is->o.meta.deleted || !streq(was->o.meta.uid, is->o.meta.uid) ||
               differs_in_finalizers(was, is);
}

static bool queue_cd(void *u, const struct kube_object *o) {
        records_queue_domain(u, o->meta.uid);
        return true;
}

struct freed_name {
        struct controller *c;
        const char *ns, *name;
};

static bool queue_if_wants_name(void *u, const struct kube_object *o) {
        const struct freed_name *f = u;
        const struct cd_channel *x = ((const struct compute_domain *)o)->channel;
        if (x && streq(o->meta.ns, f->ns) &&
            (streq(x->template_name, f->name) || streq(x->shared_template_name, f->name) ||
             streq(x->claim_name, f->name)))
                queue_cd(f->c, o);
        return true;
}

/* Other ComputeDomains may wait for the name of this template or claim. */
static void queue_waiting(struct controller *c, const struct kube_object *o) {
        if (c->caches.cds)
                kube_informer_each(c->caches.cds, queue_if_wants_name,
                                   &(struct freed_name){ c, o->meta.ns, o->meta.name });
}

static void claim_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        struct allocation was, is;
        const struct claim_record *before = (const struct claim_record *)old,
                                  *after = (const struct claim_record *)now;
        pod_groups_claim_changed(c, before, after);
        shared_claims_changed(c, before, after);
        if (differs_for_owner(before, after)) {
                records_queue_domain(c, before ? before->owner : NULL);
                records_queue_domain(c, after ? after->owner : NULL);
                if (before && before->owner)
                        queue_waiting(c, old);
        }
        if (!streq(before ? before->awaits : NULL, after ? after->awaits : NULL)) {
                records_queue_domain(c, before ? before->awaits : NULL);
                records_queue_domain(c, after ? after->awaits : NULL);
        }
        if (!allocations_update(c->allocations, before, after, &was, &is))
                return;
        records_queue_node(c, node_of(&was));
        records_queue_node(c, node_of(&is));
        records_queue_domain(c, was.domain_uid);
        records_queue_domain(c, is.domain_uid);
        rack_domains_queue_of(
                c, records_domain(c, was.domain_uid)); /* the rack may have waited for this claim */
        fabrics_queue_of_node(c, node_of(&was));
        fabrics_queue_of_node(c, node_of(&is));
        fabrics_queue_of_domain(c, was.domain_uid);
        if (is.shared)
                fabrics_queue_of_domain(c, is.domain_uid);
}

/* The DaemonSet stays as long as a node needs a daemon, and a rollout waits for nodes that are Ready. */
static bool concerns_daemons(const struct node *was, const struct node *is) {
        const char *had = was ? was->imex_daemon : NULL, *has = is ? is->imex_daemon : NULL;
        return !streq(had, has) || (has && node_ready(was) != node_ready(is));
}

/* Containers on it may hold channels. A cluster can delete other Nodes all the time. */
static bool was_in_a_partition(const struct controller *c, const struct node *was) {
        const char *name = was->o.meta.name;
        return was->clique_id || records_node_clique(c, name) ||
               (c->caches.plugins &&
                kube_informer_first_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, name));
}

static void node_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct node *was = (const struct node *)old, *is = (const struct node *)now;
        const char *name = now ? now->meta.name : old->meta.name;
        node_reads_node_changed(c, was, is);
        shared_device_node_changed(c, was, is);
        labels_changed(c, was, is);
        bool confirms = was && is && node_out_of_service(is) && was->partial != is->partial;
        if (was && is && jd_equal(node_fields, was, is) && !confirms)
                return;
        if (is) {
                first_seen_forget(c->memory.missing_nodes, name);
                first_seen_forget(c->memory.missing_holders, name);
                records_exists(c, is->clique_id, name);
        } else {
                first_seen_forget(c->memory.awaited, name);
                records_missing(c, name, was_in_a_partition(c, was));
        }
        if (!is)
                note_used(c, name);
        if (was && was->imex_daemon && !is)
                records_vanished(c, was->clique_id ? was->clique_id : records_node_clique(c, name), name);
        records_queue_node(c, name);
        records_queue_domains_of_node(c, name);
        if (!was || !is)
                rack_domains_queue_by_node(c, name);
        if (concerns_daemons(was, is))
                records_queue_rollout(c);
        fabrics_queue_of_node(c, name);
        if (was)
                fabrics_queue_listing(c, name);
        if (is && (!was || !streq(was->clique_id, is->clique_id)))
                records_queue_fabric(c, is->clique_id);
        if (was)
                records_queue_domain(c, was->domain_uid);
}

static void slice_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct slice *s = (const struct slice *)(now ? now : old), *was = (const struct slice *)old;
        if (was) {
                records_queue_rack(c, slice_rack(was));
                records_queue_fabric(c, clique_of_slice(&was->o));
        }
        records_queue_rack(c, slice_rack(s));
        records_queue_fabric(c, clique_of_slice(&s->o));
        if (streq(s->o.meta.name, CD_SLICE_SHARED)) {
                shared_device_changed(c);
                shared_claims_queue_all(c);
        }
        if (!s->node)
                return;
        /* A rollout skips nodes that offer no devices. */
        if (!was || !now || !s->n_devices != !was->n_devices)
                records_queue_rollout(c);
        if (!was && c->synced_called)
                rack_domains_queue_listing(c, s->node);
        records_queue_node(c, s->node);
        records_queue_domains_of_node(c, s->node);
}

/* An object that the Go driver left has appeared, changed or disappeared. */
static void queue_go(struct controller *c, const char *uid) {
        if (!uid)
                return;
        records_queue_domain(c, uid);
        fabrics_queue_of_domain(c, uid);
        allocations_of_domain(c->allocations, uid, queue_place_node, c);
        kube_informer_each_at(c->caches.nodes, CONTROLLER_BY_DOMAIN, uid, queue_node_object, c);
}

/* A daemon claim template of a ComputeDomain is an object of the Go driver. */
static void rct_noted(struct controller *c, const struct rct *r) {
        if (streq(r->target, CD_TARGET_DAEMON))
                queue_go(c, r->domain_uid);
        else
                records_queue_domain(c, r->domain_uid);
}

static void rct_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct rct *was = (const struct rct *)old, *is = (const struct rct *)now;
        if (was && (!is || !streq(was->domain_uid, is->domain_uid)))
                rct_noted(c, was);
        if (is)
                rct_noted(c, is);
        if (!now)
                queue_waiting(c, old);
}

/* The plugin's Pod of a deleted Node is deleted earlier than its containers end. If this controller did not
 * see the Node, and the fabric object was lost, nothing else shows that they may hold channels. */
static void note_missing_node(struct controller *c, const struct plugin_pod *p) {
        if (p->node && p->host_channels && !records_node(c, p->node))
                records_missing(c, p->node, true);
}

/* A plugin's report about its host concerns the ComputeDomains with pods on this node. */
static void plugin_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct plugin_pod *was = (const struct plugin_pod *)old, *is = (const struct plugin_pod *)now;
        note_missing_node(c, is ? is : was);
        if (!streq(was ? was->host_channels : NULL, is ? is->host_channels : NULL) ||
            !streq(was ? was->node : NULL, is ? is->node : NULL)) {
                note_used(c, was ? was->node : NULL);
                note_used(c, is ? is->node : NULL);
        }
        fabrics_plugin_changed(c, was, is);
        if (is && ((is->unprepared && (!was || !streq(was->unprepared, is->unprepared))) ||
                   (is->refused && (!was || !streq(was->refused, is->refused)))))
                records_queue_rollout(c);
        if (was && is && streq(was->node, is->node) && plugin_pod_reports(was) == plugin_pod_reports(is) &&
            streq(was->host_state, is->host_state) && streq(was->host_reason, is->host_reason))
                return;
        const char *node = is ? is->node : was->node;
        if (node)
                allocations_on_node(c->allocations, node, watch_queue_place, c);
}

static void go_changed(struct controller *c, const char *was, const char *is) {
        queue_go(c, is);
        if (!streq(was, is))
                queue_go(c, was);
}

static void set_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct daemonset *was = (const struct daemonset *)old, *is = (const struct daemonset *)now;
        if (!was || !is || !jd_equal(daemonset_fields, was, is))
                go_changed(u, was ? was->domain_uid : NULL, is ? is->domain_uid : NULL);
}

static void clique_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct clique *was = (const struct clique *)old, *is = (const struct clique *)now;
        go_changed(u, was ? was->domain_uid : NULL, is ? is->domain_uid : NULL);
}

/* A daemon's Pod of the Go driver also keeps this driver's daemon off its node. */
static void pod_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct pod *was = (const struct pod *)old, *is = (const struct pod *)now;
        if (was && is && jd_equal(pod_fields, was, is))
                return;
        go_changed(c, was ? was->domain_uid : NULL, is ? is->domain_uid : NULL);
        records_queue_node(c, is ? is->node : was->node);
}

static void fabric_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        fabrics_changed(u, (const struct compute_domain_fabric *)old,
                        (const struct compute_domain_fabric *)now);
}

/* A daemon's report concerns its partition, and the ComputeDomains that its node should join or has joined.
 */
static void daemon_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = u;
        const struct daemon_pod *was = (const struct daemon_pod *)old, *is = (const struct daemon_pod *)now;
        if (was && is && jd_equal(daemon_pod_fields, was, is))
                return;
        const char *node = is ? is->pod.node : was->pod.node;
        node_reads_daemon_changed(c, was, is);
        daemons_pod_changed(c, was, is);
        if (was)
                records_queue_fabric(c, was->pod.clique_id);
        if (is)
                records_queue_fabric(c, is->pod.clique_id);
        if (!node)
                return;
        fabrics_queue_of_node(c, node);
        fabrics_queue_listing(c, node);
        records_queue_node(c, node);
        allocations_on_node(c->allocations, node, watch_queue_place, c);
}

static void daemon_set_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct daemonset *was = (const struct daemonset *)old, *is = (const struct daemonset *)now;
        if (!was || !is || !jd_equal(daemonset_fields, was, is))
                records_queue_daemons(u);
}

static void daemon_rct_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        records_queue_daemons(u);
}

static void auto_pod_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct auto_pod *was = (const struct auto_pod *)old, *is = (const struct auto_pod *)now;
        if (was && is && jd_equal(auto_pod_fields, was, is))
                return;
        records_queue_auto(u, was ? was->key : NULL);
        records_queue_auto(u, is ? is->key : NULL);
}

/* ---- start and end ---- */

static void watch_evidence(struct controller *c);

static void all_synced(struct controller *c) {
        if (!records_synced(c))
                return;
        if (c->leading)
                watch_queue_all(c);
        if (c->synced_called)
                return;
        c->synced_called = true;
        c->memory.complete_since = clock_mono_s();
        if (c->synced)
                c->synced(c->synced_u);
}

/* Lists ComputeDomains and claims only after the labels and objects that they justify, so that the controller
 * never sees a label without the claim that existed before it. */
static void watch_on_synced(void *u) {
        struct controller *c = u;
        if (!c->caches.cds && kube_informer_synced(c->caches.nodes) &&
            kube_informer_synced(c->caches.slices) && kube_informer_synced(c->caches.rcts) &&
            records_go_synced(c))
                watch_evidence(c);
        all_synced(c);
}

static void on_current(void *u, bool is) {
        records_on_current(u, is);
}

static void watch_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        if (e)
                log_warn("watch fails", kv_str("resource", res->plural), kv_err(e));
        else
                log_info("watch works again", kv_str("resource", res->plural));
}

static void watch_on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        log_warn("object cannot be read", kv_str("resource", res->plural), kv_err(e));
}

#define CACHE(name, resource, type, table, ...)                                                              \
        kube_informer_new(c->client, &(struct kube_informer_options){ .res = &(resource),                    \
                                                                      .fields = (table),                     \
                                                                      .size = sizeof(type),                  \
                                                                      .changed = name##_changed,             \
                                                                      .failing = watch_on_failing,           \
                                                                      .undecodable = watch_on_undecodable,   \
                                                                      __VA_ARGS__ })
#define OURS(...) .synced = watch_on_synced, .u = c, __VA_ARGS__

/* Root on a node can create a Pod with any label by a static Pod, whose mirror Pod has this annotation. The
 * Pods of DaemonSets do not have it. */
static bool is_no_mirror(void *u, const struct kube_object *o) {
        return !((const struct pod *)o)->mirror;
}

/* Watches the objects that the Go driver left. This driver's daemons have the same label, and are excluded by
 * their component label. */
static void watch_namespace(struct controller *c, struct controller_namespace *n) {
        n->sets = CACHE(set, kube_daemonsets, struct daemonset, daemonset_fields,
                        OURS(.current = on_current, .ns = n->ns, .label_selector = CD_LABEL,
                             .index = { set_domain }));
        n->pods = CACHE(pod, kube_pods, struct pod, pod_fields,
                        OURS(.current = on_current, .ns = n->ns,
                             .label_selector = CD_LABEL "," CD_LABEL_COMPONENT "!=" CD_DAEMON_OBJECT,
                             .trim = pod_trim, .keep = is_no_mirror, .index = { pod_domain, pod_node }));
        n->cliques = CACHE(clique, kube_cliques, struct clique, clique_fields,
                           OURS(.current = on_current, .ns = n->ns, .index = { clique_domain }));
}

static void watch_go(struct controller *c) {
        c->caches.namespaces = xnew_n(struct controller_namespace, c->config->n_namespaces);
        c->caches.n_namespaces = c->config->n_namespaces;
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                c->caches.namespaces[i].ns = c->config->namespaces[i];
                watch_namespace(c, &c->caches.namespaces[i]);
        }
}

static void watch_plugins(struct controller *c) {
        c->caches.plugins =
                CACHE(plugin, kube_pods, struct plugin_pod, plugin_pod_fields,
                      OURS(.current = on_current, .ns = c->config->ns,
                           .label_selector = c->config->plugin_selector, .index = { plugin_node }));
}

static void namespace_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        rack_domains_namespace_changed(u, (const struct rack_namespace *)old,
                                       (const struct rack_namespace *)now);
}

static void watch_evidence(struct controller *c) {
        c->caches.cds = CACHE(cd, kube_compute_domains, struct compute_domain, compute_domain_fields,
                              OURS(.current = on_current, .index = { uid_of, cd_rack }));
        c->caches.claims = CACHE(
                claim, kube_resource_claims, struct claim_record, claim_fields,
                OURS(.current = on_current, .decoded_size = sizeof(struct claim), .kept = claim_record_fields,
                     .trim = mode_assigns_channels(c->mode) ? claim_record_of_own : claim_record_of,
                     .keep = claim_is_ours,
                     .index = { claim_awaited, claim_made_for, claim_grouped, claim_named }));
}

static void watch_fabrics(struct controller *c) {
        c->leases = leases_new(c->client, c->queue);
        c->caches.fabrics =
                CACHE(fabric, kube_fabrics, struct compute_domain_fabric, compute_domain_fabric_fields,
                      OURS(.current = on_current, .keys = fabrics_keys));
}

#define OF_DAEMONS .ns = c->config->ns, .label_selector = CD_LABEL_COMPONENT "=" CD_DAEMON_OBJECT

static void watch_daemons(struct controller *c) {
        c->caches.daemons = CACHE(daemon, kube_pods, struct daemon_pod, daemon_pod_fields,
                                  OURS(.current = on_current, .trim = pod_trim, .keep = is_no_mirror,
                                       .index = { daemon_node, daemon_clique }, OF_DAEMONS));
        c->caches.daemon_sets =
                CACHE(daemon_set, kube_daemonsets, struct daemonset, daemonset_fields, OURS(OF_DAEMONS));
        c->caches.daemon_rcts =
                CACHE(daemon_rct, kube_resource_claim_templates, struct rct, rct_fields, OURS(OF_DAEMONS));
}

void watch_start(struct controller *c) {
        c->caches.nodes = CACHE(node, kube_nodes, struct node, node_fields,
                                OURS(.current = on_current, .limit = 100 /* 20 to 100 KiB each */,
                                     .trim = node_trim, .inherit = node_inherit, .kept = node_kept_fields,
                                     .index = { node_domain, node_clique }));
        c->caches.slices = CACHE(slice, kube_resource_slices, struct slice, slice_fields,
                                 OURS(.current = on_current, .field_selector = "spec.driver=" CD_DRIVER,
                                      .trim = slice_trim, .kept = slice_kept_fields, .keep = slice_is_ours,
                                      .index = { slice_node, rack_of_slice, clique_of_slice }));
        c->caches.rcts =
                CACHE(rct, kube_resource_claim_templates, struct rct, rct_fields,
                      OURS(.current = on_current, .label_selector = CD_LABEL, .index = { rct_domain }));
        if (c->config->racks)
                c->caches.rack_namespaces =
                        CACHE(namespace, kube_namespaces, struct rack_namespace, rack_namespace_fields,
                              OURS(.current = on_current, .metadata_only = true,
                                   .label_selector = CD_LABEL_RACK_DOMAINS));
        if (c->config->auto_domains)
                c->caches.auto_pods =
                        CACHE(auto_pod, kube_pods, struct auto_pod, auto_pod_meta_fields,
                              OURS(.current = on_current, .metadata_only = true,
                                   .decoded_size = sizeof(struct auto_pod_meta), .kept = auto_pod_fields,
                                   .trim = auto_pod_trim, .label_selector = CD_LABEL_AUTO "=enabled",
                                   .field_selector = KUBE_PODS_NOT_ENDED, .index = { auto_pod_domain }));
        watch_fabrics(c);
        watch_daemons(c);
        watch_go(c);
        if (*c->config->plugin_selector)
                watch_plugins(c);
}

void watch_stop(struct controller *c) {
        for (size_t i = 0; i < ARRAY_LEN(c->caches.all); i++)
                kube_informer_free(c->caches.all[i]);
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                kube_informer_free(c->caches.namespaces[i].sets);
                kube_informer_free(c->caches.namespaces[i].pods);
                kube_informer_free(c->caches.namespaces[i].cliques);
        }
        free(c->caches.namespaces);
}

#define QUEUE(fn, type)                                                                                      \
        static bool fn(void *u, const struct kube_object *o) {                                               \
                records_queue_domain(u, ((const struct type *)o)->domain_uid);                               \
                return true;                                                                                 \
        }
QUEUE(queue_rct, rct)
QUEUE(queue_label, node)
QUEUE(queue_set, daemonset)
QUEUE(queue_clique, clique)

/* Queues everything once. This also finds objects and labels of ComputeDomains that no longer exist. A key
 * that needs no change costs one pass. */
void watch_queue_all(struct controller *c) {
        log_info("all caches are filled, reconciling everything",
                 kv_int("computeDomains", kube_informer_count(c->caches.cds)),
                 kv_int("nodes", kube_informer_count(c->caches.nodes)),
                 kv_int("claims", kube_informer_count(c->caches.claims)));
        kube_informer_each(c->caches.daemons, records_note_orphan, c);
        kube_informer_each(c->caches.cds, queue_cd, c);
        kube_informer_each(c->caches.nodes, queue_node_object, c);
        kube_informer_each(c->caches.nodes, queue_label, c);
        kube_informer_each(c->caches.rcts, queue_rct, c);
        rack_domains_queue_all(c);
        rack_domains_report_labels(c);
        auto_domains_queue_all(c);
        fabrics_queue_all(c);
        records_queue_daemons(c);
        shared_device_begin(c);
        shared_claims_queue_all(c);
        pod_groups_report_all(c);
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                kube_informer_each(c->caches.namespaces[i].sets, queue_set, c);
                kube_informer_each(c->caches.namespaces[i].pods, queue_pod_domain, c);
                kube_informer_each(c->caches.namespaces[i].cliques, queue_clique, c);
        }
}
