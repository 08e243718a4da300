/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller_metrics.h"

#include "api/states.h"
#include "base/clock.h"
#include "controller/checks.h"

#define OURS "nvidia_dra_compute_domain_controller_"
#define DOMAIN "nvidia_dra_compute_domain_"

static const double seconds[] = { 0.0001, 0.0005, 0.002, 0.01, 0.05, 0.25, 1 };

static struct metric *controller_metrics_register(struct controller *c, enum metric_type t, const char *name,
                                                  const char *help, const char *const *labels) {
        return t == METRIC_HISTOGRAM
                       ? metric_add_histogram(c->metrics, name, help, labels, seconds, ARRAY_LEN(seconds))
                       : metric_add(c->metrics, t, name, help, labels);
}

/* The labels of a ComputeDomain are not "namespace" and "name", because Prometheus adds its own label
 * "namespace", that of the controller's Pod. */
static void add_of_domains(struct controller *c) {
        struct controller_metrics *m = &c->m;
        m->info = controller_metrics_register(c, METRIC_GAUGE, DOMAIN "info",
                                              "ComputeDomains by status: Ready, NotReady.", LABELS("status"));
        m->ready = controller_metrics_register(c, METRIC_GAUGE, DOMAIN "ready",
                                               "1 while the ComputeDomain is Ready, otherwise 0.",
                                               LABELS("domain_namespace", "domain"));
        m->not_ready_s =
                controller_metrics_register(c, METRIC_GAUGE, DOMAIN "not_ready_seconds",
                                            "How long the ComputeDomain has not been Ready; 0 while it is.",
                                            LABELS("domain_namespace", "domain"));
        m->nodes = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "nodes",
                "Nodes of the ComputeDomain by state: ready; starting; failing, which needs attention; "
                "lost, which does not answer; leaving, which has no claim left. With host-managed IMEX, "
                "ready is UP, failing is DEGRADED or DOWN, and lost has no valid report.",
                LABELS("domain_namespace", "domain", "state"));
        m->peers_missing = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "peers_missing",
                "Nodes of the ComputeDomain whose nvidia-imex is not connected to all of its peers.",
                LABELS("domain_namespace", "domain"));
        m->without_series = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "without_series",
                "ComputeDomains without own series. At most 1000 have them, those that are not Ready first.",
                NULL);
        m->gpu_nodes = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "gpu_nodes",
                "Nodes with an NVIDIA GPU, by whether a plugin has published a ResourceSlice for them: "
                "present, missing.",
                LABELS("plugin"));
}

static void add_of_fabrics(struct controller *c) {
        struct controller_metrics *m = &c->m;
        m->channels = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "fabric_channels",
                "IMEX channels of the NVLink partition by state: used; releasing, which is no "
                "longer needed but may be held by a node; free. Only with imex.isolation=channel.",
                LABELS("fabric", "state"));
        m->fabric_problem = controller_metrics_register(
                c, METRIC_GAUGE, DOMAIN "fabric_problem",
                "1 while the ComputeDomainFabric has this condition. Only with imex.isolation=channel.",
                LABELS("fabric", "condition"));
}

void controller_metrics_add(struct controller *c) {
        struct controller_metrics *m = &c->m;
        add_of_domains(c);
        if (mode_assigns_channels(c->mode))
                add_of_fabrics(c);
        m->checks_failed = controller_metrics_register(
                c, METRIC_COUNTER, OURS "checks_failed_total",
                "Decisions that failed the check of their rule and were not written, by rule: "
                "assignment, channels, label, rack, status. Each is a bug of the driver.",
                LABELS("rule"));
        for (int i = 0; i < CHECKS_RULES; i++)
                metric_touch(m->checks_failed, LABELS(checks_rule_name((enum checks_rule)i)));
        m->leader = controller_metrics_register(c, METRIC_GAUGE, OURS "leader", "1 while this replica leads.",
                                                NULL);
        m->depth = controller_metrics_register(c, METRIC_GAUGE, OURS "queue_depth",
                                               "Objects that wait for a decision.", NULL);
        m->waiting = controller_metrics_register(
                c, METRIC_GAUGE, OURS "writes_waiting",
                "Nodes and ComputeDomains with a change that waits until the API server has answered the "
                "request before it.",
                NULL);
        m->in_flight =
                controller_metrics_register(c, METRIC_GAUGE, OURS "writes_in_flight",
                                            "Writes to the API server that are not answered yet.", NULL);
        m->writes = controller_metrics_register(c, METRIC_COUNTER, OURS "writes_total",
                                                "Writes to the API server, except Events.",
                                                LABELS("resource", "verb", "result"));
        m->stale = controller_metrics_register(
                c, METRIC_GAUGE, OURS "cache_stale",
                "1 while a cache is stale, so that nothing is removed. The log names the resource.", NULL);
        m->paused = controller_metrics_register(
                c, METRIC_GAUGE, OURS "removals_paused",
                "Nodes and ComputeDomains with a removal that is paused while a cache is stale.", NULL);
        m->crds = controller_metrics_register(
                c, METRIC_GAUGE, OURS "crd_failing",
                "1 while a missing CustomResourceDefinition cannot be created, or the leader cannot "
                "update an old one. The log has the reason, and the controller retries at least once a "
                "minute.",
                LABELS("crd"));
        m->reconcile = controller_metrics_register(c, METRIC_HISTOGRAM, OURS "reconcile_seconds",
                                                   "Time to reconcile one object.", LABELS("kind"));
}

/* ---- ComputeDomains ---- */

struct walk {
        struct controller *c;
        int64_t now;
        bool ready;      /* this walk sets the series of ComputeDomains that are Ready, or of the others */
        size_t n, n_set; /* ComputeDomains, and those with their own series */
};

static bool controller_metrics_is_ready(const struct compute_domain *cd) {
        return domain_status_decode(cd->status) == DOMAIN_READY;
}

/* Since when it has not been Ready; 0: unknown, with a schema that drops conditions. */
static int64_t not_ready_since(const struct compute_domain *cd) {
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, "Ready"))
                        return cd->conditions[i].last_transition;
        return cd->status ? 0 : cd->o.meta.created;
}

static void set_one(const struct walk *t, const struct compute_domain *cd) {
        const struct controller_metrics *m = &t->c->m;
        const char *ns = cd->o.meta.ns, *name = cd->o.meta.name;
        const struct node_counts *counts = records_node_counts(t->c, cd->o.meta.uid);
        int64_t since = controller_metrics_is_ready(cd) ? t->now : not_ready_since(cd);
        metric_set(m->ready, controller_metrics_is_ready(cd), LABELS(ns, name));
        if (since)
                metric_set(m->not_ready_s, t->now > since ? (double)(t->now - since) : 0, LABELS(ns, name));
        if (!counts)
                return;
        for (size_t i = 0; i < NODE_COUNTS_STATES; i++)
                metric_set(m->nodes, (double)counts->nodes[i], LABELS(ns, name, node_counts_names[i]));
        metric_set(m->peers_missing, (double)counts->peers_missing, LABELS(ns, name));
}

static bool set_domain(void *u, const struct kube_object *o) {
        struct walk *t = u;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        if (controller_metrics_is_ready(cd) != t->ready)
                return true;
        t->n++;
        if (t->n_set < CONTROLLER_SERIES_MAX && !cd->o.meta.deleted) {
                set_one(t, cd);
                t->n_set++;
        }
        return true;
}

/* Those that are not Ready come first, because an operator may need them. */
static void set_domains(struct controller *c) {
        struct walk t = { .c = c, .now = clock_wall_s() };
        size_t not_ready;
        kube_informer_each(c->caches.cds, set_domain, &t);
        not_ready = t.n;
        t.ready = true;
        kube_informer_each(c->caches.cds, set_domain, &t);
        metric_set(c->m.info, (double)(t.n - not_ready), LABELS("Ready"));
        metric_set(c->m.info, (double)not_ready, LABELS("NotReady"));
        metric_set(c->m.without_series, t.n_set < CONTROLLER_SERIES_MAX ? 0 : (double)(t.n - t.n_set), NULL);
}

/* ---- nodes ---- */

struct gpu_nodes {
        const struct controller *c;
        size_t with, without;
};

/* The kubelet removes the ResourceSlices of a plugin that no longer runs. */
static bool count_node(void *u, const struct kube_object *o) {
        struct gpu_nodes *g = u;
        if (!node_has_gpu((const struct node *)o))
                return true;
        if (kube_informer_first_at(g->c->caches.slices, CONTROLLER_BY_NODE, o->meta.name))
                g->with++;
        else
                g->without++;
        return true;
}

static void set_nodes(struct controller *c) {
        struct gpu_nodes g = { .c = c };
        kube_informer_each(c->caches.nodes, count_node, &g);
        metric_set(c->m.gpu_nodes, (double)g.with, LABELS("present"));
        metric_set(c->m.gpu_nodes, (double)g.without, LABELS("missing"));
}

/* ---- partitions ---- */

static bool set_fabric(void *u, const struct kube_object *o) {
        const struct controller_metrics *m = &((const struct controller *)u)->m;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        size_t releasing = 0;
        int64_t own = f->channel_count < FABRIC_CHANNELS_MAX ? f->channel_count : FABRIC_CHANNELS_MAX,
                free = own - 1 - (int64_t)f->n_channels;
        for (size_t i = 0; i < f->n_channels; i++)
                releasing += f->channels[i].releasing != 0;
        metric_set(m->channels, (double)(f->n_channels - releasing),
                   LABELS(o->meta.name, CHANNEL_STATE_USED));
        metric_set(m->channels, (double)releasing, LABELS(o->meta.name, CHANNEL_STATE_RELEASING));
        metric_set(m->channels, free > 0 ? (double)free : 0, LABELS(o->meta.name, CHANNEL_STATE_FREE));
        for (size_t i = 0; i < f->n_conditions; i++)
                metric_set(m->fabric_problem, condition_status_decode(f->conditions[i].status) == STATUS_TRUE,
                           LABELS(o->meta.name, f->conditions[i].type));
        return true;
}

static void set_fabrics(struct controller *c) {
        if (!c->m.channels)
                return;
        metric_clear(c->m.channels);
        metric_clear(c->m.fabric_problem);
        if (c->leading && records_synced(c))
                kube_informer_each(c->caches.fabrics, set_fabric, c);
}

void controller_metrics(struct controller *c) {
        struct controller_metrics *m = &c->m;
        if (!c->started)
                return;
        metric_clear(m->ready);
        metric_clear(m->not_ready_s);
        metric_clear(m->nodes);
        metric_clear(m->peers_missing);
        /* Only the leader sets the series of ComputeDomains and nodes. Otherwise a sum over the replicas
         * would count them twice. */
        if (c->leading && records_synced(c)) {
                set_domains(c);
                set_nodes(c);
        }
        set_fabrics(c);
        metric_set(m->leader, c->leading, NULL);
        metric_set(m->depth, (double)work_queue_depth(c->queue), NULL);
        metric_set(m->waiting, (double)writes_waiting(c->writes), NULL);
        metric_set(m->stale, records_stale(c) != NULL, NULL);
        metric_set(m->paused, HASH_COUNT(c->memory.paused), NULL);
        metric_set(m->in_flight, (double)writes_in_flight(c->writes), NULL);
}
