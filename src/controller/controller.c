/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <malloc.h>
#include <string.h>

#include "api/names.h"
#include "base/log.h"
#include "rules/rules.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 30000, CALM_MS = 5000 };

/* Lists of a large cluster and bursts of decisions leave the heap full of holes: give the pages back. */
static void on_calm(void *u) {
        malloc_trim(0);
}

static void release(struct controller *c, struct controller_held *h) {
        HASH_DEL(c->held, h);
        free(h);
}

void controller__hold(struct controller *c, const char *key) {
        struct controller_held *h;
        size_t n = strlen(key) + 1;
        HASH_FIND_STR(c->held, key, h);
        if (h)
                return;
        if (!c->held)
                log_warn("a cache has lost touch with the server: labels, daemons, claim templates and "
                         "finalizers "
                         "that should go stay until it is back; what is new goes on",
                         kv_str("resource", str_or(controller__stale(c), "")), kv_str("first", key));
        h = xcalloc(1, sizeof *h + n);
        memcpy(h->key, key, n);
        HASH_ADD_STR(c->held, key, h);
}

void controller__on_current(struct controller *c, bool is) {
        if (!is || !c->held || controller__stale(c))
                return;
        log_info("all caches are in touch with the server again: what should go goes now",
                 kv_int("held", HASH_COUNT(c->held)));
        for (struct controller_held *h = c->held, *next; h; h = next) {
                next = h->hh.next;
                work_queue_add(c->queue, h->key);
                release(c, h);
        }
}

static void on_found(void *u, enum confirm_what what, yyjson_val *object) {
        struct controller *c = u;
        kube_informer_learn(what == CONFIRM_CLAIM ? c->claims : c->cds, object);
}

static void on_key(void *u, const char *key) {
        struct controller *c = u;
        if (!c->leading || !controller_synced(c))
                return;
        uint64_t begin = uv_hrtime();
        struct controller_held *held;
        HASH_FIND_STR(c->held, key, held);
        if (held)
                release(c, held);
        loop_timer_start(&c->calm, CALM_MS);
        controller__catch_up(c);
        bool domain = key[0] == 'd';
        c->settings.resource_api = kube_resource_api(c->client); /* it may have changed */
        if (domain)
                controller__reconcile_domain(c, key + 2);
        else
                controller__reconcile_node(c, key + 2);
        metric_observe(c->m.reconcile, (double)(uv_hrtime() - begin) / 1e9,
                       LABELS(domain ? "domain" : "node"));
}

static void queue(struct controller *c, char kind, const char *name) {
        struct buf key = BUF_INIT(1024);
        /* A follower has nothing to do with changes: it looks at everything when it begins to lead. */
        if (!c->leading || !name || !*name)
                return;
        buf_addf(&key, "%c/%s", kind, name);
        if (!key.failed)
                work_queue_add(c->queue, buf_str(&key));
        buf_done(&key);
}

void controller__queue_domain(struct controller *c, const char *uid) {
        queue(c, 'd', uid);
}

void controller__queue_node(struct controller *c, const char *name) {
        queue(c, 'n', name);
}

const struct compute_domain *controller__domain(const struct controller *c, const char *uid) {
        return uid ? (const struct compute_domain *)kube_informer_first_at(c->cds, CONTROLLER_BY_UID, uid)
                   : NULL;
}

const struct node *controller__node(const struct controller *c, const char *name) {
        return (const struct node *)kube_informer_get(c->nodes, NULL, name);
}

bool controller__owns(const struct controller *c, const struct compute_domain *cd, const struct rct *r) {
        return rules_own_template(cd, (const char *const *)c->config->namespaces, c->config->n_namespaces, r);
}

struct tracing {
        const struct controller *c;
        const struct compute_domain *cd;
        struct mode_traces traces;
};

static bool trace_template(void *u, const struct kube_object *o) {
        struct tracing *t = u;
        if (controller__owns(t->c, t->cd, (const struct rct *)o))
                mode_traces_add(&t->traces, (const struct rct *)o);
        return true;
}

struct mode_traces controller__traces(const struct controller *c, const char *uid,
                                      const struct compute_domain *cd) {
        struct tracing t = { c, cd, mode_traces_of(cd) };
        kube_informer_each_at(c->rcts, CONTROLLER_BY_DOMAIN, uid, trace_template, &t);
        return t.traces;
}

bool controller__other_mode(const struct controller *c, const struct compute_domain *cd) {
        return mode_is_other(c->mode, cd->mode, controller__traces(c, cd->o.meta.uid, cd));
}

struct newest {
        const struct slice *slice;
        const char *clique;
        bool attributes_tell; /* a device without the attribute cliqueID means a node without a clique */
};

static bool look_at_slice(void *u, const struct kube_object *o) {
        struct newest *n = u;
        const struct slice *s = (const struct slice *)o;
        const char *clique;
        if (streq(s->driver, CD_DRIVER) && slice_clique(s, &clique) &&
            (*clique || s->clique_id || n->attributes_tell) &&
            (!n->slice || o->meta.created >= n->slice->o.meta.created)) {
                n->slice = s;
                n->clique = clique;
        }
        return true;
}

const char *controller__node_clique(const struct controller *c, const char *node) {
        struct newest n = { .attributes_tell = c->mode->daemons };
        kube_informer_each_at(c->slices, CONTROLLER_BY_NODE, node, look_at_slice, &n);
        return n.clique;
}

/* The server's schema of ComputeDomains is ours now: what it dropped of statuses is written. */
static void on_schema(void *u) {
        struct controller *c = u;
        if (!c->no_conditions)
                return;
        c->no_conditions = false;
        if (c->leading && controller_synced(c))
                controller__queue_all(c);
}

/* A node whose label cannot be written is what its domains stand still for. */
static void on_write_trouble(void *u, const char *requester) {
        if (requester[0] == 'n')
                controller__queue_domains_of_node(u, requester + 2);
}

void controller_start(struct controller *c, const struct config *config, struct kube_client *client,
                      struct event_recorder *events, struct metrics *metrics, void (*synced)(void *u),
                      void *u) {
        *c = (struct controller){
                .synced = synced,
                .synced_u = u,
                .config = config,
                .mode = config->mode,
                .client = client,
                .events = events,
                .metrics = metrics,
                .placements = placements_new(),
                .seats = seats_new(
                        &(struct seats_source){ controller__name_nodes, controller__look_at_node, c }),
                .gone = gone_new(),
                .settings = {
                        .ns = config->ns,
                        .resource_api = kube_resource_api(client),
                        .image = config->image,
                        .log_verbosity = config->daemon_verbosity_text,
                        .gates = config->gates_text,
                        .max_nodes = config->max_nodes,
                        .pull_secrets = config->pull_secrets,
                        .n_pull_secrets = config->n_pull_secrets,
                        .priority_class = config->priority_class,
                        .requests = config->requests,
                        .limits = config->limits,
                        .pull_policy = config->pull_policy,
                        .json_log = config->json_log,
                        .labels = config->labels,
                        .n_labels = config->n_labels,
                        .annotations = config->annotations,
                        .n_annotations = config->n_annotations,
                },
        };
        controller__add_metrics(c);
        c->queue = work_queue_new(kube_client_loop(client), BACKOFF_MIN_MS, BACKOFF_MAX_MS, on_key, c);
        c->writes = writes_new(&(struct writes_options){ .client = client,
                                                         .queue = c->queue,
                                                         .manager = "compute-domain-controller",
                                                         .total = c->m.writes,
                                                         .told = on_write_trouble,
                                                         .u = c });
        c->confirm = confirm_new(
                &(struct confirm_options){ .client = client, .queue = c->queue, .found = on_found, .u = c });
        if (config->apply_crds)
                c->crds = crds_new(&(struct crds_options){
                        .client = client, .failing = c->m.crds, .applied = on_schema, .u = c });
        loop_timer_init(&c->calm, kube_client_loop(client), on_calm, c);
        c->started = true;
        controller__watch(c);
}

void controller_lead(struct controller *c) {
        c->leading = true;
        if (c->crds)
                crds_lead(c->crds);
        if (c->started && controller_synced(c))
                controller__queue_all(c);
}

bool controller_synced(const struct controller *c) {
        if (!c->started || !c->cds || !kube_informer_synced(c->cds) || !kube_informer_synced(c->claims) ||
            !kube_informer_synced(c->nodes) || !kube_informer_synced(c->slices) ||
            !kube_informer_synced(c->rcts) || (c->plugins && !kube_informer_synced(c->plugins)))
                return false;
        return !c->mode->daemons || controller__daemons_synced(c);
}

void controller__on_synced(struct controller *c) {
        if (!controller_synced(c))
                return;
        if (c->leading)
                controller__queue_all(c);
        if (c->told_synced)
                return;
        c->told_synced = true;
        if (c->synced)
                c->synced(c->synced_u);
}

void controller__forget_domain(struct controller_domain *d) {
        HASH_DEL(d->c->domains, d);
        kube_cancel(d->asking);
        kube_cancel(d->labelling);
        arena_free(d->holder_arena);
        arena_free(d->news_arena);
        free(d);
}

void controller_stop(struct controller *c) {
        if (!c->started)
                return;
        c->started = c->leading = false;
        for (struct controller_domain *d = c->domains, *next; d; d = next) {
                next = d->hh.next;
                controller__forget_domain(d);
        }
        loop_timer_done(&c->calm);
        while (c->held)
                release(c, c->held);
        crds_free(c->crds);
        confirm_free(c->confirm);
        writes_free(c->writes);
        work_queue_free(c->queue);
        controller__unwatch(c);
        placements_free(c->placements);
        seats_free(c->seats);
        gone_free(c->gone);
}
