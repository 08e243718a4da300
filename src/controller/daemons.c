/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/daemons.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/clock.h"
#include "controller/removals.h"
#include "model/daemon_report.h"
#include "rules/message.h"
#include "rules/rollout.h"
#include "rules/rules.h"

enum { MAX_BODY = 1 << 20 };

static void daemons_submit(struct controller *c, enum kube_verb verb, const struct kube_resource *res,
                           const char *name, struct kube_informer *cache, const struct buf *b) {
        writes_try(c->writes, &(struct writes_request){ .requester = KEY_OF_DAEMONS,
                                                        .verb = verb,
                                                        .res = res,
                                                        .ns = c->settings.ns,
                                                        .name = name,
                                                        .body = { buf_str(b), b->n },
                                                        .cache = cache });
}

static void daemons_remove_object(struct controller *c, const struct kube_resource *res,
                                  const struct kube_meta *m, struct kube_informer *cache) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        objects_delete(m, NULL, &b);
        daemons_submit(c, KUBE_DELETE, res, m->name, cache, &b);
}

static const struct daemonset *find_set(const struct controller *c) {
        return (const struct daemonset *)kube_informer_get(c->caches.daemon_sets, c->settings.ns,
                                                           CD_DAEMON_OBJECT);
}

/* ---- driver-managed ---- */

/* The template cannot be recreated until other controllers have removed their finalizers. */
static void report_kept(struct controller *c, const struct rct *r) {
        struct message_list names = { 0 };
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        for (size_t i = 0; i < r->n_finalizers; i++)
                message_add(&names, "%s", r->finalizers[i]);
        writes_cannot(c->writes,
                      &(struct writes_request){ .requester = KEY_OF_DAEMONS,
                                                .verb = KUBE_APPLY,
                                                .res = &kube_resource_claim_templates,
                                                .ns = c->settings.ns,
                                                .name = CD_DAEMON_OBJECT },
                      message_of(a,
                                 "the claim template of another version is being deleted, and is recreated "
                                 "when its finalizers are removed: %s",
                                 message_end(&names, a)));
}

/* The spec of a claim template is immutable, so a different one is deleted and recreated. Returns true when
 * the right template exists. */
static bool want_template(struct controller *c) {
        const struct rct *r = (const struct rct *)kube_informer_get(c->caches.daemon_rcts, c->settings.ns,
                                                                    CD_DAEMON_OBJECT);
        if (r && objects_daemon_rct_matches(r))
                return true;
        if (!r) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
                objects_daemon_rct(c->settings.resource_api, c->settings.ns, &b);
                daemons_submit(c, KUBE_APPLY, &kube_resource_claim_templates, CD_DAEMON_OBJECT,
                               c->caches.daemon_rcts, &b);
        } else if (!r->o.meta.deleted) {
                daemons_remove_object(c, &kube_resource_claim_templates, &r->o.meta, c->caches.daemon_rcts);
        } else if (r->n_finalizers) {
                report_kept(c, r);
        }
        return false;
}

static void want_set(struct controller *c, const struct daemonset *set, const char *hash) {
        int64_t applied = writes_generation(c->writes, KEY_OF_DAEMONS, &kube_daemonsets, c->settings.ns,
                                            CD_DAEMON_OBJECT);
        if (!applied)
                applied = WRITES_MADE_GENERATION;
        if (set &&
            (set->o.meta.deleted || (streq(set->template_hash, hash) && set->o.meta.generation == applied)))
                return;
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        objects_daemonset(&c->settings, &b);
        daemons_submit(c, KUBE_APPLY, &kube_daemonsets, CD_DAEMON_OBJECT, c->caches.daemon_sets, &b);
}

/* ---- rollout ---- */

struct rolling {
        struct controller *c;
        const char *hash;
        struct arena *a;
        const struct daemon_pod **pods; /* sorted by node */
        size_t n, cap;
        const char **missing; /* nodes without a daemon's Pod yet */
        size_t n_missing, cap_missing;
        int64_t recheck_s; /* when a daemon that has not started counts as one that crashes; 0: never */
        struct rollout_daemon *list; /* of the Pods, then of those nodes */
        enum rollout_choice *choices;
};

static bool daemons_add(void *u, const struct kube_object *o) {
        struct rolling *r = u;
        const struct daemon_pod *p = (const struct daemon_pod *)o;
        if (!p->pod.node)
                return true;
        ARENA_GROW(r->a, r->pods, r->n, r->cap);
        r->pods[r->n++] = p;
        return true;
}

/* The plugin withholds the devices: the node has a slice, but without the device of the daemon, so no daemon
 * can start. A missing slice proves nothing: the kubelet removes it when the plugin restarts. */
static bool is_withheld(const struct controller *c, const char *node) {
        return kube_informer_first_at(c->caches.slices, CONTROLLER_BY_NODE, node) &&
               !records_node_clique(c, node);
}

/* The DaemonSet controller will create a Pod with the newest template on this node. */
static bool count_missing(void *u, const struct kube_object *o) {
        struct rolling *r = u;
        const struct node *n = (const struct node *)o;
        if (records_daemon(r->c, n->o.meta.name))
                return true;
        if (!n->imex_daemon || !node_ready(n) || is_withheld(r->c, n->o.meta.name)) {
                first_seen_forget(r->c->memory.awaited, n->o.meta.name);
                return true;
        }
        ARENA_GROW(r->a, r->missing, r->n_missing, r->cap_missing);
        r->missing[r->n_missing++] = n->o.meta.name;
        return true;
}

/* `awaited`: the node should run a daemon with the newest template soon. The rollout does not wait for it
 * without end: the node may be full, the earlier daemon may not end, or the devices may be withheld. */
static bool hangs(struct rolling *r, const char *node, bool awaited) {
        if (awaited)
                return first_seen_for(r->c->memory.awaited, node, ROLLOUT_PATIENCE_S, clock_mono_s(),
                                      &r->recheck_s);
        first_seen_forget(r->c->memory.awaited, node);
        return false;
}

static int daemons_by_node(const void *x, const void *y) {
        const struct daemon_pod *a = *(const struct daemon_pod *const *)x,
                                *b = *(const struct daemon_pod *const *)y;
        int order = strcmp(a->pod.node, b->pod.node);
        return order ? order : strcmp(a->pod.o.meta.name, b->pod.o.meta.name);
}

/* By the kubelet's clock; 0: the container does not run. */
static int64_t reported_start(const struct pod *p) {
        return p->n_containers ? p->containers[0].started : 0;
}

/* When this controller first saw the container run, by its own clock and not the kubelet's; 0: it does not
 * run. */
static int64_t started(const struct rolling *r, const struct pod *p) {
        return records_seen(r->c, p->o.meta.uid, reported_start(p));
}

static bool is_granted(const struct controller *c, const struct daemon_pod *p) {
        return removals_marked(c, p) && !removals_asked(c, p->pod.node, REMOVALS_NODE);
}

struct spent_pod {
        const char *uid, *claim; /* claim NULL: the daemon has not reported */
        bool found;
};

static bool check_plugin(void *u, const struct kube_object *o) {
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        struct spent_pod *s = u;
        s->found = s->found || streq(p->refused, s->uid) || (s->claim && streq(p->unprepared, s->claim));
        return !s->found;
}

/* The plugin has unprepared the daemon claim, and refuses to prepare it again. The kubelet asks for that if
 * etcd was restored from a backup that has the Pod. The backup may be older than the daemon's first report.
 */
static bool is_spent(const struct rolling *r, const struct daemon_pod *p,
                     const struct daemon_report *report) {
        struct spent_pod s = { .uid = p->pod.o.meta.uid, .claim = report->claim };
        if (r->c->caches.plugins)
                kube_informer_each_at(r->c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, p->pod.node,
                                      check_plugin, &s);
        return s.found;
}

static struct rollout_daemon facts_of(struct rolling *r, const struct daemon_pod *p) {
        const struct node *n = records_node(r->c, p->pod.node);
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct daemon_report report;
        struct err e;
        bool reported = p->report && daemon_report_decode(str_from(p->report), a, &report, &e) == 0;
        if (!reported)
                report = (struct daemon_report){ .imex_version = "" };
        struct rollout_daemon d = {
                .outdated = p->pod.template_hash && !streq(p->pod.template_hash, r->hash),
                .node_ready = n && node_ready(n),
                .withheld = is_withheld(r->c, p->pod.node),
                .spent = is_spent(r, p, &report),
                .removed = p->pod.o.meta.deleted || removals_marked(r->c, p),
                .asked = removals_asked(r->c, p->pod.node, REMOVALS_TEMPLATE) &&
                         streq(removals_on(r->c, p->pod.node), p->pod.o.meta.uid),
                .idle = !report.has_assignment || !report.ready,
                .reported = reported,
                .crashing = rules_is_down(&p->pod),
                .imex_starts = *report.imex_version,
                .served = report.served,
                .fresh_wanted = r->c->config->fresh_pods && report.served && !report.has_assignment,
                .started = started(r, &p->pod),
        };
        bool runs = d.reported && d.imex_starts && d.started;
        d.hangs = hangs(r, p->pod.node,
                        d.node_ready && (rollout_is_replaced(&d) || (!d.outdated && !d.removed && !runs)));
        return d;
}

/* Whether facts_of() and records_daemon() find the same in both versions of a Pod. */
static bool same_to_rollout(const struct daemon_pod *x, const struct daemon_pod *y) {
        const struct pod *a = &x->pod, *b = &y->pod;
        return streq(x->report, y->report) && streq(a->o.meta.uid, b->o.meta.uid) &&
               !a->o.meta.deleted == !b->o.meta.deleted && streq(a->node, b->node) &&
               streq(a->clique_id, b->clique_id) && streq(a->template_hash, b->template_hash) &&
               pod_ended(a) == pod_ended(b) && rules_is_down(a) == rules_is_down(b) &&
               reported_start(a) == reported_start(b);
}

void daemons_pod_changed(struct controller *c, const struct daemon_pod *was, const struct daemon_pod *is) {
        bool same = was && is && streq(was->pod.o.meta.uid, is->pod.o.meta.uid) &&
                    reported_start(&was->pod) == reported_start(&is->pod);
        if (was && !same)
                records_unseen(c, was->pod.o.meta.uid, reported_start(&was->pod));
        if (!was || !is || !same_to_rollout(was, is))
                records_queue_rollout(c);
}

static void daemons_replace(struct controller *c, const struct daemon_pod *p, enum rollout_choice choice) {
        bool granted = is_granted(c, p);
        if (choice != ROLLOUT_REPLACE)
                removals_withdraw(c, p->pod.node, REMOVALS_TEMPLATE);
        if (p->pod.o.meta.deleted || (choice != ROLLOUT_REPLACE && !granted))
                return;
        if (records_stale(c) && !granted)
                records_pause(c, KEY_OF_DAEMONS);
        else if (granted || removals_ask(c, p, REMOVALS_TEMPLATE))
                daemons_remove_object(c, &kube_pods, &p->pod.o.meta, c->caches.daemons);
}

/* The nodes of the daemons for which `is` returns true, for people. */
static const char *nodes_of(const struct rolling *r, bool (*is)(const struct rolling *r, size_t i)) {
        struct message_list list = { 0 };
        for (size_t i = 0; i < r->n + r->n_missing; i++)
                if (is(r, i))
                        message_add(&list, "%s", i < r->n ? r->pods[i]->pod.node : r->missing[i - r->n]);
        return message_end(&list, r->a);
}

static bool crashes(const struct rolling *r, size_t i) {
        return r->list[i].node_ready && rollout_fails(&r->list[i]);
}

static bool is_busy(const struct rolling *r, size_t i) {
        return r->choices[i] == ROLLOUT_BUSY;
}

static void daemons_report(const struct rolling *r, const struct daemonset *set, const struct rollout *out) {
        const struct event_about about = { "apps/v1", kube_daemonsets.kind, set->o.meta.ns, set->o.meta.name,
                                           set->o.meta.uid };
        if (out->n_crashing)
                event_record(
                        r->c->events, &about, EVENT_WARNING, REASON_DAEMONS_CRASH,
                        "Daemons with the newest template crash, or have not started in ten minutes, on "
                        "these nodes: %s. Until daemons with it are healthy, the rollout replaces at most a "
                        "tenth of the idle daemons. Run kubectl describe and kubectl logs --previous for the "
                        "Pods on these nodes. If a new version is the cause, use helm rollback",
                        nodes_of(r, crashes));
        /* The daemons of a standing domain never become idle by themselves. */
        if (mode_is_standing(r->c->mode) && out->n_busy && out->n_busy == out->n_outdated)
                event_record(r->c->events, &about, EVENT_NORMAL, REASON_ROLLOUT_WAITING,
                             "Daemons with an earlier template are in use on these nodes: %s. Each is "
                             "replaced when its node is cordoned and has no pod with a channel any more",
                             nodes_of(r, is_busy));
}

static void roll_out(struct controller *c, const struct daemonset *set, const char *hash) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1 << 16);
        struct rolling r = { .c = c, .hash = hash, .a = a };
        struct rollout out;
        kube_informer_each(c->caches.daemons, daemons_add, &r);
        kube_informer_each(c->caches.nodes, count_missing, &r);
        if (r.n)
                qsort(r.pods, r.n, sizeof *r.pods, daemons_by_node);
        size_t n_all = r.n + r.n_missing;
        r.list = arena_alloc(a, (n_all + 1) * sizeof *r.list);
        r.choices = arena_alloc(a, (n_all + 1) * sizeof *r.choices);
        for (size_t i = 0; i < r.n; i++)
                r.list[i] = facts_of(&r, r.pods[i]);
        for (size_t i = r.n; i < n_all; i++)
                r.list[i] = (struct rollout_daemon){ .node_ready = true,
                                                     .idle = true,
                                                     .hangs = hangs(&r, r.missing[i - r.n], true) };
        rollout_make(r.list, n_all, clock_mono_s(), r.choices, &out);
        for (size_t i = 0; i < r.n; i++)
                daemons_replace(c, r.pods[i], r.choices[i]);
        daemons_report(&r, set, &out);
        int64_t recheck_s =
                out.recheck_s && (!r.recheck_s || out.recheck_s < r.recheck_s) ? out.recheck_s : r.recheck_s;
        if (recheck_s)
                work_queue_add_after(c->queue, KEY_OF_DAEMONS, (unsigned)recheck_s * 1000U);
}

/* ---- host-managed ---- */

static bool daemons_note(void *u, const struct kube_object *o) {
        *(bool *)u = true;
        return false;
}

static bool note_labelled(void *u, const struct kube_object *o) {
        return !((const struct node *)o)->imex_daemon || daemons_note(u, o);
}

/* Whether a Node has the daemon label, or a daemon's Pod exists. */
static bool are_needed(const struct controller *c) {
        bool any = false;
        kube_informer_each(c->caches.daemons, daemons_note, &any);
        if (!any)
                kube_informer_each(c->caches.nodes, note_labelled, &any);
        return any;
}

static void want_none(struct controller *c, const struct daemonset *set) {
        const struct kube_object *rct =
                kube_informer_get(c->caches.daemon_rcts, c->settings.ns, CD_DAEMON_OBJECT);
        if ((!set && !rct) || are_needed(c))
                return;
        if (records_stale(c)) {
                records_pause(c, KEY_OF_DAEMONS);
                return;
        }
        if (set && !set->o.meta.deleted)
                daemons_remove_object(c, &kube_daemonsets, &set->o.meta, c->caches.daemon_sets);
        if (!set && !rct->meta.deleted)
                daemons_remove_object(c, &kube_resource_claim_templates, &rct->meta, c->caches.daemon_rcts);
}

void daemons_reconcile(struct controller *c) {
        const struct daemonset *set = find_set(c);
        writes_begin(c->writes, KEY_OF_DAEMONS);
        if (mode_runs_daemons(c->mode)) {
                char hash[17];
                objects_daemonset_hash(&c->settings, hash);
                if (want_template(c))
                        want_set(c, set, hash);
                if (set && streq(set->template_hash, hash))
                        roll_out(c, set, hash);
        } else {
                want_none(c, set);
        }
        writes_end(c->writes, KEY_OF_DAEMONS);
}
