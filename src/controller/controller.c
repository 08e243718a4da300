/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <malloc.h>
#include <string.h>

#include "api/names.h"
#include "base/log.h"
#include "controller/auto_domains.h"
#include "controller/controller_metrics.h"
#include "controller/daemons.h"
#include "controller/evictions.h"
#include "controller/fabric_memory.h"
#include "controller/fabrics.h"
#include "controller/labels.h"
#include "controller/node_reads.h"
#include "controller/rack_domains.h"
#include "controller/reconcile.h"
#include "controller/removals.h"
#include "controller/pod_groups.h"
#include "controller/shared_claims.h"
#include "controller/shared_device.h"
#include "controller/shortages.h"
#include "controller/watch.h"
#include "rules/racks.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 30000, FORGET_S = 3600 /* facts that nobody records */ };

/* Lists of a large cluster and bursts of decisions fragment the heap. Return unused pages to the system. */
static void on_calm(void *u) {
        writes_expire(((struct controller *)u)->writes);
        malloc_trim(0);
}

static void on_found(void *u, enum live_read_kind what, yyjson_val *object) {
        struct controller *c = u;
        struct kube_informer *const caches[] = { [LIVE_READ_DOMAIN] = c->caches.cds,
                                                 [LIVE_READ_CLAIM] = c->caches.claims,
                                                 [LIVE_READ_NODE] = c->caches.nodes };
        kube_informer_answer(caches[what], object);
}

/* The server may serve other versions after an upgrade. The device of shared claims needs one of them. */
static void note_resource_api(struct controller *c) {
        const char *api = kube_resource_api(c->client);
        if (streq(api, c->settings.resource_api))
                return;
        c->settings.resource_api = api;
        shared_device_changed(c);
}

static void controller_on_key(void *u, const char *text) {
        struct controller *c = u;
        struct key key = key_parse(text);
        if (!c->leading || !records_synced(c))
                return;
        uint64_t begin = uv_hrtime();
        records_resume(c, text);
        records_calm_later(c);
        records_catch_up(c);
        note_resource_api(c);
        switch (key.kind) {
        case KEY_DOMAIN:
                reconcile_domain(c, key.name);
                break;
        case KEY_NODE:
                labels_reconcile(c, key.name);
                break;
        case KEY_RACK:
                rack_domains_reconcile(c, key.name);
                break;
        case KEY_FABRIC:
                fabrics_reconcile(c, key.name);
                break;
        case KEY_SHARED:
                shared_device_reconcile(c);
                break;
        case KEY_AUTO:
                auto_domains_reconcile(c, key.name);
                break;
        case KEY_CLAIM:
                shared_claims_reconcile(c, key.name);
                break;
        case KEY_DAEMONS:
        case KEY_KINDS:
                daemons_reconcile(c);
                break;
        }
        metric_observe(c->m.reconcile, (double)(uv_hrtime() - begin) / 1e9, LABELS(key_kind_name(key.kind)));
}

/* The server has this version's schema of ComputeDomains now. Write the parts of statuses that it dropped
 * before. */
static void on_schema(void *u) {
        struct controller *c = u;
        if (!c->no_conditions)
                return;
        c->no_conditions = false;
        if (c->leading && records_synced(c))
                watch_queue_all(c);
}

static bool controller_queue_domain(void *u, const struct kube_object *o) {
        records_queue_domain(u, o->meta.uid);
        return true;
}

/* The pods of all ComputeDomains in a partition wait for its assignments. */
static bool assigns(const char *requester) {
        return key_parse(requester).kind == KEY_FABRIC;
}

/* A Node's label that cannot be written concerns the ComputeDomains of this Node. With assigned channels, it
 * may concern all, and so may a DaemonSet or fabric object that cannot be written. */
static void on_write_failing(void *u, const char *requester) {
        struct controller *c = u;
        struct key key = key_parse(requester);
        if (key.kind == KEY_NODE && !mode_assigns_channels(c->mode))
                records_queue_domains_of_node(c, key.name);
        else if (key.kind == KEY_NODE || key.kind == KEY_DAEMONS || key.kind == KEY_FABRIC ||
                 key.kind == KEY_SHARED)
                kube_informer_each(c->caches.cds, controller_queue_domain, c);
}

void controller_start(struct controller *c, const struct controller_options *o) {
        const struct config *config = o->config;
        struct kube_client *client = o->client;
        *c = (struct controller){
                .synced = o->synced,
                .synced_u = o->u,
                .config = config,
                .mode = config->mode,
                .client = client,
                .events = o->events,
                .metrics = o->metrics,
                .allocations = allocations_new(),
                .shortages = shortages_new(),
                .memory = { .missing_nodes = first_seen_new(FORGET_S),
                            .missing_holders = first_seen_new(FORGET_S),
                            .vanished = first_seen_new(FORGET_S),
                            .known = first_seen_new(0),
                            .older = first_seen_new(FORGET_S),
                            .restored = first_seen_new(FORGET_S),
                            .reporting = first_seen_new(0),
                            .releasing = first_seen_new(FORGET_S),
                            .awaited = first_seen_new(FORGET_S),
                            .empty = first_seen_new(FORGET_S),
                            .brought = first_seen_new(RACKS_EMPTY_S),
                            .undone = first_seen_new(FORGET_S) },
                .settings = config->daemon,
        };
        c->settings.resource_api = kube_resource_api(client);
        controller_metrics_add(c);
        c->queue = work_queue_new(kube_client_loop(client), BACKOFF_MIN_MS, BACKOFF_MAX_MS, controller_on_key,
                                  c);
        c->writes = writes_new(&(struct writes_options){ .client = client,
                                                         .queue = c->queue,
                                                         .manager = CD_FIELD_MANAGER,
                                                         .total = c->m.writes,
                                                         .error_changed = on_write_failing,
                                                         .is_urgent = assigns,
                                                         .u = c });
        c->live_read = live_read_new(&(struct live_read_options){
                .client = client, .queue = c->queue, .found = on_found, .u = c });
        c->node_reads = node_reads_new(c);
        c->crds = crds_new(&(struct crds_options){ .client = client,
                                                   .domains = config->apply_crds,
                                                   .failing = c->m.crds,
                                                   .applied = on_schema,
                                                   .u = c });
        loop_timer_init(&c->calm, kube_client_loop(client), on_calm, c);
        c->evictions = evictions_new(c);
        c->started = true;
        watch_start(c);
}

void controller_lead(struct controller *c) {
        c->leading = true;
        if (!c->started)
                return;
        crds_lead(c->crds);
        if (records_synced(c))
                watch_queue_all(c);
}

void controller_stop(struct controller *c) {
        if (!c->started)
                return;
        c->started = c->leading = false;
        evictions_free(c->evictions);
        records_done(c);
        shared_device_stop(c);
        loop_timer_done(&c->calm);
        crds_free(c->crds);
        live_read_free(c->live_read);
        leases_free(c->leases);
        node_reads_free(c->node_reads);
        pod_groups_free(c->pod_groups);
        writes_free(c->writes);
        work_queue_free(c->queue);
        watch_stop(c);
        allocations_free(c->allocations);
        shortages_free(c->shortages);
        fabric_memory_done(c);
        removals_done(c);
        first_seen_free(c->memory.missing_nodes);
        first_seen_free(c->memory.missing_holders);
        first_seen_free(c->memory.vanished);
        first_seen_free(c->memory.known);
        first_seen_free(c->memory.older);
        first_seen_free(c->memory.restored);
        first_seen_free(c->memory.reporting);
        first_seen_free(c->memory.releasing);
        first_seen_free(c->memory.awaited);
        first_seen_free(c->memory.empty);
        first_seen_free(c->memory.brought);
        first_seen_free(c->memory.undone);
}

/* ---- dump ---- */

static void dump_cache(const char *resource, const char *ns, const struct kube_informer *i) {
        if (i)
                log_info("cache", kv_str("resource", resource), kv_str("namespace", str_or(ns, "")),
                         kv_int("objects", kube_informer_count(i)),
                         kv_bool("synced", kube_informer_synced(i)),
                         kv_bool("current", kube_informer_current(i)));
}

static void dump_caches(const struct controller *c) {
        dump_cache("computedomains", NULL, c->caches.cds);
        dump_cache("resourceclaims", NULL, c->caches.claims);
        dump_cache("nodes", NULL, c->caches.nodes);
        dump_cache("resourceslices", NULL, c->caches.slices);
        dump_cache("resourceclaimtemplates", NULL, c->caches.rcts);
        dump_cache("pods of the kubelet plugin", NULL, c->caches.plugins);
        dump_cache("namespaces that want racks", NULL, c->caches.rack_namespaces);
        dump_cache("pods that want a ComputeDomain", NULL, c->caches.auto_pods);
        dump_cache("computedomainfabrics", NULL, c->caches.fabrics);
        dump_cache("pods of daemons", c->config->ns, c->caches.daemons);
        dump_cache("podgroups", NULL, c->caches.pod_groups);
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                const struct controller_namespace *n = &c->caches.namespaces[i];
                dump_cache("daemonsets", n->ns, n->sets);
                dump_cache("pods", n->ns, n->pods);
                dump_cache("computedomaincliques", n->ns, n->cliques);
        }
}

static bool dump_domain(void *u, const struct kube_object *o) {
        const struct controller *c = u;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        key_render(KEY_DOMAIN, o->meta.uid, &key);
        log_info("domain", kv_str("namespace", o->meta.ns), kv_str("name", o->meta.name),
                 kv_str("uid", o->meta.uid), kv_str("status", str_or(cd->status, "")),
                 kv_int("ready", cd->nodes_ready), kv_int("wanted", cd->nodes_wanted),
                 kv_bool("deleting", o->meta.deleted != 0),
                 kv_str("write_error", str_or(writes_error(c->writes, buf_str(&key)), "")));
        return true;
}

void controller_dump(const struct controller *c) {
        if (!c->started || !c->caches.cds) { /* it still looks at the CustomResourceDefinitions */
                log_info("controller", kv_bool("started", false));
                return;
        }
        log_info("controller", kv_bool("started", true), kv_bool("leads", c->leading),
                 kv_bool("synced", records_synced(c)), kv_str("stale", str_or(records_stale(c), "")),
                 kv_int("domains", kube_informer_count(c->caches.cds)),
                 kv_int("held", HASH_COUNT(c->memory.paused)), kv_int("queued", work_queue_depth(c->queue)),
                 kv_int("writes_in_flight", writes_in_flight(c->writes)),
                 kv_int("writes_remembered", writes_remembered(c->writes)),
                 kv_int("questions_remembered", live_read_count(c->live_read)));
        dump_caches(c);
        kube_informer_each(c->caches.cds, dump_domain, (void *)(uintptr_t)c);
        for (const struct controller_paused *h = c->memory.paused; h; h = h->hh.next)
                log_info("paused until no cache is stale", kv_str("key", h->key));
        writes_dump(c->writes);
}
