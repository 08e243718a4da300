/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/evictions.h"

#include <stdlib.h>

#include "api/claim.h"
#include "api/names.h"
#include "api/reasons.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/kube_pages.h"
#include "kube/kube_status.h"
#include "render/objects.h"
#include "rules/eviction.h"

enum { MAX_BODY = 4096, MAX_REASON = 512 };

/* A node whose IMEX fails. Times are clock_mono_s(). */
struct failing {
        UT_hash_handle hh;
        int64_t since, next; /* since when it fails, without the time in which that was unknown; when its pods
                                may be looked at again */
        bool seen;           /* in this look */
        char domain[37];     /* the UID of the ComputeDomain whose IMEX fails; "": the IMEX of all */
        char why[MAX_REASON];
        char node[];
};

/* A claim that a failing node uses, or a pod that it is reserved for. In the arena. */
struct job {
        struct job *next;
        const char *ns, *name, *uid, *node; /* name NULL: of a claim, not known yet */
        bool is_pod;
        bool shared;        /* pods on other nodes use the claim, too */
        struct claim claim; /* as the API server has it, while its pods are listed */
};

struct evictions {
        struct controller *c;
        struct loop_timer timer;
        struct failing *failing;
        size_t n_failing, n_reporting;
        int64_t looked; /* the time of the last look */
        bool many;      /* logged that too many nodes fail */
        struct arena *a;
        struct job *jobs; /* the first one is in progress */
        unsigned n_evicted;
        struct kube_call *call;
        struct kube_pages *pods; /* the list of the pods of a job's node; its options borrow `selector` */
        char *selector;
};

/* ---- nodes ---- */

static void drop_failing(struct evictions *e, bool all) {
        for (struct failing *x = e->failing, *next; x; x = next) {
                next = x->hh.next;
                if (!all && x->seen)
                        continue;
                HASH_DEL(e->failing, x);
                free(x);
        }
}

static void note_failing(struct evictions *e, const char *node, const char *domain, const char *state,
                         const char *reason) {
        struct failing *x;
        HASH_FIND_STR(e->failing, node, x);
        if (!x) {
                x = xnew_keyed(struct failing, node, node);
                x->since = clock_mono_s();
                HASH_ADD_STR(e->failing, node, x);
        }
        x->seen = true;
        snprintf(x->domain, sizeof x->domain, "%s", domain);
        snprintf(x->why, sizeof x->why, "%s: %s", state, str_or(reason, "no reason given"));
}

/* The state of IMEX that a node reports. */
struct reported {
        enum eviction_imex imex;
        const char *domain, *state, *reason; /* if it fails; see struct failing */
};

static struct reported reported_by_plugin(const struct controller *c, const char *node) {
        const struct plugin_pod *p = records_plugin(c, node);
        return (struct reported){ .imex = eviction_of_host(records_node(c, node), p),
                                  .domain = "",
                                  .state = p ? p->host_state : NULL,
                                  .reason = p ? p->host_reason : NULL };
}

static struct reported reported_by_daemon(const struct controller *c, const char *node, struct arena *a) {
        const struct daemon_pod *p = records_daemon(c, node);
        struct daemon_report r;
        struct err err;
        bool reports = p && p->report && daemon_report_decode(str_from(p->report), a, &r, &err) == 0;
        return (struct reported){ .imex = eviction_of_daemon(records_node(c, node), p, reports ? &r : NULL),
                                  .domain = mode_is_standing(c->mode) || !reports ? ""
                                                                                  : r.assignment.domain_uid,
                                  .state = p ? p->pod.state : NULL,
                                  .reason = p ? p->pod.reason : NULL };
}

static struct reported reported_by_node(const struct controller *c, const char *node, struct arena *a) {
        return mode_runs_daemons(c->mode) ? reported_by_daemon(c, node, a) : reported_by_plugin(c, node);
}

static void evictions_read(struct evictions *e, const char *node) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct reported r = reported_by_node(e->c, node, a);
        e->n_failing += r.imex == EVICTION_IMEX_FAILS;
        e->n_reporting += r.imex != EVICTION_IMEX_UNKNOWN;
        if (r.imex == EVICTION_IMEX_FAILS)
                note_failing(e, node, r.domain, r.state, r.reason);
}

static bool look_at_plugin(void *u, const struct kube_object *o) {
        struct evictions *e = u;
        const struct plugin_pod *p = (const struct plugin_pod *)o;
        if (p->node && records_plugin(e->c, p->node) == p)
                evictions_read(e, p->node);
        return true;
}

static bool look_at_daemon(void *u, const struct kube_object *o) {
        struct evictions *e = u;
        const struct daemon_pod *p = (const struct daemon_pod *)o;
        if (p->pod.node && records_daemon(e->c, p->pod.node) == p)
                evictions_read(e, p->pod.node);
        return true;
}

/* Returns false if nothing may be decided now. The time until the next look then does not count. */
static bool look_at_nodes(struct evictions *e) {
        struct controller *c = e->c;
        int64_t now = clock_mono_s(), passed = now - e->looked;
        e->looked = now;
        if (!c->leading || !records_synced(c))
                drop_failing(e, true);
        for (struct failing *x = e->failing; x && records_reports_stale(c); x = x->hh.next)
                x->since += passed;
        if (!c->leading || !records_synced(c) || records_reports_stale(c))
                return false;
        records_catch_up(c);
        e->n_failing = e->n_reporting = 0;
        for (struct failing *x = e->failing; x; x = x->hh.next)
                x->seen = false;
        if (mode_runs_daemons(c->mode))
                kube_informer_each(c->caches.daemons, look_at_daemon, e);
        else if (c->caches.plugins)
                kube_informer_each(c->caches.plugins, look_at_plugin, e);
        drop_failing(e, false);
        return true;
}

static enum eviction_step evictions_step_of(const struct evictions *e, const struct failing *x) {
        return eviction_step(clock_mono_s() - x->since, e->c->config->evict_after_min * 60, e->n_failing,
                             e->n_reporting);
}

/* ---- claims ---- */

struct collect {
        struct evictions *e;
        const struct failing *of;
        struct job *list;
};

static void add_job(struct collect *k, const struct allocation *x) {
        struct job *j = arena_alloc(k->e->a, sizeof *j);
        *j = (struct job){ .next = k->list,
                           .ns = arena_strdup(k->e->a, x->ns),
                           .uid = arena_strdup(k->e->a, x->claim_uid),
                           .node = arena_strdup(k->e->a, k->of->node),
                           .shared = x->shared };
        k->list = j;
}

/* A claim of another namespace may name the ComputeDomain, too. */
static bool is_of_domain(const struct collect *k, const struct allocation *x) {
        const struct compute_domain *cd = records_domain(k->e->c, x->domain_uid);
        return cd && streq(cd->o.meta.ns, x->ns);
}

static void collect_shared(void *u, const struct allocation *x) {
        struct collect *k = u;
        if (streq(x->node, CD_POOL_SHARED) && is_of_domain(k, x))
                add_job(k, x);
}

static void collect_claim(void *u, const struct allocation *x) {
        struct collect *k = u;
        if (!is_of_domain(k, x) || (*k->of->domain && !streq(k->of->domain, x->domain_uid)))
                return;
        /* The visit has one shared claim of the ComputeDomain. The pods of this node may use another one. */
        if (x->shared)
                allocations_of_domain(k->e->c->allocations, x->domain_uid, collect_shared, k);
        else
                add_job(k, x);
}

/* An allocation has the UID of its claim only. */
static bool name_claim(void *u, const struct kube_object *o) {
        struct evictions *e = u;
        for (struct job *j = e->jobs; j; j = j->next)
                if (streq(j->uid, o->meta.uid))
                        j->name = arena_strdup(e->a, o->meta.name);
        return true;
}

static void collect_claims(struct evictions *e) {
        struct collect k = { .e = e };
        int64_t now = clock_mono_s();
        bool many = false;
        e->a = arena_new(4096);
        for (struct failing *x = e->failing; x; x = x->hh.next) {
                enum eviction_step step = evictions_step_of(e, x);
                many = many || step == EVICTION_TOO_MANY;
                if (step != EVICTION_DUE || now < x->next)
                        continue;
                x->next = now + EVICTIONS_AGAIN_S;
                k.of = x;
                allocations_on_node(e->c->allocations, x->node, collect_claim, &k);
        }
        if (many && !e->many)
                log_warn("IMEX has failed on more than half of the nodes that report it: no pod is evicted",
                         kv_int("failing", (int64_t)e->n_failing),
                         kv_int("reporting", (int64_t)e->n_reporting));
        e->many = many;
        e->jobs = k.list;
        if (e->jobs)
                kube_informer_each(e->c->caches.claims, name_claim, e);
}

/* ---- requests ---- */

static void next_job(struct evictions *e);

static void drop_list(struct evictions *e) {
        kube_pages_free(TAKE(e->pods));
        free(TAKE(e->selector));
}

static void drop_jobs(struct evictions *e) {
        kube_cancel(TAKE(e->call));
        drop_list(e);
        e->jobs = NULL;
        arena_free(TAKE(e->a));
}

static void job_done(struct evictions *e) {
        e->jobs = e->jobs->next;
        next_job(e);
}

/* The node still fails. The state of this node may have changed since the look at all nodes. */
static bool still_fails(struct evictions *e, const char *node) {
        struct controller *c = e->c;
        struct failing *x;
        if (!c->leading || !records_synced(c) || records_reports_stale(c))
                return false;
        records_catch_up(c);
        HASH_FIND_STR(e->failing, node, x);
        if (!x || evictions_step_of(e, x) != EVICTION_DUE)
                return false;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct reported r = reported_by_node(c, node, a);
        return r.imex == EVICTION_IMEX_FAILS && streq(r.domain, x->domain);
}

/* The answer is about another pod, or the pod does not exist any more. */
static bool is_moot(const struct err *err) {
        return err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT;
}

static void report_refusal(struct evictions *e, const struct event_about *about, const char *why,
                           const struct err *err) {
        const struct job *j = e->jobs;
        bool budget = err->code == KUBE_STATUS_TOO_MANY_REQUESTS;
        if (!budget)
                log_warn("cannot evict a pod; retrying later", kv_str("namespace", j->ns),
                         kv_str("pod", j->name), kv_err(err));
        /* A webhook that cannot be reached refuses with 500. Higher codes, and system calls that fail, are no
         * decision about this pod. */
        if (err->code < 400 || err->code > 500)
                return;
        event_record(e->c->events, about, EVENT_WARNING, REASON_EVICTION_REFUSED,
                     "nvidia-imex of node %s is not READY (%s), and the pod cannot be evicted now: %s. The "
                     "controller tries again every minute. Repair IMEX of that node, change %s, or delete "
                     "the pod",
                     j->node, why, err->msg,
                     budget ? "the PodDisruptionBudget" : "the webhook, policy or right that refuses it");
}

static void on_evicted(void *u, yyjson_val *obj, const struct err *err) {
        struct evictions *e = u;
        const struct job *j = e->jobs;
        const struct failing *x;
        const struct event_about about = { "v1", "Pod", j->ns, j->name, j->uid };
        HASH_FIND_STR(e->failing, j->node, x);
        const char *why = x ? x->why : "not READY";
        e->call = NULL;
        if (!err) {
                e->n_evicted++;
                log_warn("evicted a pod from a node whose IMEX has failed", kv_str("namespace", j->ns),
                         kv_str("pod", j->name), kv_str("node", j->node), kv_str("imex", why));
                event_record(
                        e->c->events, &about, EVENT_WARNING, REASON_EVICTED_FOR_IMEX,
                        "the pod is evicted, because nvidia-imex of node %s has not been READY for %lld "
                        "minutes (%s). Repair IMEX of that node, or cordon it, before the pod is created "
                        "again",
                        j->node, (long long)e->c->config->evict_after_min, why);
        } else if (!is_moot(err)) {
                report_refusal(e, &about, why, err);
        }
        job_done(e);
}

static void evict(struct evictions *e, const struct job *j) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(MAX_BODY);
        objects_eviction(j->ns, j->name, j->uid, &body);
        e->call = kube_start(e->c->client, &(struct kube_request){ .verb = KUBE_CREATE,
                                                                   .res = &kube_pods,
                                                                   .ns = j->ns,
                                                                   .name = j->name,
                                                                   .subresource = "eviction",
                                                                   .body = { buf_str(&body), body.n },
                                                                   .attempts = 1,
                                                                   .done = on_evicted,
                                                                   .u = e });
}

static bool has_daemon_set(yyjson_val *owners) {
        size_t i, max;
        yyjson_val *o;
        yyjson_arr_foreach (owners, i, max, o)
                if (streq(yyjson_get_str(yyjson_obj_get(o, "kind")), "DaemonSet"))
                        return true;
        return false;
}

static void evictions_on_pod(void *u, yyjson_val *obj, const struct err *err) {
        struct evictions *e = u;
        const struct job *j = e->jobs;
        e->call = NULL;
        struct eviction_pod p = {
                .uid = yyjson_get_str(yyjson_ptr_get(obj, "/metadata/uid")),
                .node = yyjson_get_str(yyjson_ptr_get(obj, "/spec/nodeName")),
                .phase = yyjson_get_str(yyjson_ptr_get(obj, "/status/phase")),
                .deleted = yyjson_ptr_get(obj, "/metadata/deletionTimestamp") != NULL,
                .of_daemon_set = has_daemon_set(yyjson_ptr_get(obj, "/metadata/ownerReferences")),
                .n_claims = yyjson_arr_size(yyjson_ptr_get(obj, "/spec/resourceClaims")),
        };
        const char *refusal = err ? err->msg : eviction_refusal(&p, j->uid, j->node);
        if (!refusal && !still_fails(e, j->node))
                refusal = "IMEX of the node no longer fails";
        if (refusal) {
                log_v(2, "a pod on a node whose IMEX has failed is not evicted", kv_str("namespace", j->ns),
                      kv_str("pod", j->name), kv_str("node", j->node), kv_str("why", refusal));
                job_done(e);
        } else {
                evict(e, j);
        }
}

/* The pod becomes the next job. */
static void insert_pod(struct evictions *e, const char *name, const char *uid) {
        struct job *j = e->jobs, *pod = arena_alloc(e->a, sizeof *pod);
        *pod = (struct job){ .next = j->next,
                             .ns = j->ns,
                             .name = arena_strdup(e->a, name),
                             .uid = arena_strdup(e->a, uid),
                             .node = j->node,
                             .is_pod = true };
        j->next = pod;
}

/* `group`: the PodGroup of the pod; NULL: none. */
static bool uses_claim(const struct claim *c, const char *uid, const char *group) {
        for (size_t i = 0; i < c->n_consumers; i++) {
                const struct claim_consumer *x = &c->consumers[i];
                if (claim_consumer_is_group(x) ? streq(x->name, group) : streq(x->uid, uid))
                        return true;
        }
        return false;
}

/* A page of the pods on the node in the claim's namespace. */
static void evictions_on_pods(void *u, yyjson_val *list, bool last, const struct err *err) {
        struct evictions *e = u;
        const struct job *j = e->jobs;
        size_t i, max;
        yyjson_val *o;
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), i, max, o) {
                const char *name = yyjson_get_str(yyjson_ptr_get(o, "/metadata/name"));
                const char *uid = yyjson_get_str(yyjson_ptr_get(o, "/metadata/uid"));
                const char *group = yyjson_get_str(yyjson_ptr_get(o, "/spec/schedulingGroup/podGroupName"));
                if (name && uid && uses_claim(&j->claim, uid, group))
                        insert_pod(e, name, uid);
        }
        if (err)
                log_warn("cannot list the pods of a node whose IMEX has failed; retrying later",
                         kv_str("namespace", j->ns), kv_str("node", j->node), kv_err(err));
        if (last || err) {
                drop_list(e);
                job_done(e);
        }
}

/* A claim names only the PodGroups of its pods, or also pods on other nodes. */
static void list_pods(struct evictions *e) {
        const struct job *j = e->jobs;
        e->selector = xasprintf("spec.nodeName=%s", j->node);
        e->pods = kube_pages_new(e->c->client, &(struct kube_pages_options){ .res = &kube_pods,
                                                                             .ns = j->ns,
                                                                             .field_selector = e->selector,
                                                                             .page = evictions_on_pods,
                                                                             .u = e });
        kube_pages_start(e->pods, false);
}

/* The pods of the claim become the next jobs. */
static void evictions_on_claim(void *u, yyjson_val *obj, const struct err *err) {
        struct evictions *e = u;
        struct job *j = e->jobs;
        struct err bad;
        bool groups = false;
        e->call = NULL;
        if (err || jd_decode(claim_fields, obj, "", e->a, &j->claim, &bad) < 0 ||
            !streq(j->claim.o.meta.uid, j->uid)) {
                job_done(e);
                return;
        }
        for (size_t i = 0; i < j->claim.n_consumers; i++)
                groups = groups || claim_consumer_is_group(&j->claim.consumers[i]);
        if (groups || (j->shared && j->claim.n_consumers)) {
                list_pods(e);
                return;
        }
        for (size_t i = 0; i < j->claim.n_consumers; i++) {
                const struct claim_consumer *x = &j->claim.consumers[i];
                if (streq(x->resource, "pods") && x->name && x->uid)
                        insert_pod(e, x->name, x->uid);
        }
        job_done(e);
}

static void next_job(struct evictions *e) {
        while (e->jobs && !e->jobs->name)
                e->jobs = e->jobs->next;
        const struct job *j = e->jobs;
        if (!j || e->n_evicted >= EVICTIONS_AT_ONCE || !e->c->leading) {
                drop_jobs(e);
                return;
        }
        e->call =
                kube_start(e->c->client,
                           &(struct kube_request){ .verb = KUBE_GET,
                                                   .res = j->is_pod ? &kube_pods : &kube_resource_claims,
                                                   .ns = j->ns,
                                                   .name = j->name,
                                                   .done = j->is_pod ? evictions_on_pod : evictions_on_claim,
                                                   .u = e });
}

static void evictions_look(void *u) {
        struct evictions *e = u;
        loop_timer_start(&e->timer, EVICTIONS_LOOK_MS);
        bool may = look_at_nodes(e);
        if (e->call || e->pods || !may)
                return;
        e->n_evicted = 0;
        collect_claims(e);
        next_job(e);
}

struct evictions *evictions_new(struct controller *c) {
        if (!c->config->evict_after_min)
                return NULL;
        struct evictions *e = xnew(struct evictions);
        e->c = c;
        e->looked = clock_mono_s();
        loop_timer_init(&e->timer, kube_client_loop(c->client), evictions_look, e);
        loop_timer_start(&e->timer, EVICTIONS_LOOK_MS);
        return e;
}

void evictions_free(struct evictions *e) {
        if (!e)
                return;
        loop_timer_done(&e->timer);
        drop_jobs(e);
        drop_failing(e, true);
        free(e);
}
