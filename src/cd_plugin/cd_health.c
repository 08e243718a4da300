/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_health.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/kinds.h"
#include "api/names.h"
#include "api/resources.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/standing.h"
#include "cd_plugin/state.h"
#include "kube/kube_informer.h"
#include "model/channel_report.h"

/* ---- the judgement ---- */

enum { NAMED_MAX = 8 };

__attribute__((format(printf, 3, 4))) static void judged(struct cd_health_verdict *ret,
                                                         enum dra_health_state state, const char *fmt, ...) {
        va_list ap;
        ret->state = state;
        va_start(ap, fmt);
        vsnprintf(ret->message, sizeof ret->message, fmt, ap);
        va_end(ap);
}

static void add_lost_names(const struct cd_health_facts *f, struct buf *names) {
        for (size_t i = 0; i < f->n_lost && i < NAMED_MAX; i++)
                buf_addf(names, "%s%.63s", i ? ", " : "", f->lost[i]);
        if (f->n_lost > NAMED_MAX)
                buf_addf(names, " and %zu more", f->n_lost - NAMED_MAX);
}

static void judge_peers(const struct cd_health_facts *f, struct cd_health_verdict *ret) {
        _cleanup_(buf_done) struct buf names = BUF_INIT(DRA_HEALTH_MESSAGE_MAX);
        add_lost_names(f, &names);
        if (!f->state->lost_known)
                judged(ret, DRA_HEALTH_UNKNOWN,
                       "%s: IMEX is READY, but its daemon has not reported its connections to other nodes",
                       f->node);
        else if (f->n_lost)
                judged(ret, DRA_HEALTH_BAD,
                       "%s: IMEX is not connected to %s, so GPU memory cannot be shared with the pods there. "
                       "See the Pods of DaemonSet " CD_DAEMON_OBJECT
                       " on these nodes, and then restart the pods of this ComputeDomain, because memory "
                       "that they had imported is lost",
                       f->node, buf_str(&names));
        else if (f->undecided)
                judged(ret, DRA_HEALTH_UNKNOWN,
                       "%s: IMEX is not connected to some other nodes, and it is not known whether they have "
                       "pods of this ComputeDomain",
                       f->node);
        else
                ret->state = DRA_HEALTH_GOOD;
}

static void judge_host(const struct cd_health_facts *f, struct cd_health_verdict *ret) {
        const struct host_imex_status *s = f->host_status;
        if (f->host == HOST_IMEX_NOT_READY)
                judged(ret, DRA_HEALTH_BAD,
                       "%s: %s. Start nvidia-imex on the host, and then restart the pods of this "
                       "ComputeDomain",
                       f->node, *s->reason ? s->reason : "the host's nvidia-imex is not READY");
        else if (f->host == HOST_IMEX_READY && s->state == HOST_UP)
                ret->state = DRA_HEALTH_GOOD;
        else if (f->host == HOST_IMEX_READY)
                judged(ret, DRA_HEALTH_UNKNOWN,
                       "%s: %s. It is not known whether this concerns nodes with pods of this ComputeDomain",
                       f->node, s->reason);
        else
                judged(ret, DRA_HEALTH_UNKNOWN, "%s: the state of the host's nvidia-imex is not known",
                       f->node);
}

void cd_health_judge(const struct cd_health_facts *f, struct cd_health_verdict *ret) {
        *ret = (struct cd_health_verdict){ .state = DRA_HEALTH_UNKNOWN };
        switch (f->runner) {
        case CD_HEALTH_NO_IMEX:
                judged(ret, DRA_HEALTH_UNKNOWN,
                       "%s is in no NVLink partition, so the pod runs without an IMEX channel", f->node);
                return;
        case CD_HEALTH_GO:
                judged(ret, DRA_HEALTH_UNKNOWN,
                       "%s: the Go driver's daemon runs IMEX, and its connections are not known", f->node);
                return;
        case CD_HEALTH_HOST:
                judge_host(f, ret);
                return;
        case CD_HEALTH_OWN:
                break;
        }
        if (f->unreadable)
                judged(ret, DRA_HEALTH_UNKNOWN, "%s", f->why);
        else if (!f->ready)
                judged(ret, DRA_HEALTH_BAD,
                       "%s. Pods cannot share GPU memory with other nodes: when IMEX is READY, restart the "
                       "pods of this ComputeDomain on this node",
                       f->why);
        else
                judge_peers(f, ret);
}

size_t cd_health_lost(const struct fabric_domain *d, const char *lost, const char *node, struct arena *a,
                      const char ***ret) {
        size_t n = 0;
        *ret = arena_alloc(a, (d->n_assignments + 1) * sizeof **ret);
        for (size_t i = 0; i < d->n_assignments; i++) {
                const struct fabric_assignment *x = &d->assignments[i];
                if (fabric_is_active(x) && !streq(x->node, node) && imex_links_lists(lost, x->index))
                        (*ret)[n++] = x->node;
        }
        return n;
}

/* ---- lost nodes in a standing domain ---- */

/* A watch of the Pods of this driver on a lost node. The plugin there reports which ComputeDomains hold
 * channels. */
struct cd_lost_watch {
        LIST_ENTRY(cd_lost_watch) link;
        struct cd *cd;
        char *node;
        bool needed;
        struct kube_informer *informer;
};

enum { LOST_WATCHED_MAX = 16 };
enum lost_holds { HOLDS_UNKNOWN, HOLDS_PENDING, HOLDS, HOLDS_NOT };

static void health_changed(struct cd *cd) {
        if (cd->o.health_changed)
                cd->o.health_changed(cd->o.u);
}

static void cd_health_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct cd_lost_watch *w = u;
        health_changed(w->cd);
}

static void cd_health_on_synced(void *u) {
        struct cd_lost_watch *w = u;
        health_changed(w->cd);
}

static bool has_report(void *u, const struct kube_object *o) {
        return ((const struct plugin_pod *)o)->host_channels;
}

static struct cd_lost_watch *lost_watch(struct cd *cd, const char *node) {
        _cleanup_(freep) char *selector = xasprintf("spec.nodeName=%s", node);
        struct cd_lost_watch *w;
        size_t n = 0;
        LIST_FOREACH (w, &cd->health.watches, link) {
                if (streq(w->node, node))
                        return w;
                n++;
        }
        if (n == LOST_WATCHED_MAX)
                return NULL;
        w = xnew(struct cd_lost_watch);
        w->cd = cd;
        w->node = xstrdup(node);
        LIST_INSERT_HEAD(&cd->health.watches, w, link);
        w->informer = kube_informer_new(cd->o.kube, &(struct kube_informer_options){
                                                            .res = &kube_pods,
                                                            .ns = cd->o.ns,
                                                            .field_selector = selector,
                                                            .fields = plugin_pod_fields,
                                                            .size = sizeof(struct plugin_pod),
                                                            .keep = has_report,
                                                            .changed = cd_health_on_changed,
                                                            .synced = cd_health_on_synced,
                                                            .u = w,
                                                    });
        return w;
}

static void lost_watch_free(struct cd_lost_watch *w) {
        LIST_REMOVE(w, link);
        kube_informer_free(w->informer);
        free(w->node);
        free(w);
}

/* Removes the watches that are not needed; with `all`, removes all. */
static void sweep(struct cd *cd, bool all) {
        struct cd_lost_watch *w, *next;
        for (w = LIST_FIRST(&cd->health.watches); w; w = next) {
                next = LIST_NEXT(w, link);
                if (all || !w->needed)
                        lost_watch_free(w);
                else
                        w->needed = false;
        }
}

struct lost_question {
        const char *node, *domain_uid;
        enum lost_holds answer;
};

/* During an update, two plugins may run on the node. */
static bool look_at_report(void *u, const struct kube_object *o) {
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct lost_question *q = u;
        struct channel_report r;
        struct err e;
        if (!streq(p->node, q->node) || channel_report_decode(str_from(p->host_channels), a, &r, &e) < 0)
                return true;
        q->answer = HOLDS_NOT;
        for (size_t i = 0; i < r.n_fabrics; i++)
                for (size_t k = 0; k < r.fabrics[i].n_held; k++)
                        if (streq(r.fabrics[i].held[k].owner, q->domain_uid)) {
                                q->answer = HOLDS;
                                return false;
                        }
        return true;
}

static enum lost_holds lost_holds(struct cd *cd, const char *node, const char *domain_uid) {
        struct lost_question q = { node, domain_uid, HOLDS_UNKNOWN };
        struct cd_lost_watch *w = lost_watch(cd, node);
        if (!w)
                return HOLDS_UNKNOWN;
        w->needed = true;
        kube_informer_each(w->informer, look_at_report, &q);
        return q.answer == HOLDS_UNKNOWN && !kube_informer_synced(w->informer) ? HOLDS_PENDING : q.answer;
}

/* Keeps the nodes with pods of the ComputeDomain. */
static size_t keep_holders(struct cd *cd, const char *domain_uid, const char **nodes, size_t n,
                           bool *ret_undecided, bool *ret_pending) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
                enum lost_holds holds = lost_holds(cd, nodes[i], domain_uid);
                *ret_undecided = *ret_undecided || holds == HOLDS_UNKNOWN || holds == HOLDS_PENDING;
                *ret_pending = *ret_pending || holds == HOLDS_PENDING;
                if (holds == HOLDS)
                        nodes[kept++] = nodes[i];
        }
        return kept;
}

/* ---- the list ---- */

static void judge_daemon(struct cd *cd, const struct checkpoint_claim *entry, const struct node_device *d,
                         struct cd_health_verdict *ret, bool *ret_pending) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        char imex[37], why[400] = "";
        const char **lost = NULL;
        struct prepare_daemon daemon;
        struct cd_health_facts f = { .runner = CD_HEALTH_OWN, .node = cd->o.node, .why = why };
        *ret = (struct cd_health_verdict){ .state = DRA_HEALTH_UNKNOWN };
        if (!standing_domain_of(cd, entry, d, imex))
                return;
        f.ready = readiness_check(cd->readiness, imex, &daemon, why, sizeof why);
        if (daemon.runner == PREPARE_RUNNER_GO)
                f.runner = CD_HEALTH_GO;
        f.unreadable = daemon.unread.kind != ERR_NONE && daemon.unread.kind != ERR_NOT_FOUND;
        f.state = &daemon.state;
        if (f.ready && *daemon.state.lost) {
                const struct compute_domain_fabric *fabric = fabric_watch_get(cd->o.fabric);
                const struct fabric_domain *domain = fabric ? fabric_domain_of(fabric, imex) : NULL;
                f.undecided = !domain;
                f.n_lost = domain ? cd_health_lost(domain, daemon.state.lost, cd->o.node, a, &lost) : 0;
                if (d->id > 0) /* other ComputeDomains use the standing domain, too */
                        f.n_lost = keep_holders(cd, d->domain, lost, f.n_lost, &f.undecided, ret_pending);
                f.lost = lost;
        }
        cd_health_judge(&f, ret);
}

static void judge_device(struct cd *cd, const struct checkpoint_claim *entry, const struct node_device *d,
                         struct cd_health_verdict *ret, bool *ret_pending) {
        struct cd_health_facts f = { .runner = CD_HEALTH_HOST, .node = cd->o.node };
        enum gpu_fabric_kind kind = facts_get(cd->o.facts)->fabric.kind;
        /* A pod without a channel was prepared while the node was in no partition. */
        if (kind == GPU_FABRIC_NONE || (kind != GPU_FABRIC_CLIQUE && !*d->cdi_ids)) {
                f.runner = CD_HEALTH_NO_IMEX;
                cd_health_judge(&f, ret);
        } else if (mode_runs_daemons(cd->o.mode)) {
                judge_daemon(cd, entry, d, ret, ret_pending);
        } else {
                f.host = cd->o.host ? host_imex_own(cd->o.host) : HOST_IMEX_NOT_ASKED;
                f.host_status = cd->o.host ? host_imex_get(cd->o.host) : NULL;
                cd_health_judge(&f, ret);
        }
}

void cd_health_list(void *u, struct arena *a, struct dra_health_list *ret) {
        struct cd *cd = u;
        struct cd_health_verdict v;
        size_t n = 0;
        CHECKPOINT_EACH_DEVICE (&cd->claims->journal.table, e, d)
                n++;
        struct dra_device_health *list = arena_alloc(a, (n + 1) * sizeof *list);
        CHECKPOINT_EACH_DEVICE (&cd->claims->journal.table, e, d) {
                if (cd_device_is_daemon(d) || !d->pool || !d->name)
                        continue;
                judge_device(cd, e, d, &v, &ret->pending);
                list[ret->n++] = (struct dra_device_health){ .pool = d->pool,
                                                             .device = d->name,
                                                             .state = v.state,
                                                             .message = arena_strdup(a, v.message) };
        }
        ret->devices = list;
        sweep(cd, false);
}

void cd_health_init(struct cd *cd) {
        LIST_INIT(&cd->health.watches);
}

void cd_health_done(struct cd *cd) {
        sweep(cd, true);
}
