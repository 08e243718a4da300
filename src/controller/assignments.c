/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/assignments.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "controller/go_domains.h"
#include "controller/removals.h"
#include "rules/message.h"

bool assignments_list(const struct compute_domain_fabric *f, const char *node) {
        for (size_t i = 0; node && i < f->n_domains; i++)
                if (fabric_assignment_of(&f->domains[i], node))
                        return true;
        return false;
}

bool assignments_list_at(const struct controller *c, const char *clique, const char *node) {
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        return f && assignments_list(f, node);
}

/* ---- which nodes ---- */

struct names {
        const char **list; /* not from the arena */
        size_t n, cap;
};

static void assignments_add_name(struct names *n, const char *name) {
        if (!name || !*name)
                return;
        GROW(n->list, n->n, n->cap);
        n->list[n->n++] = name;
}

static bool add_slice(void *u, const struct kube_object *o) {
        assignments_add_name(u, ((const struct slice *)o)->node);
        return true;
}

static bool assignments_add_node(void *u, const struct kube_object *o) {
        assignments_add_name(u, o->meta.name);
        return true;
}

static bool assignments_add_daemon(void *u, const struct kube_object *o) {
        assignments_add_name(u, ((const struct daemon_pod *)o)->pod.node);
        return true;
}

static int by_text(const void *x, const void *y) {
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void find_names(const struct controller *c, const struct compute_domain_fabric *f, const char *clique,
                       struct names *ret) {
        size_t n = 0;
        kube_informer_each_at(c->caches.slices, CONTROLLER_SLICES_BY_CLIQUE, clique, add_slice, ret);
        kube_informer_each_at(c->caches.nodes, CONTROLLER_NODES_BY_CLIQUE, clique, assignments_add_node, ret);
        kube_informer_each_at(c->caches.daemons, CONTROLLER_DAEMONS_BY_CLIQUE, clique, assignments_add_daemon,
                              ret);
        for (size_t i = 0; f && i < f->n_domains; i++)
                for (size_t k = 0; k < f->domains[i].n_assignments; k++)
                        assignments_add_name(ret, f->domains[i].assignments[k].node);
        for (size_t i = 0; f && i < f->n_removals; i++)
                assignments_add_name(ret, f->removals[i].node);
        if (ret->n)
                qsort(ret->list, ret->n, sizeof *ret->list, by_text);
        for (size_t i = 0; i < ret->n; i++)
                if (!n || !streq(ret->list[n - 1], ret->list[i]))
                        ret->list[n++] = ret->list[i];
        ret->n = n;
}

/* ---- facts from the caches ---- */

struct work {
        struct controller *c;
        const struct compute_domain_fabric *old;
        const char *clique, *key;
        struct assignments *out;
        int64_t now;
};

static const struct node *get_node(void *u, const char *name) {
        const struct work *w = u;
        return records_node(w->c, name);
}

static bool is_node_gone(void *u, const char *name) {
        struct work *w = u;
        return first_seen_for(w->c->memory.missing_nodes, name, ASSIGNMENT_NODE_MISSING_S, w->now,
                              &w->out->recheck_s);
}

static const char *get_slice(void *u, const char *node) {
        const struct work *w = u;
        return records_node_clique(w->c, node);
}

static const char *get_fabric(void *u, const char *clique) {
        const struct work *w = u;
        const struct compute_domain_fabric *f = records_fabric(w->c, clique);
        return f ? f->o.meta.uid : NULL;
}

struct visit {
        assignment_daemon_fn *daemon;
        assignment_plugin_fn *plugin;
        void *v;
};

static bool visit_daemon(void *u, const struct kube_object *o) {
        const struct visit *x = u;
        x->daemon(x->v, (const struct daemon_pod *)o);
        return true;
}

static void each_daemon(void *u, const char *node, assignment_daemon_fn *fn, void *v) {
        const struct work *w = u;
        kube_informer_each_at(w->c->caches.daemons, CONTROLLER_DAEMONS_BY_NODE, node, visit_daemon,
                              &(struct visit){ .daemon = fn, .v = v });
}

static bool visit_plugin(void *u, const struct kube_object *o) {
        const struct visit *x = u;
        x->plugin(x->v, (const struct plugin_pod *)o);
        return true;
}

static void each_plugin(void *u, const char *node, assignment_plugin_fn *fn, void *v) {
        const struct work *w = u;
        if (w->c->caches.plugins)
                kube_informer_each_at(w->c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, node, visit_plugin,
                                      &(struct visit){ .plugin = fn, .v = v });
}

static void each_allocation(void *u, const char *node, assignment_allocation_fn *fn, void *v) {
        const struct work *w = u;
        allocations_on_node(w->c->allocations, node, fn, v);
}

static const struct compute_domain *get_domain(void *u, const char *uid) {
        const struct work *w = u;
        return records_domain(w->c, uid);
}

/* A ComputeDomain that was formed in another mode gets no new nodes. One that the Go driver formed gets no
 * nodes of this driver. */
static bool assignments_takes(void *u, const struct compute_domain *cd, const char *current) {
        const struct controller *c = ((const struct work *)u)->c;
        if (!domain_takes(cd, current) || go_domains_is(c, cd->o.meta.uid))
                return false;
        return records_other_mode(c, cd) ? mode_formed_domains(cd->mode) && streq(current, cd->o.meta.uid)
                                         : mode_forms_domains(c->mode);
}

static void assignments_key_of(const char *clique, const char *uid, struct buf *ret) {
        buf_addf(ret, "%s/%s", clique, uid);
}

void assignments_forget(struct controller *c, const char *clique, const char *uid) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        assignments_key_of(clique, uid, &key);
        first_seen_forget(c->memory.empty, buf_str(&key));
}

static bool assignments_is_idle(void *u, const struct fabric_domain *d) {
        struct work *w = u;
        _cleanup_(buf_done) struct buf key = BUF_INIT(512);
        assignments_key_of(w->clique, d->owner.uid, &key);
        return first_seen_for(w->c->memory.empty, buf_str(&key), ASSIGNMENT_IDLE_S, w->now,
                              &w->out->recheck_s) &&
               !w->out->stale;
}

static const char *get_removal(void *u, const char *node) {
        const struct work *w = u;
        return removals_on(w->c, node);
}

static bool is_absent(void *u, enum assignment_question q, const char *name, const char *other) {
        const struct work *w = u;
        struct live_read *confirm = w->c->live_read;
        const struct compute_domain *cd;
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        switch (q) {
        case ASSIGNMENT_ASK_NODE:
        case ASSIGNMENT_ASK_BOOT:
                /* An answer that is older than this version of the object may be about an earlier assignment.
                 */
                live_read_node(name, other, w->old ? w->old->o.meta.rv : "", &key);
                return live_read_absent(confirm, LIVE_READ_NODE, NULL, buf_str(&key), w->key);
        case ASSIGNMENT_ASK_CLAIM:
                cd = records_domain(w->c, name);
                if (!cd) /* ASSIGNMENT_ASK_DOMAIN asks whether it exists */
                        return false;
                live_read_on_node(name, other, &key);
                return live_read_absent(confirm, LIVE_READ_CLAIM, cd->o.meta.ns, buf_str(&key), w->key);
        case ASSIGNMENT_ASK_DOMAIN:
                return live_read_absent(confirm, LIVE_READ_DOMAIN, NULL, name, w->key);
        }
        return false;
}

/* ---- messages for people ---- */

static const char *assignments_join(const char *const *names, size_t n, struct arena *a) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < n; i++)
                message_add(&list, "%s", names[i]);
        return message_end(&list, a);
}

static const char *explain_recount(const struct assignment *r, bool vanished, bool unlisted,
                                   struct arena *a) {
        if (!r->recount && unlisted)
                return "The object is younger than the plugins of its nodes, so there may have been an "
                       "earlier "
                       "one. IMEX may still run on Nodes that were deleted before the controller started. No "
                       "node gets an assignment until IMEX has stopped there, which takes at most a minute";
        if (!r->recount)
                return vanished ? "Nodes were deleted, and IMEX may still run on them. The controller has "
                                  "known this object for less than two minutes, so it may not list their "
                                  "assignments. No node gets an assignment until IMEX has stopped there, "
                                  "normally within a minute after their daemon Pods are deleted"
                                : NULL;
        if (!r->n_silent)
                return "The object may lack assignments, because it or etcd was restored, or it was deleted. "
                       "IMEX may still run on Nodes that were deleted. No node gets an assignment until IMEX "
                       "has stopped there, normally within a minute after their daemon Pods are deleted";
        return message_of(a,
                          "The object may lack assignments, because it or etcd was restored, or it was "
                          "deleted. No node gets an assignment until the compute-domain-daemon of each Node "
                          "has reported again. Nodes that have not reported yet: %s. Check the daemon's Pod "
                          "on these Nodes. If a Node is permanently off, delete it or add the taint "
                          "node.kubernetes.io/out-of-service",
                          assignments_join(r->silent, r->n_silent, a));
}

static const char *explain_full(const struct assignment *r, struct arena *a) {
        if (!r->n_full)
                return NULL;
        return message_of(a,
                          "The IMEX domain of this partition has %lld slots. These nodes get no index: %s. "
                          "The number of slots is set when the first node joins, and is fixed until the "
                          "last node has left. Set imex.maxNodesPerDomain to the number of nodes, cordon "
                          "all nodes, wait until their pods with channels have ended, and uncordon the "
                          "nodes",
                          (long long)r->slots, assignments_join(r->full, r->n_full, a));
}

/* Replaces a wrong decision by the present content of the object, so that it is not written. */
static void keep_as_it_is(const struct work *w, struct assignment *r) {
        static const struct compute_domain_fabric none;
        const struct compute_domain_fabric *f = w->old ? w->old : &none;
        *r = (struct assignment){ .domains = f->domains,
                                  .n_domains = f->n_domains,
                                  .removals = f->removals,
                                  .n_removals = f->n_removals,
                                  .epoch = f->epoch,
                                  .recount = f->recount };
}

/* For how long the daemon of a deleted Node may still run. Its Pod, and with it the report about what it
 * runs, may be deleted earlier. */
static int64_t settle_s(const struct work *w, int64_t unknown_s) {
        int64_t left = records_vanished_left(w->c, w->clique, w->now);
        return left > unknown_s ? left : unknown_s;
}

/* An older object lists what runs on a Node that was deleted lately, or it has been restored, and then a
 * recount repairs it. */
static bool is_new(const struct work *w) {
        return w->old &&
               first_seen_at(w->c->memory.known, w->old->o.meta.uid, w->now) + 2 * ASSIGNMENT_NODE_MISSING_S >
                       w->now;
}

void assignments_make(struct controller *c, const struct compute_domain_fabric *old, const char *clique,
                      const char *key, struct arena *a, struct assignments *ret) {
        struct work w = {
                .c = c, .old = old, .clique = clique, .key = key, .out = ret, .now = clock_mono_s()
        };
        kube_informer_each_at(c->caches.daemons, CONTROLLER_DAEMONS_BY_CLIQUE, clique, records_note_orphan,
                              c);
        ret->settle_s = settle_s(&w, ret->settle_s);
        bool unlisted = old && !old->epoch && ret->unlisted_s;
        struct names names = { 0 };
        struct assignment_facts facts;
        find_names(c, old, clique, &names);
        const struct assignment_source source = {
                .clique = clique,
                .object = old,
                .names = names.list,
                .n_names = names.n,
                .is_standing = mode_is_standing(c->mode),
                .stale = ret->stale,
                .rolled_back = ret->rolled_back,
                .settling = ret->settle_s > 0,
                .vanished = is_new(&w) && (unlisted || records_vanished_left(c, clique, w.now)),
                .slots = c->config->max_nodes,
                .fresh_pod_per_domain = c->config->fresh_pods,
                .node = get_node,
                .node_missing = is_node_gone,
                .slice = get_slice,
                .fabric = get_fabric,
                .daemons = each_daemon,
                .plugins = each_plugin,
                .allocations = each_allocation,
                .domain = get_domain,
                .takes = assignments_takes,
                .idle = assignments_is_idle,
                .removes = get_removal,
                .absent = is_absent,
                .u = &w,
        };
        for (size_t i = 0; old && i < old->n_domains; i++)
                if (old->domains[i].n_assignments)
                        assignments_forget(c, clique, old->domains[i].owner.uid);
        assignment_facts_make(&source, a, &facts);
        assignment_make(&facts.input, a, &ret->decision);
        ret->broken = assignment_check(&facts.input, &ret->decision, a);
        if (ret->broken)
                keep_as_it_is(&w, &ret->decision);
        if (ret->decision.ahead)
                log_v(0, "the recount of a partition begins again: a node reports a later epoch",
                      kv_str("partition", clique), kv_str("node", ret->decision.ahead));
        ret->pause = facts.pause;
        ret->recount_why = explain_recount(&ret->decision, facts.input.vanished, unlisted, a);
        ret->full_why = explain_full(&ret->decision, a);
        if ((ret->decision.recount || facts.input.vanished) && ret->settle_s &&
            (!ret->recheck_s || ret->settle_s < ret->recheck_s))
                ret->recheck_s = ret->settle_s;
        free(names.list);
}
